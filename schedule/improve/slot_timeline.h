/* slot_timeline.h - when each node is busy in a run and when all its slots are taken, packed so that whether
 * a task fits in is looked up in some nanoseconds.
 *
 * First come, first served: a task that arrives starts behind those that came before it, and puts
 * nobody off if it is done when the next one starts. An estimate as in timetable.h: everyone else
 * keeps their times, which are floats here. The simulated run judges.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_SLOT_TIMELINE_H
#define SCHEDULE_SLOT_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "schedule/execution/fast_simulate.h"
#include "schedule/problem/problem.h"

#define SLOT_TIMELINE_BLOCK 8 /* rows that are compared at a time */

/* The rows of a node, ascending by arrival. */
struct slot_timeline_list {
	int32_t first, n, room; /* room: a multiple of SLOT_TIMELINE_BLOCK, more than n */
	float forward_s, backward_s; /* of the node */
	uint64_t full;          /* bit i: after row i all slots are taken; of the first 64 rows */
};

struct slot_timeline {
	const struct problem *p;
	int steps;                /* tasks of a microbatch */
	float overhead_s;
	struct arena arena;       /* of the arrays below */
	struct slot_timeline_list *list;   /* (n_nodes) */
	float *arrival_s, *start_s, *free_s; /* rows of all nodes; of those there are not yet the
					      * first two are INFINITY. free_s: from when the node
					      * may start another */
	int32_t *task;            /* microbatch * steps + step */
	/* As these were when the timeline was filled. */
	struct slot_timeline_list *kept_list;
	float *kept_arrival_s, *kept_start_s, *kept_free_s;
	int32_t *kept_task;
	int *changed, n_changed;  /* (n_nodes) lists that differ */
	bool *is_changed;         /* (n_nodes) */
};

/* A task at a node. */
struct slot_timeline_task {
	int32_t node, task;
	float arrival_s, start_s, free_s;
};

/* Empty until slot_timeline_fill. -ENOMEM. */
int slot_timeline_init(struct slot_timeline *g, const struct problem *p);
void slot_timeline_fini(struct slot_timeline *g);
/* From the simulation's last run, which must have come to its end. What waited for a slot counts as if
 * it had arrived together with what came before it. */
void slot_timeline_fill(struct slot_timeline *g, const struct fast_simulate *e);

/* All tasks of the microbatch leave the node; one comes, behind those that arrived no later (false:
 * no room); all is as it was filled. */
void slot_timeline_take_out(struct slot_timeline *g, int node, int mb);
bool slot_timeline_put_in(struct slot_timeline *g, const struct slot_timeline_task *t);
void slot_timeline_restore(struct slot_timeline *g);

/* How many of a node's rows come before a task that arrives then. */
static inline int slot_timeline_before(const struct slot_timeline *g, const struct slot_timeline_list *list,
				       float arrival_s)
{
	const float *row = g->arrival_s + list->first;
	int n = 0;

	for (int b = 0; b < list->n; b += SLOT_TIMELINE_BLOCK, row += SLOT_TIMELINE_BLOCK) {
		for (int i = 0; i < SLOT_TIMELINE_BLOCK; i++)
			n += row[i] <= arrival_s;
	}
	return n;
}

/* When a task starts there, `before` rows being ahead of it; adds the seconds by which it puts the
 * next one off to *over_s. */
static inline float slot_timeline_start_s(const struct slot_timeline *g, const struct slot_timeline_list *list,
					  int before, float arrival_s, float duration_s, float *over_s)
{
	float free_s = before > 0 ? g->free_s[list->first + before - 1] : arrival_s;
	float start_s = free_s > arrival_s ? free_s : arrival_s;
	float over = start_s + duration_s + g->overhead_s - g->start_s[list->first + before];

	*over_s += over > 0 ? over : 0;
	return start_s;
}

/* Whether a slot is free all the while from an F behind `before` rows to a B behind `until`. */
static inline bool slot_timeline_have_slot(const struct slot_timeline_list *list, int before, int until)
{
	uint64_t rows = until < 64 ? ((uint64_t)1 << until) - 1 : UINT64_MAX;

	if (before > 64)
		return true;
	return !(list->full & rows & (before > 0 ? UINT64_MAX << (before - 1) : UINT64_MAX));
}

#endif
