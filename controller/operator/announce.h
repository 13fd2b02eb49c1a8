/* announce.h - describes the run, its faults and its plan to consoles. */
#ifndef CONTROLLER_OPERATOR_ANNOUNCE_H
#define CONTROLLER_OPERATOR_ANNOUNCE_H

struct iteration;
struct members;
struct console;
struct fault;
struct msg;
struct planned;

/* Sends all consoles the plan that takes effect. */
void consoles_plan(struct iteration *it, const struct planned *p);
/* Sends all consoles the run's description and the active faults. */
void consoles_run(struct members *members);
/* Sends a candidate plan to one console. -EINVAL: the plan does not fit the run. */
int console_candidate(struct iteration *it, struct console *to, const struct planned *p,
		      const char *name);
/* Fills MSG_SEE_RUN. */
void announce_fill_run(const struct members *members, struct msg *m);
/* Fills MSG_SEE_FAULT. */
void announce_fill_fault(const struct fault *f, struct msg *m);
/* Sends a plan to the console `only`, or to all consoles if it is NULL. candidate: the name of a
 * plan that is not in force, else NULL. For the plan in force, while an iteration runs, the message
 * holds the current routes, which may differ from the planned ones after a node has died.
 * -EINVAL: the plan does not fit the run. */
int announce_plan_to(struct iteration *it, const struct planned *p, const char *candidate,
		     struct console *only);

#endif
