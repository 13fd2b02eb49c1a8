/* link_times.h - what this node's links did: how long tensors took, how fast bytes went. Told the
 * controller once a second, and at once when a way has become another.
 */
#ifndef AGENT_NETWORK_LINK_TIMES_H
#define AGENT_NETWORK_LINK_TIMES_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct peer;

enum { LINK_TIMES_DIAL_ALL = 64 }; /* nodes: up to here all peers are dialed at once */

struct link_times {
	int64_t due_us;  /* the next word */
	int64_t told_us; /* the last */
	uint32_t n_unlike; /* tensors since then that took another time than was told */
};

/* A rate that a link showed, bytes per second. limited: it never had enough to carry, so that this is the
 * least that it carries. Public for tests: otherwise links tell theirs. */
void link_times_rate(struct peer *p, double bytes_per_s, bool limited);
/* A tensor's way to that node took so long: where links are emulated until it left, else until it was there. */
void link_times_way(struct agent *a, uint16_t to, double way_s, int64_t now_us);
void link_times_tell(struct agent *a, int64_t now_us); /* all links, now */
void link_times_turn(struct agent *a, int64_t now_us); /* if it is time */

#endif
