/* shared_machines.h - machines whose processors other programs use: the agents wait there, so that
 * predictions are too short, and slow transfers are not the links' fault. */
#ifndef CONTROLLER_MEMBERS_SHARED_MACHINES_H
#define CONTROLLER_MEMBERS_SHARED_MACHINES_H

#include <stdbool.h>
#include <stdint.h>

struct member;
struct members;

/* Processor time of an agent, by its heartbeats. */
struct member_processor {
	uint64_t ran_us, waited_us; /* the newest sums that the agent reported */
	int64_t at_us;              /* the agent's clock then; 0: none */
	/* Running averages: processors that its threads use; share of the time in which a thread
	 * waits for a processor */
	double runs, waits;
	bool is_shared; /* its machine's processors are shared with other programs */
};

/* Takes the times of m's newest heartbeat. Writes to the journal when the processors of its machine
 * begin or cease to be shared. */
void shared_machines_hear(struct members *members, struct member *m);
/* Returns true if the machine of a node that takes part is shared. */
bool shared_machines_any(const struct members *members);
/* Returns the share of the time in which m waits for a processor, percent; 0: its machine is not
 * shared. */
unsigned shared_machines_percent(const struct member *m);
/* Returns the share of the time in which one of two nodes waits for a processor, the larger one; 0:
 * neither machine is shared. */
double shared_machines_share(const struct members *members, uint16_t a, uint16_t b);

#endif
