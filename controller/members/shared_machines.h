/* shared_machines.h - machines whose processors other programs use. On such a machine, agents
 * wait for a processor. Tasks then take longer than predicted, and slow transfers are not the
 * links' fault. */
#ifndef CONTROLLER_MEMBERS_SHARED_MACHINES_H
#define CONTROLLER_MEMBERS_SHARED_MACHINES_H

#include <stdbool.h>
#include <stdint.h>

struct member;
struct members;

/* Processor time of an agent, from its heartbeats. */
struct member_processor {
	/* Total times in the agent's last report: running, and waiting for a processor */
	uint64_t ran_us, waited_us;
	int64_t at_us; /* the agent's clock at that report; 0: no report yet */
	/* Running averages: number of processors that the agent's threads use, and share of the
	 * time in which a thread waits for a processor */
	double runs, waits;
	bool is_shared; /* other programs use the processors of the agent's machine */
};

/* Takes the processor times from m's newest heartbeat. Writes to the journal when the processors of
 * its machine begin or cease to be shared. */
void shared_machines_hear(struct members *members, struct member *m);
/* Returns true if some node that takes part is on a shared machine. */
bool shared_machines_any(const struct members *members);
/* Returns the percentage of time in which m waits for a processor; 0: m's machine is not shared. */
unsigned shared_machines_percent(const struct member *m);
/* Returns the share of time that the nodes spend waiting for a processor: the larger of the two
 * nodes' shares. 0: neither node's machine is shared. */
double shared_machines_share(const struct members *members, uint16_t a, uint16_t b);

#endif
