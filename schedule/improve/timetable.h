/* timetable.h - holds the times at which each node is busy in the run of a solution. From these
 * times it estimates when a microbatch would finish if it took another path, and finds a path on
 * which the microbatch finishes early.
 *
 * The estimates assume that all other microbatches keep their times, and are a few dozen times
 * cheaper than a simulation. A task that starts between other tasks delays those after it. This
 * delay has a price, but its further consequences are not computed. A simulation then decides if
 * a move is kept.
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

/* A task at its node. A task that is struck out (take_tasks_out) keeps its row; the row then has
 * slots 0, and -INFINITY for arrival_s and free_s. */
struct timetable_row {
	/* free_s: time at which the node may start its next task */
	double start_s, free_s, arrival_s;
	double weight; /* weight of the row's microbatch */
	int32_t task;  /* index of the row's task: microbatch * steps + step */
	/* Change of the node's occupied slots: a forward pass takes a slot (1), a backward pass
	 * gives a slot back (-1), a loss does neither (0) */
	int32_t slots;
};

/* The rows of a node, ascending by start_s. */
struct timetable_list {
	int32_t first, n;
	int32_t memory;
};

struct timetable_state; /* a state of the search for a path */

struct timetable {
	const struct problem *p;
	const double *work; /* work of each node's stage in the simulation's solution, borrowed */
	int steps;          /* number of tasks of each microbatch: 2 * length + 1 */
	struct arena arena; /* owns the arrays below */
	double *home_s;     /* array of n_mb: end of each microbatch's last backward task */
	/* array of n_mb: (home_s / makespan)^7. The cost rises in proportion to this weight if
	 * the microbatch finishes one second later. The weight is nearly 0 unless the microbatch
	 * is among the last to finish. */
	double *weight;
	struct timetable_list *list; /* array of n_nodes */
	struct timetable_row *row;   /* array of n_mb * steps: the rows of all nodes */
	/* array of n_mb * steps: copy of `row` in which no task is struck out */
	struct timetable_row *whole;
	int32_t *row_of, *node_of;      /* arrays of (n_mb, steps): row and node of each task */
	struct timetable_state *states; /* array of (length, n_nodes) */
	/* Array of n_nodes: index of the state that has reached each node in the present level; -1:
	 * none. */
	int *place;
};

/* Allocates a timetable, which is empty until timetable_fill. */
void timetable_init(struct timetable *t, const struct problem *p);
void timetable_fini(struct timetable *t);
/* Fills the timetable from the simulation's last run, which must be complete. */
void timetable_fill(struct timetable *t, const struct fast_simulate *e);

/* Returns the row of a task, whether it is struck out or not. */
static inline const struct timetable_row *timetable_row(const struct timetable *t, int task)
{
	return &t->whole[t->row_of[task]];
}

/* Returns the time at which the microbatch finishes if it takes this path. Adds to *put_off_s the
 * weighted seconds by which other microbatches are delayed. */
double timetable_estimate(struct timetable *t, int mb, const int *path, double *put_off_s);

/* A wait: one microbatch had to wait at a node for a task of another microbatch. */
struct timetable_wait {
	int waiting, blocking, node;
};

/* Lists the waits that delayed the microbatch, latest first: its own waits, then the waits of the
 * microbatches for which it waited, and so on. Waits at data nodes are not listed. Returns their
 * number, at most `most`. */
int timetable_waits(const struct timetable *t, int mb, struct timetable_wait *list, int most);

/* Finds a good path for the microbatch through the stages that its path has, in their order, and
 * writes the nodes to path. Node `banned` is not visited. `charge` is the price of each weighted
 * second by which other microbatches are delayed. Returns false if no path exists. */
bool timetable_route(struct timetable *t, const struct solution *s,
		     const struct candidate_lists *candidates, int mb, int banned, double charge,
		     int *path);

#endif
