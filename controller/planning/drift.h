/* drift.h - the plan's assumptions against what is measured. */
#ifndef CONTROLLER_PLANNING_DRIFT_H
#define CONTROLLER_PLANNING_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
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

void drift_links(struct controller *c, struct member *m, const struct msg_links *l); /* all of a node's, */
void drift_link(struct controller *c, struct observed_link *s);                          /* then each */
void drift_task(struct controller *c, struct member *m, const struct msg_task_event *e);
void drift_turn(struct controller *c); /* between iterations */
/* Before the first iteration: agents that share a machine's cores take turns, as the plan's tasks come. */
void drift_guess_pace(struct controller *c, const struct plan *p);

#endif
