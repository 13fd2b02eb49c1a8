/* timetable.h - holds the times at which each node is busy in the run of a solution. From these it
 * estimates when a microbatch would be home by another path, and finds a path that brings the
 * microbatch home early.
 *
 * The estimates assume that all other microbatches keep their times, and are a few dozen times
 * cheaper than a simulation. A task that starts between others delays those after it; the delay has
 * a price, but its consequences are not followed. The simulation decides.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_TIMETABLE_H
#define SCHEDULE_TIMETABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/problem/candidate_lists.h"
#include "schedule/problem/problem.h"

/* A task at its node. A task that is struck out keeps its row, with slots 0 and with -INFINITY for
 * arrival_s and free_s. */
struct timetable_row {
	/* free_s: time at which the node may start the next task */
	double start_s, free_s, arrival_s;
	double weight; /* weight of the row's microbatch */
	int32_t task;  /* task of the row, as microbatch * steps + step */
	int32_t slots; /* slots that the task takes: F +1, B -1, L 0 */
};

/* The rows of a node, ascending by start_s. */
struct timetable_list {
	int32_t first, n;
	int32_t memory;
};

struct timetable_state; /* of the search for a path */

struct timetable {
	const struct problem *p;
	const double *work; /* of the simulation's solution, borrowed */
	int steps;          /* number of tasks of a microbatch: 2 * length + 1 */
	struct arena arena; /* owns the arrays below */
	double *home_s;     /* (n_mb) end of each microbatch's last B */
	/* (n_mb) cost of one more second of each microbatch: (home_s / makespan)^7 */
	double *weight;
	struct timetable_list *list; /* (n_nodes) */
	struct timetable_row *row;   /* (n_mb * steps) rows of all nodes */
	/* (n_mb * steps) copy of `row` in which nothing is struck out */
	struct timetable_row *whole;
	int32_t *row_of, *node_of;   /* (n_mb, steps) row and node of each task */
	struct timetable_state *states; /* (length, n_nodes) */
	int *place; /* (n_nodes) place of each node among the states of a level; -1: not there */
};

/* The timetable is empty until timetable_fill. */
void timetable_init(struct timetable *t, const struct problem *p);
void timetable_fini(struct timetable *t);
/* Fills the timetable from the simulation's last run, which must be complete. */
void timetable_fill(struct timetable *t, const struct fast_simulate *e);

/* Returns the row of a task, struck out or not. */
static inline const struct timetable_row *timetable_row(const struct timetable *t, int task)
{
	return &t->whole[t->row_of[task]];
}

/* Returns when the microbatch would be home by this path. Adds to *put_off_s the weighted seconds
 * by which others are delayed. */
double timetable_estimate(struct timetable *t, int mb, const int *path, double *put_off_s);

/* A wait: one microbatch had to wait at a node for the task of another. */
struct timetable_wait {
	int waiting, blocking, node;
};

/* Lists the waits that delayed the microbatch, latest first: its own, and those of the microbatches
 * for which it waited. Waits at data nodes are not listed. Returns their number, at most `most`. */
int timetable_waits(const struct timetable *t, int mb, struct timetable_wait *list, int most);

/* Finds a good path for the microbatch through the stages that its path has, in their order, and
 * writes the nodes to path. `banned` is not visited; `charge` is the price of a weighted second by
 * which others are delayed. Returns false if no path exists. */
bool timetable_route(struct timetable *t, const struct solution *s,
		     const struct candidate_lists *candidates, int mb, int banned, double charge,
		     int *path);

#endif
