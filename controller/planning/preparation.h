/* preparation.h - lets agents connect to one another before a plan needs these connections. */
#ifndef CONTROLLER_PLANNING_PREPARATION_H
#define CONTROLLER_PLANNING_PREPARATION_H

#include <stdbool.h>
#include <stdint.h>

struct planning;
struct member;
struct msg_connected;

struct preparation {
	uint64_t id;      /* number of the newest order to connect */
	uint64_t request; /* number of the request whose plan caused the order `id`; 0: none */
	/* Time of the first order to connect for the pending plan; 0: none. If another plan
	 * replaces the pending plan, this time stays. */
	int64_t since_us;
};

/* Orders agents to connect for a new pending plan. Called in every turn. */
void preparation_turn(struct planning *planning);
/* Takes an agent's report that it has connected as ordered. */
void preparation_answer(struct member *m, const struct msg_connected *c);
/* Returns true if agents are still connecting for the pending plan and have time left. */
bool preparation_awaited(const struct planning *planning);

#endif
