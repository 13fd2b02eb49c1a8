/* link_times.h - records the delays and rates of this node's links, and reports them to the
 * controller once a second, and at once if the delay of a link has changed.
 */
#ifndef AGENT_NETWORK_LINK_TIMES_H
#define AGENT_NETWORK_LINK_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/network/peers.h"
#include "agent/shared/progress.h"

/* The mean of a time since the last report. */
struct mean_time {
	double sum_s, reported_s;
	uint32_t n;
};

struct link_times {
	struct peers *peers;             /* borrowed */
	const struct progress *progress; /* borrowed */
	int64_t due_us;    /* time of the next report */
	int64_t reported_us;   /* time of the last report */
	/* Number of tensors since the last report whose delay differs much from the last reported
	 * one. */
	uint32_t n_unlike;
	struct mean_time encode, decode; /* times of this node's host for an activation */
};

/* Adds a time to the mean. */
void link_times_add(struct mean_time *mean, int64_t us);

/* Records the rate of a link, bytes per second. limited: there was never enough to send, so the
 * bandwidth is at least this rate. Public for tests only. */
void link_times_rate(struct peer *p, double bytes_per_s, bool limited);
/* Forgets the delays measured since the last report. */
void link_times_forget(struct link_times *t);
/* Records a tensor's delay to that node. On emulated links the delay ends when the tensor leaves,
 * otherwise when it arrives. */
void link_times_delay(struct link_times *t, uint16_t to, double delay_s, int64_t now_us);
void link_times_tell(struct link_times *t, int64_t now_us); /* reports all links now */
void link_times_turn(struct link_times *t,
		     int64_t now_us); /* reports all links if a report is due */

#endif
