/* delta.h - what a change of a few paths does to a run, at the cost of what it touches.
 *
 * The base is a whole run: when each task arrived and started, and for each node its tasks in
 * order. A trial gives some microbatches other paths and finds out what is different:
 *
 *   - A node is followed ("live") only from the moment something arrives there that the base
 * does not have, or does not arrive that the base has. Its state then is what the base says.
 *   - A live node decides for itself. What it starts at another time than the base sends a
 *     microbatch on at another time: that microbatch has strayed, and the nodes it will reach,
 *     as those it would have reached, become live in turn.
 *   - A live node that waits for the same, is as busy and holds as many as in the base is left
 *     alone again; a microbatch that starts a task when the base has it, with the rest of its
 *     path unchanged, follows the base again.
 *
 * Times are formed as in engine.h, so the two agree event for event; tests hold them together.
 * Tasks must take time (no duration of 0), else one instant could hold a chain of events: see
 * delta_usable, which also refuses a split backward pass. First come, first served. Internal to
 * schedule/.
 */
#ifndef SCHEDULE_DELTA_H
#define SCHEDULE_DELTA_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/engine.h"
#include "schedule/problem.h"

struct delta_node {
	bool live, dirty, touched;
	double free_s;
	int slots, base_slots; /* free ones, here and in the base */
	int waiting;           /* first microbatch; -1: none */
	int n_waiting;
	int arrived, started;  /* how far the base's lists have been followed */
	int n, room;           /* the base's tasks here */
	int32_t *by_start, *by_arrival; /* (n) task = microbatch * steps + step */
};

struct delta_event {
	double at_s;
	int kind, who;
};

struct delta {
	const struct problem *p;
	struct engine *e;      /* borrowed: the base's chains, times and finishes live there */
	int steps;
	struct delta_node *nodes;
	/* The trial. Values of a task or microbatch count when its stamp is `trial`. */
	uint32_t trial;
	uint32_t *task_stamp, *mb_stamp, *finish_stamp, *changed_stamp;
	double *arrival_s, *start_s; /* (n_mb, steps) */
	double *finish_s;      /* (n_mb) */
	double *due_s;         /* (n_mb) arrival of the task that comes next */
	int *step;             /* (n_mb) that task */
	int *stray;            /* (n_mb) first step that is not as in the base; steps: none */
	int *next;             /* (n_mb) in a waiting list */
	struct engine_step *chain; /* (n_mb, steps) of those changed */
	int *first_changed, *last_changed; /* (n_mb) steps */
	int n_changed, *changed;
	int n_tasks, *tasks;   /* started in the trial */
	int n_touched, *touched; /* nodes that were live */
	int n_live_mb;         /* that strayed and are not back */
	int n_dirty, *dirty, n_forks, *forks;
	struct delta_event *heap;
	int n_heap, room;
	double limit_s;
	bool late, failed;     /* failed: out of memory */
	double makespan_s;
};

bool delta_usable(const struct problem *p);
/* e must have been run; delta_rebase again after any other run of it. -ENOMEM. */
int delta_init(struct delta *d, struct engine *e);
void delta_fini(struct delta *d);
int delta_rebase(struct delta *d);

/* Tries other paths for n microbatches (mbs; paths from s). Each must keep its data node. False:
 * some microbatch cannot be back by limit_s, or it stands still; makespan_s is then infinite. */
bool delta_try(struct delta *d, const int *mbs, int n, const struct solution *s, double limit_s);
/* When the microbatch is back in the trial. */
double delta_finish_s(const struct delta *d, int mb);
/* Makes the trial the base, in the engine too. Only after delta_try said true. -ENOMEM: the base
 * is spoilt; delta_rebase after a full run. */
int delta_commit(struct delta *d);

#endif
