/* iteration.h - the phases of an iteration, and what happens when a node dies in one. */
#ifndef CONTROLLER_ITERATION_ITERATION_H
#define CONTROLLER_ITERATION_ITERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/iteration/commit.h"
#include "controller/iteration/evaluate.h"
#include "controller/iteration/routes.h"
#include "controller/iteration/stall_detector.h"
#include "controller/members/members.h"
#include "controller/operator/number_set.h"
#include "controller/planning/planning.h"
#include "controller/run.h"
#include "controller/weights/weights.h"

struct member;
struct msg_report;

/* The iteration under way, as measured. */
struct progress {
	int64_t started_us, last_backward_us, reduce_us, reduced_us;
	uint32_t collisions;
	double wait_s, busy_s;         /* real seconds */
	struct number_set events_seen; /* its events, each once  */
	struct msg_task_event *events; /* of the iteration, for the store */
	uint32_t n_events;
	size_t room_events;
	uint32_t n_shown;       /* of them, consoles were told */
	uint32_t ended, voided; /* tasks; those of tries before, when the iteration began anew */
	bool rerouted;          /* routes are no longer those of the plan */
};

struct iteration {
	struct run *run;
	struct members *members;
	struct planning *planning;
	struct weights *weights;
	struct routes routes;
	struct progress progress;
	uint32_t reduce_attempt;
	/* Replicas that were asked to sum in this attempt; 0: not yet */
	uint32_t summing[MSG_STAGES];
	/* Stages of this iteration whose replicas reported different sums */
	uint32_t n_differing;
	struct stall_detector detector;
	struct evaluation evaluation;
	bool redo; /* the iteration restarts, with another plan */
	/* When microbatches were ordered to run again, until one of them starts; 0: none */
	int64_t rerun_us;
	struct prediction_record prediction;
	struct promise promise;
};

/* Sums that were begun, or done, count no longer: they begin anew once all is done, over those who
 * are left. */
void begin_reduction(struct iteration *it);
/* Makes replicas of the joiners that hold the last commit. */
void iteration_admit_joiners(struct planning *planning);
/* Between two iterations: ends the run, pauses, waits for a plan, or begins the next iteration. */
void iteration_boundary(struct iteration *it);
void iteration_report(struct iteration *it, struct member *m, const struct msg_report *r);
void iteration_lost(struct iteration *it, struct member *m); /* a replica died */
/* Who has no part in the run now may hold the weights of a stage that is lost, also where its place
 * was given to another: true when it does, and the run goes on with it as if it had never slept. */
bool iteration_readmit(struct iteration *it, struct member *m);
void iteration_fini(struct iteration *it);

#endif
