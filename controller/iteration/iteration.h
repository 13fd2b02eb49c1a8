/* iteration.h - the phases of an iteration, and what happens when a node dies in one. */
#ifndef CONTROLLER_ITERATION_ITERATION_H
#define CONTROLLER_ITERATION_ITERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/operator/number_set.h"

struct controller;
struct member;
struct msg_report;

/* The iteration under way, as measured. */
struct progress {
	int64_t started_us, last_backward_us, reduce_us, reduced_us;
	uint32_t collisions;
	double wait_s, busy_s;         /* real seconds */
	struct number_set told_of;           /* its events, each once  */
	struct msg_task_event *events; /* of the iteration, for the store */
	uint32_t n_events;
	size_t room_events;
	uint32_t told; /* of them, consoles were told */
	uint32_t ended, voided; /* tasks; those of tries before, when the iteration began anew */
	bool rerouted; /* routes are no longer those of the plan */
};

/* Sums that were begun, or done, count no longer: they begin anew once all is done, over those who are left. */
void begin_reduction(struct controller *c);
/* Makes replicas of the joiners that hold the last commit. */
void iteration_admit_joiners(struct controller *c);
/* Between two iterations: ends the run, pauses, waits for a plan, or begins the next iteration. */
void iteration_boundary(struct controller *c);
void iteration_report(struct controller *c, struct member *m, const struct msg_report *r);
void iteration_lost(struct controller *c, struct member *m); /* a replica died */
/* Who has no part in the run now may hold the weights of a stage that is lost, also where its place was given to
 * another: true when it does, and the run goes on with it as if it had never slept. */
bool iteration_resumes(struct controller *c, struct member *m);
void iteration_fini(struct controller *c);

#endif
