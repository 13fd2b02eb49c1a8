/* slot_timeline.h - holds the times at which each node is busy in a run and at which all its
 * slots are taken. The data is packed, so that a caller finds the start of a new task within
 * nanoseconds.
 *
 * Nodes serve first come, first served. A new task therefore starts after the tasks that arrived
 * before it. It delays no other task if it ends before the next task starts. As in timetable.h,
 * estimates assume that all other microbatches keep their times, and a simulation then decides if
 * a move is kept. Times are floats here.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_SLOT_TIMELINE_H
#define SCHEDULE_SLOT_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "schedule/improve/fast_simulate.h"
#include "schedule/problem/problem.h"

#define SLOT_TIMELINE_BLOCK 8 /* number of rows that are compared at once */

/* The rows of a node, ascending by arrival. */
struct slot_timeline_list {
	int32_t first, n; /* index of the first row, and number of rows */
	int32_t room;     /* a multiple of SLOT_TIMELINE_BLOCK, and more than n */
	float forward_s, backward_s; /* seconds of the node's F and B */
	uint64_t full; /* bit i: all slots are taken after row i; only for the first 64 rows */
};

struct slot_timeline {
	const struct problem *p;
	int steps; /* number of tasks of each microbatch */
	float overhead_s;
	struct arena arena;       /* owns the arrays below */
	struct slot_timeline_list *list; /* array of n_nodes */
	/* Rows of all nodes. Unused rows have INFINITY for arrival_s and start_s. free_s: time at
	 * which the node may start its next task. */
	float *arrival_s, *start_s, *free_s;
	int32_t *task; /* task of each row, as microbatch * steps + step */
	/* Copies of the arrays above, made by the last slot_timeline_fill. */
	struct slot_timeline_list *kept_list;
	float *kept_arrival_s, *kept_start_s, *kept_free_s;
	int32_t *kept_task;
	int *changed, n_changed; /* array of n_nodes: nodes whose list differs from the copy */
	bool *is_changed;        /* array of n_nodes */
};

/* A task at a node. */
struct slot_timeline_task {
	int32_t node, task;
	float arrival_s, start_s, free_s;
};

/* Allocates a timeline, which is empty until slot_timeline_fill. */
void slot_timeline_init(struct slot_timeline *g, const struct problem *p);
void slot_timeline_fini(struct slot_timeline *g);
/* Fills the timeline from the simulation's last run, which must be complete. Rows ascend by
 * arrival. A forward task that waited for a slot may have started after tasks that arrived later.
 * Its row then comes after the rows of these tasks, and gets the arrival time of the row before
 * it. */
void slot_timeline_fill(struct slot_timeline *g, const struct fast_simulate *e);

/* Removes all tasks of the microbatch from the node. */
void slot_timeline_take_out(struct slot_timeline *g, int node, int mb);
/* Adds a task behind all tasks that arrived earlier or at the same time. Returns false if the list
 * has no room. */
bool slot_timeline_put_in(struct slot_timeline *g, const struct slot_timeline_task *t);
/* Restores the timeline of the last fill. */
void slot_timeline_restore(struct slot_timeline *g);

/* Counts the rows of a node that come before a task with this arrival. */
static inline int slot_timeline_before(const struct slot_timeline *g,
				       const struct slot_timeline_list *list, float arrival_s)
{
	const float *row = g->arrival_s + list->first;
	int n = 0;

	for (int b = 0; b < list->n; b += SLOT_TIMELINE_BLOCK, row += SLOT_TIMELINE_BLOCK) {
		for (int i = 0; i < SLOT_TIMELINE_BLOCK; i++)
			n += row[i] <= arrival_s;
	}
	return n;
}

/* Returns the time at which a new task starts if it comes after the first `before` rows. Adds to
 * *over_s the seconds by which the new task delays the next one. */
static inline float slot_timeline_start_s(const struct slot_timeline *g,
					  const struct slot_timeline_list *list, int before,
					  float arrival_s, float duration_s, float *over_s)
{
	float free_s = before > 0 ? g->free_s[list->first + before - 1] : arrival_s;
	float start_s = free_s > arrival_s ? free_s : arrival_s;
	float over = start_s + duration_s + g->overhead_s - g->start_s[list->first + before];

	*over_s += over > 0 ? over : 0;
	return start_s;
}

/* Returns true if a slot is unused from a forward task until its backward task. The forward task
 * comes after the first `before` rows, and the backward task after the first `until` rows.
 * Assumes an unused slot after each row beyond the first 64. */
static inline bool slot_timeline_have_slot(const struct slot_timeline_list *list, int before,
					   int until)
{
	uint64_t rows = until < 64 ? ((uint64_t)1 << until) - 1 : UINT64_MAX;

	if (before > 64)
		return true;
	return !(list->full & rows & (before > 0 ? UINT64_MAX << (before - 1) : UINT64_MAX));
}

#endif
