/* drift.h - the plan's assumptions against what is measured. */
#ifndef CONTROLLER_PLANNING_DRIFT_H
#define CONTROLLER_PLANNING_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

struct iteration;
struct planning;
struct member;
struct msg_links;
struct msg_task_event;
struct plan;
struct observed_link;

struct drift {
	bool corrected;      /* what is planned against was, since the plan was made */
	int64_t bettered_us; /* when a better plan was last asked for on that account */
	uint64_t asked_in;   /* the iteration in which plans were last asked for before its end */
	uint32_t asked;      /* so many in it */
};

/* All of a node's, */
void drift_links(struct planning *planning, struct member *m, const struct msg_links *l);
/* Then each */
void drift_link(struct planning *planning, struct observed_link *s);
void drift_task(struct iteration *it, struct member *m, const struct msg_task_event *e);
void drift_turn(struct planning *planning); /* between iterations */
/* Before the first iteration: agents that share a machine's cores take turns, as the plan's tasks
 * come. */
void drift_guess_pace(struct planning *planning, const struct plan *p);

#endif
