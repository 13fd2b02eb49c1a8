/* link_times.h - records the delays and rates of this node's links. Reports these delays and
 * rates to the controller once a second. If the delay of a link has changed, reports within 0.1
 * s.
 */
#ifndef AGENT_NETWORK_LINK_TIMES_H
#define AGENT_NETWORK_LINK_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/network/peers.h"
#include "agent/shared/progress.h"

/* The mean of the times that were measured since the last report. */
struct mean_time {
	double sum_s, reported_s;
	uint32_t n;
};

struct link_times {
	struct peers *peers;             /* borrowed */
	const struct progress *progress; /* borrowed */
	int64_t due_us;    /* time of the next report */
	int64_t reported_us;   /* time of the last report */
	/* Number of tensors after the last report whose delay was at least twice or at most half
	 * the reported delay. */
	uint32_t n_unlike;
	/* Times that this node's host takes to encode an activation, and to decode an
	 * activation. */
	struct mean_time encode, decode;
};

/* Adds a time to the mean. */
void link_times_add(struct mean_time *mean, int64_t us);

/* Records the rate of a link, bytes per second. limited: true if the sender had too little to
 * send. The bandwidth may then be higher than the rate. Public for tests only. */
void link_times_rate(struct peer *p, double bytes_per_s, bool limited);
/* Forgets the delays measured since the last report. */
void link_times_forget(struct link_times *t);
/* Records the delay, in seconds, of a tensor that was sent to node `to`. On an emulated link the
 * delay ends when the tensor leaves, on a real link when the tensor arrives. */
void link_times_delay(struct link_times *t, uint16_t to, double delay_s, int64_t now_us);
void link_times_tell(struct link_times *t, int64_t now_us); /* reports all links now */
void link_times_turn(struct link_times *t,
		     int64_t now_us); /* reports all links if a report is due */

#endif
