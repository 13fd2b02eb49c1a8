/* fault.h - the injected faults of one agent, and what they do to its times and links.
 *
 * Each fault has a number, a time to live and heals itself when that is over (0: only when told).
 * Several of a kind add up: factors multiply, losses are independent.
 * Pure: `now` comes in. KILL and HANG are the program's to do; they are not kept here.
 */
#ifndef AGENT_FAULT_H
#define AGENT_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

enum { FAULT_MOST = 64 }; /* active at once */

struct faults {
	uint32_t n;
	struct fault_active {
		uint32_t fault;
		uint8_t kind;
		int32_t peer; /* -1 all */
		float factor;
		int64_t ends_us; /* INT64_MAX: when told */
	} active[FAULT_MOST];
};

/* Adds, replaces the one of the same number, or (FAULT_NONE) heals it. -EINVAL what
 * fault_refusal (wire/faults.h) refuses, or is not kept here; -ENOSPC. */
int fault_apply(struct faults *f, const struct msg_fault *m, int64_t now_us);
/* Heals what is over. Whether anything was. */
bool fault_expire(struct faults *f, int64_t now_us);
int64_t fault_deadline_us(const struct faults *f); /* INT64_MAX none */

bool fault_corrupt(const struct faults *f);                    /* outputs are spoilt */
double fault_node_factor(const struct faults *f);              /* of task durations, >= 1 */
double fault_link_factor(const struct faults *f, uint16_t to); /* of delays, >= 1 */
double fault_loss(const struct faults *f, uint16_t to);        /* probability that a try is lost */
bool fault_partitioned(const struct faults *f, uint16_t to);

#endif
