/* device_time.h - how long a node's device was busy, and what it waited for. */
#ifndef WIRE_DEVICE_TIME_H
#define WIRE_DEVICE_TIME_H

#include <stdbool.h>
#include <stdint.h>

enum device_state {
	/* The device runs a task, the optimizer's step or the zeroing of gradients. */
	DEVICE_BUSY,
	/* A host encodes, decodes or copies a tensor, or adds sums. This host is this node's
	 * host, or the host of the node that sends the tensor. Also: a task could run, but this
	 * node's host has not started it. */
	DEVICE_HOST,
	DEVICE_NETWORK, /* a tensor for this node is under way */
	/* This node waits although no tensor is on its way. There are three possible reasons:
	 * other nodes compute, the controller has not sent the next order, or all memory slots
	 * are held. */
	DEVICE_OTHERS,
	DEVICE_STATES
};

/* How long the device was in each state during a period; the times add up to the period. If several
 * states hold at once, the first in the enum counts. All 0: not measured. Plain data without
 * padding. */
struct device_time {
	uint64_t us[DEVICE_STATES];
};

/* Returns "busy", "host", "network" or "others". */
const char *device_state_name(enum device_state state);
/* Returns the sum of the times, which is the length of the period. device_time_is_sane must
 * hold. */
uint64_t device_time_total_us(const struct device_time *t);
/* Returns true if no time exceeds 10,000 days. Sums of such times cannot overflow. */
bool device_time_is_sane(const struct device_time *t);
/* If the times add up to more than longest_us, reduces all times in proportion, so that their sum
 * is at most longest_us. device_time_is_sane must hold. */
void device_time_limit(struct device_time *t, uint64_t longest_us);
/* Gives the shares in percent, rounded so that they add up to 100. Returns false and zeros if
 * nothing was measured. device_time_is_sane must hold. */
bool device_time_percent(const struct device_time *t, unsigned percent[DEVICE_STATES]);

#endif
