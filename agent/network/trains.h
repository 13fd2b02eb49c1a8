/* trains.h - sends trains of packets (wire/train.h) to measure the bandwidth of links, and times
 * the trains of other nodes.
 */
#ifndef AGENT_NETWORK_TRAINS_H
#define AGENT_NETWORK_TRAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/network/peers.h"
#include "wire/msg.h"
#include "wire/post.h"

struct trains; /* opaque; the agent has them */

enum trains_standing { TRAINS_UNDER_WAY, TRAINS_ANSWERED, TRAINS_UNANSWERED };

/* bound: the address of the port for tensors, once it is open. Both are borrowed (trains_free). */
struct trains *trains_new(struct peers *peers, const char *bound);
void trains_free(struct trains *t);  /* NULL is allowed */
int trains_fd(const struct trains *t); /* returns a descriptor to poll for POLLIN; -1: none */
void trains_hear(struct trains *t);    /* records the packets that have arrived */

/* Opens the UDP socket at the port for tensors, once. Without it no trains are sent or timed. */
void trains_open(struct trains *t);
/* Begins to send trains to a node. Returns false without a socket, or if it receives none. */
bool trains_begin(struct trains *t, uint16_t to, int64_t now_us);
/* Continues the measurement. rate: the result in bytes per second. last: accepts the results so
 * far, if there are any. */
enum trains_standing trains_turn(struct trains *t, bool last, double *rate, int64_t now_us);
/* Returns the rate of the answers so far, bytes per second; 0: none. The first answer may follow
 * after TRAINS_UNANSWERED, because it is late on a very slow link. */
double trains_rate(const struct trains *t);
/* Handle another node's announcement of a train, and its answer to one of this node. */
void trains_announced(struct trains *t, const struct msg_train *m, post_peer_id peer,
		      int64_t now_us);
void trains_answered(struct trains *t, const struct msg_train_heard *m);
/* Answers the trains that have ended. Returns true if further trains are expected. */
bool trains_answer(struct trains *t, int64_t now_us);
void trains_forget(struct trains *t);

#endif
