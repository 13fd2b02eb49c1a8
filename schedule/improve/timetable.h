/* timetable.h - when each node is busy in the run of a solution, what another path would do to
 * its microbatch, and which path through the gaps brings it back first.
 *
 * These are estimates, a few dozen times cheaper than a run: everyone else keeps their times. A
 * task that is put in between puts off those after it; that is weighed, not followed. The run
 * that is simulated judges. Weight gradients of a split backward pass are left out.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_TIMETABLE_H
#define SCHEDULE_TIMETABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "schedule/execution/fast_simulate.h"
#include "schedule/problem/candidate_lists.h"
#include "schedule/problem/problem.h"

/* A task where it is done. One that is taken out keeps its row, which then says nothing: no slots,
 * and -INFINITY for arrival_s and free_s. */
struct timetable_row {
	double start_s, free_s, arrival_s; /* free_s: from when the node may start another */
	double weight;                     /* of its microbatch */
	int32_t task;                      /* microbatch * steps + step */
	int32_t slots;                     /* +1: F, -1: B, 0: L */
};

/* The rows of a node, ascending by start_s. */
struct timetable_list {
	int32_t first, n;
	int32_t memory;
};

struct timetable_state; /* of the search for a path */

struct timetable {
	const struct problem *p;
	int steps;      /* tasks of a microbatch: 2 * length + 1 */
	struct arena arena; /* of all below */
	double *home_s; /* (n_mb) end of the last B */
	double *weight; /* (n_mb) what a second more costs: (home / makespan)^7 */
	struct timetable_list *list; /* (n_nodes) */
	struct timetable_row *row;   /* (n_mb * steps) */
	struct timetable_row *whole; /* the same, as they were filled */
	int32_t *row_of, *node_of;   /* (n_mb, steps) by task, as they were filled */
	struct timetable_state *states; /* (length, n_nodes) */
	int *place; /* (n_nodes) among the states of a level; -1: not there */
};

/* Empty until timetable_fill. -ENOMEM. */
int timetable_init(struct timetable *t, const struct problem *p);
void timetable_fini(struct timetable *t);
/* From the simulation's last run, which must have come to its end. */
void timetable_fill(struct timetable *t, const struct fast_simulate *e);

/* As filled. */
static inline const struct timetable_row *timetable_row(const struct timetable *t, int task)
{
	return &t->whole[t->row_of[task]];
}

/* When the microbatch would be home by this path; adds the seconds by which others are put off,
 * by weight, to *put_off_s. */
double timetable_estimate(struct timetable *t, int mb, const int *path, double *put_off_s);

/* One microbatch that had to wait at a node until it had done the task of another. */
struct timetable_wait {
	int waiting, blocking, node;
};

/* Where the microbatch, and those that kept it waiting before, had to wait at other than data
 * nodes, latest first: what holds it up. Into list; how many, at most `most`. */
int timetable_waits(const struct timetable *t, int mb, struct timetable_wait *list, int most);

/* A good way for the microbatch through the stages its path has, in their order: other nodes
 * into path. `banned` is not visited; `charge` multiplies what others are put off. False: no
 * way. */
bool timetable_route(struct timetable *t, const struct solution *s, const struct candidate_lists *candidates,
		     int mb, int banned, double charge, int *path);

#endif
