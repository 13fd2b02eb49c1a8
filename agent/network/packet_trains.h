/* packet_trains.h - sends trains of packets (wire/bandwidth/packet_train.h) to measure the
 * bandwidth of links, and times the trains of other nodes.
 */
#ifndef AGENT_NETWORK_PACKET_TRAINS_H
#define AGENT_NETWORK_PACKET_TRAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/network/peers.h"
#include "wire/msg.h"
#include "wire/post.h"

struct packet_trains; /* opaque; the agent has them */

enum packet_trains_standing { TRAINS_UNDER_WAY, TRAINS_ANSWERED, TRAINS_UNANSWERED };

/* bound: the address of the port for tensors; it is read when packet_trains_open is called. Both
 * arguments are borrowed until packet_trains_free. */
struct packet_trains *packet_trains_new(struct peers *peers, const char *bound);
void packet_trains_free(struct packet_trains *t); /* NULL is allowed */
int packet_trains_fd(
	const struct packet_trains *t); /* returns a descriptor to poll for POLLIN; -1: none */
void packet_trains_hear(struct packet_trains *t); /* records the packets that have arrived */

/* Opens the UDP socket at the port for tensors. Only the first call tries. Without the socket this
 * node neither sends trains nor times them. */
void packet_trains_open(struct packet_trains *t);
/* Begins to measure the link to a node. Returns false if there is no socket, or if the last
 * UNREACHED_MOST peers have answered no train. */
bool packet_trains_begin(struct packet_trains *t, uint16_t to, int64_t now_us);
/* Continues the measurement. rate: the result, bytes per second. If `last` is true and there is a
 * usable result, ends the measurement now. */
enum packet_trains_standing packet_trains_turn(struct packet_trains *t, bool last, double *rate,
					       int64_t now_us);
/* Returns the rate of the answers so far, bytes per second; 0: no answers. On a very slow link the
 * first answer may arrive after packet_trains_turn has returned TRAINS_UNANSWERED. */
double packet_trains_rate(const struct packet_trains *t);
/* These two functions handle another node's announcement of a train, and another node's answer to a
 * train of this node. */
void packet_trains_announced(struct packet_trains *t, const struct msg_packet_train *m,
			     post_peer_id peer, int64_t now_us);
void packet_trains_answered(struct packet_trains *t, const struct msg_packet_train_heard *m);
/* Answers the trains of other nodes that have ended. Returns true if some of the announced trains
 * have not ended yet. */
bool packet_trains_answer(struct packet_trains *t, int64_t now_us);
void packet_trains_forget(struct packet_trains *t);

#endif
