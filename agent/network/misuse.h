/* misuse.h - counts violations of the protocol by other nodes, and reports them to the controller.
 *
 * This node reports another node at most once from one start of an iteration to the next start.
 * Until then this node ignores the messages of the reported node. Numbers that are not finite are
 * reported at once. Unexpected messages are reported when there are too many for an accident.
 * Only a READY agent reports, because an agent without a stage cannot know which messages to
 * expect.
 */
#ifndef AGENT_NETWORK_MISUSE_H
#define AGENT_NETWORK_MISUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/network/peers.h"
#include "agent/shared/held.h"
#include "agent/shared/progress.h"
#include "wire/post.h"

/* The parts of the agent that the checks use. All pointers are borrowed. The peers' entries have
 * the counts. */
struct misuse {
	struct peers *peers;
	const struct held *held;
	const struct progress *progress;
};

/* Returns the node whose key the peer has proven to hold. If the key belongs to no known node,
 * returns run.n_nodes. */
uint32_t misuse_sender(const struct misuse *u, post_peer_id peer);
/* Returns true if the peer has proven to hold this node's key. */
bool misuse_proven(const struct misuse *u, post_peer_id peer, uint16_t node);
/* Reports that the node has sent numbers that are not finite. The node computed these numbers
 * under the present plan. `what` names the tensor. Does nothing if the node was reported already
 * (misuse_reported). */
void misuse_report_numbers(struct misuse *u, uint16_t node, const char *what, int64_t now_us);
/* Returns true if the node was reported in the present iteration, after the last start of the
 * iteration. */
bool misuse_reported(const struct misuse *u, uint16_t node);
/* Counts an unexpected message of node `from` as refused. The sender must have proven that it is
 * node `from`. Reports the node after 64 such messages in an iteration. */
void misuse_misfit(struct misuse *u, uint16_t from, int64_t now_us);
/* Reports the nodes that have sent malformed frames. */
void misuse_malformed(struct misuse *u, int64_t now_us);
void misuse_forget(struct misuse *u); /* lets each node be reported again */

#endif
