/* fault.h - the injected faults of an agent, and their effects on its times and links.
 *
 * Each fault has a number and a duration, after which it heals. A fault with duration 0 heals
 * only when the controller orders this. Several faults of a kind combine: factors multiply,
 * losses are independent. The functions are pure. orders.c carries out the faults KILL and HANG
 * itself.
 */
#ifndef AGENT_FAULT_H
#define AGENT_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

enum { FAULT_MOST = 64 }; /* limit of faults active at once */

struct faults {
	uint32_t n;
	struct fault_active {
		uint32_t fault;
		uint8_t kind;
		/* The node at the other end of the affected link; -1: the fault affects all
		 * links. */
		int32_t peer;
		float factor;
		/* Time at which the fault ends; INT64_MAX: it ends when the controller orders
		 * this. */
		int64_t ends_us;
	} active[FAULT_MOST];
};

/* Adds a fault, or replaces the fault that has the same number. The kind FAULT_NONE heals the
 * fault with this number. -EINVAL: the kind is KILL or HANG, or fault_refusal (wire/faults.h)
 * refuses the fault. -ENOSPC: too many faults are active. */
int fault_apply(struct faults *f, const struct msg_fault *m, int64_t now_us);
/* Heals the faults whose time is over. Returns true if there were such faults. */
bool fault_expire(struct faults *f, int64_t now_us);
/* Returns the time at which the next fault heals; INT64_MAX: no fault heals by itself. */
int64_t fault_deadline_us(const struct faults *f);

/* Returns true if a fault makes this node corrupt its outputs. */
bool fault_corrupt(const struct faults *f);
/* Returns the product of the factors by which faults lengthen tasks, at least 1. */
double fault_node_factor(const struct faults *f);
/* Returns the product of the factors by which faults lengthen the delays to node `to`, at least
 * 1. */
double fault_link_factor(const struct faults *f, uint16_t to);
/* Returns the probability that faults lose a message to node `to`, for each attempt to send it. */
double fault_loss(const struct faults *f, uint16_t to);
bool fault_partitioned(const struct faults *f, uint16_t to);

#endif
