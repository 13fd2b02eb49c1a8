/* device_time.h - how long a node's device was busy, and what it waited for. */
#ifndef WIRE_DEVICE_TIME_H
#define WIRE_DEVICE_TIME_H

#include <stdbool.h>
#include <stdint.h>

enum device_state {
	DEVICE_BUSY,    /* a task, the optimizer's step or the zeroing of gradients runs */
	/* A host encodes, decodes or copies a tensor, adds sums, or has not begun a task that may
	 * start. The host is the node's own, or the one that sends the tensor. */
	DEVICE_HOST,
	DEVICE_NETWORK, /* a tensor for this node is under way */
	/* Nothing for this node is computed yet: other nodes compute, or the controller has not
	 * given the next order; or all memory slots are held. */
	DEVICE_OTHERS,
	DEVICE_STATES
};

/* The states of a period, which add up to it. If several are true, the first one counts. All 0:
 * not measured. Plain data without padding. */
struct device_time {
	uint64_t us[DEVICE_STATES];
};

/* Returns "busy", "host", "network" or "others". */
const char *device_state_name(enum device_state state);
/* Returns the length of the period. is_sane must hold. */
uint64_t device_time_total_us(const struct device_time *t);
/* Returns true if no time exceeds 10,000 days, so that sums cannot overflow. */
bool device_time_is_sane(const struct device_time *t);
/* Reduces times that add up to more than longest_us in proportion, so that they add up to at most
 * longest_us. is_sane must hold. */
void device_time_limit(struct device_time *t, uint64_t longest_us);
/* Gives the shares in percent, rounded so that they add up to 100. Returns false, and zeros, if
 * nothing was measured. is_sane must hold. */
bool device_time_percent(const struct device_time *t, unsigned percent[DEVICE_STATES]);

#endif
