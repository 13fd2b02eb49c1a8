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
	double wait_s, busy_s;         /* real seconds */
	struct number_set events_seen; /* numbers of the events received */
	struct msg_task_event *events; /* (n_events) task events of the iteration, for the store */
	uint32_t n_events;
	size_t room_events;
	uint32_t n_shown;       /* events sent to consoles so far */
	/* Number of tasks that ended in this attempt; number of tasks that restarts made void */
	uint32_t ended, voided;
	bool rerouted; /* the routes differ from those of the plan */
};

struct iteration {
	struct run *run;
	struct members *members;
	struct planning *planning;
	struct backups *backups;
	struct routes routes;
	struct progress progress;
	uint32_t reduce_attempt;
	/* Replicas asked to sum in this attempt; 0: not asked yet */
	uint32_t summing[MSG_STAGES];
	/* Stages of this iteration whose replicas reported different sums */
	uint32_t n_differing;
	struct stall_detector detector;
	struct evaluation evaluation;
	bool redo; /* the iteration restarts with a new plan */
	/* Time at which microbatches were ordered to run again, until the first of them starts; 0:
	 * none */
	int64_t rerun_us;
	struct prediction_record prediction;
	struct promise promise;
};

/* Returns the seconds that the sums of this iteration took. */
double iteration_sums_took_s(const struct iteration *it);
/* Voids the sums begun or completed, and restarts them over the remaining replicas once every
 * microbatch is done. */
void begin_reduction(struct iteration *it);
/* Turns the joiners that hold the last commit into replicas. */
void iteration_admit_joiners(struct planning *planning);
/* Between two iterations: ends the run, pauses, waits for a plan, or begins the next iteration. */
void iteration_boundary(struct iteration *it);
void iteration_report(struct iteration *it, struct member *m, const struct msg_report *r);
void iteration_lost(struct iteration *it, struct member *m); /* after a replica died */
/* Takes back a node whose process was only suspended, if it holds the weights of a stage that has
 * no replica. The node may meanwhile have been given another place. Returns true if the node is a
 * replica again. */
bool iteration_readmit(struct iteration *it, struct member *m);
/* Abandons the work under way, and ends the run once the last commit is on the agents' disks. A
 * second call ends the run at once. why: borrowed until the program ends. */
void controller_stop(struct iteration *it, const char *why);
void iteration_fini(struct iteration *it);

#endif
