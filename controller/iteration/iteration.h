/* iteration.h - the phases of an iteration, and what happens when a node dies in one. */
#ifndef CONTROLLER_ITERATION_ITERATION_H
#define CONTROLLER_ITERATION_ITERATION_H

#include <stdbool.h>

struct controller;
struct member;
struct msg_report;

/* Sums that were begun, or done, count no longer: they begin anew once all is done, over those who are left. */
void begin_reduction(struct controller *c);
void iteration_taken_up(struct controller *c); /* routes, plan and attempts are set */
/* Between two iterations: what the operator asked for, then the next one. */
void iteration_boundary(struct controller *c);
void iteration_report(struct controller *c, struct member *m, const struct msg_report *r);
void iteration_lost(struct controller *c, struct member *m); /* a replica died */
/* Who has no part in the run now may hold the weights of a stage that is lost, also where its place was given to
 * another: true when it does, and the run goes on with it as if it had never slept. */
bool iteration_resumes(struct controller *c, struct member *m);
void iteration_fini(struct controller *c);

#endif
