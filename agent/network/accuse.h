/* accuse.h - what other nodes do wrong: counted, and told the controller.
 *
 * A node is accused once an iteration, and until the next one nothing of it is taken. Of numbers that
 * no computation gives, at once; of what fits nothing, once that is no accident. Only a READY
 * agent accuses: before, it cannot know what fits.
 */
#ifndef AGENT_NETWORK_ACCUSE_H
#define AGENT_NETWORK_ACCUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"
#include "wire/post.h"

struct agent;

enum { ACCUSED_MOST = 8 }; /* remembered */

struct accusations {
	struct msg_trouble list[ACCUSED_MOST]; /* (n) as told, in this iteration */
	uint32_t n;
};

/* The one whose key the peer has proven to hold; run.n_nodes: none that is known. */
uint32_t accuse_sender(const struct agent *a, post_peer_id peer);
/* Whether this node's key is what the peer has proven to hold. */
bool accuse_proven(const struct agent *a, post_peer_id peer, uint16_t node);
/* Tells that the node sent `what`; nothing if it is accused already. */
void accuse_node(struct agent *a, uint16_t node, const char *what, int64_t now_us);
bool accuse_stands(const struct agent *a, uint16_t node); /* in this iteration */
/* Of that node, which is proven, something fits nothing: counted as refused, and after 64 in an
 * iteration it is accused. */
void accuse_misfit(struct agent *a, uint16_t from, int64_t now_us);
/* Looks for peers that sent frames which are no messages. */
void accuse_malformed(struct agent *a, int64_t now_us);
/* Tells a controller that took over whom this node has accused in the iteration; forgets that. */
void accuse_recall(struct agent *a, int64_t now_us);
void accuse_forget(struct agent *a);

#endif
