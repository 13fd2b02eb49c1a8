/* measure.h - measures links on the controller's order, and round trips from time to time. */
#ifndef AGENT_NETWORK_MEASURE_H
#define AGENT_NETWORK_MEASURE_H

#include <stdint.h>

#include "agent/network/link_times.h"
#include "agent/network/peers.h"
#include "agent/network/packet_trains.h"
#include "wire/msg.h"

struct measure; /* opaque; the agent has one */

/* Returns a new struct that borrows the arguments (measure_free). */
struct measure *measure_new(struct peers *peers, struct packet_trains *trains,
			    struct link_times *link_times);
void measure_free(struct measure *w);  /* NULL is allowed */

/* Begins to measure one link, or the round trips of all links (MSG_NOBODY). The order replaces the
 * previous order of its kind. */
void measure_begin(struct measure *w, const struct msg_measure *m, int64_t now_us);
void measure_turn(struct measure *w, int64_t now_us);
void measure_soon(struct measure *w, int64_t now_us); /* makes the next turn due at once */
int64_t measure_deadline_us(const struct measure *w);
void measure_forget(struct measure *w);

#endif
