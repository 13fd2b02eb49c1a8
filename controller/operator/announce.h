/* announce.h - what the run is, and which ways its microbatches take: told whenever either changes. */
#ifndef CONTROLLER_OPERATOR_ANNOUNCE_H
#define CONTROLLER_OPERATOR_ANNOUNCE_H

struct iteration;
struct members;
struct console;
struct fault;
struct msg;
struct planned;

void consoles_plan(struct iteration *it, const struct planned *p);
void consoles_run(struct members *members); /* what the run is, told again */
/* -EINVAL: it does not fit the run. */
int console_candidate(struct iteration *it, struct console *to, const struct planned *p,
		      const char *name);
/* MSG_SEE_RUN: what the run is */
void announce_fill_run(const struct members *members, struct msg *m);
void announce_fill_fault(const struct fault *f, struct msg *m);    /* MSG_SEE_FAULT */
/* The plan to one console, or to all (NULL); candidate: its name where it is not in force. While an iteration is under
 * way its routes are told as they are by now, not as planned. -EINVAL: it does not fit the run; -ENOMEM. */
int announce_plan_to(struct iteration *it, const struct planned *p, const char *candidate,
		     struct console *only);

#endif
