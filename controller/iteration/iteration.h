/* iteration.h - runs an iteration through its phases, and recovers from a death in each phase. */
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
#include "controller/planning/planning.h"
#include "controller/run/number_set.h"
#include "controller/run/run.h"
#include "controller/weights/backups.h"

struct member;
struct msg_report;

/* Measurements of the iteration under way. */
struct progress {
	int64_t started_us, last_backward_us, reduce_us, reduced_us;
	uint32_t collisions;
	/* Real seconds in which tasks waited, and real seconds in which tasks computed: sums over
	 * all tasks */
	double wait_s, busy_s;
	/* Numbers of the task events received, to recognise repeated events */
	struct number_set events_seen;
	/* Array of n_events: the iteration's task events, for the store */
	struct msg_task_event *events;
	uint32_t n_events;
	size_t room_events;
	uint32_t n_shown; /* number of events sent to consoles so far */
	/* ended: number of tasks that ended in this attempt of the iteration. voided: number of
	 * tasks that ended in earlier attempts, whose results are discarded. */
	uint32_t ended, voided;
	bool rerouted; /* consoles have received routes that differ from the plan's routes */
};

struct iteration {
	struct run *run;
	struct members *members;
	struct planning *planning;
	struct backups *backups;
	struct routes routes;
	struct progress progress;
	uint32_t reduce_attempt;
	/* For each stage: number of replicas that were asked for the sum in this attempt; 0: not
	 * asked yet */
	uint32_t summing[MSG_STAGES];
	/* Number of stages of this iteration in which replicas reported different sums */
	uint32_t n_differing;
	struct stall_detector detector;
	struct evaluation evaluation;
	bool redo; /* the iteration must restart with a new plan */
	/* Time of the newest order to rerun microbatches; 0: no order was given, or a rerun
	 * microbatch has started after the order */
	int64_t rerun_us;
	struct prediction_record prediction;
	struct promise promise;
};

/* Returns the seconds that the sums of this iteration took. */
double iteration_sums_took_s(const struct iteration *it);
/* Voids all sums of the iteration, even complete ones. Restarts the sums over the remaining
 * replicas once every microbatch is done. */
void begin_reduction(struct iteration *it);
/* Turns the joiners that hold the last commit into replicas. */
void iteration_admit_joiners(struct planning *planning);
/* Between two iterations: ends the run, pauses, waits for a plan, or begins the next iteration. */
void iteration_boundary(struct iteration *it);
void iteration_report(struct iteration *it, struct member *m, const struct msg_report *r);
/* Recovers the iteration after a replica died */
void iteration_lost(struct iteration *it, struct member *m);
/* Takes back a node whose process was only suspended, if the node holds the weights of a stage
 * that has no replica. If the node was meanwhile assigned another stage, it gets its own stage
 * back. Returns true if the node is a replica again. */
bool iteration_readmit(struct iteration *it, struct member *m);
/* Abandons the current iteration, and ends the run once the last commit is on the agents' disks. A
 * second call ends the run at once. why: a text that is never freed. */
void controller_stop(struct iteration *it, const char *why);
void iteration_fini(struct iteration *it);

#endif
