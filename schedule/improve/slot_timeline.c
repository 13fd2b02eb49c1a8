/* Each node has a list of rows, one for each task, in packed arrays with room for the tasks that a
 * move adds. slot_timeline_restore undoes a move: it replaces the changed lists by the copies
 * that slot_timeline_fill made. */
#include "schedule/improve/slot_timeline.h"

#include <math.h>
#include <string.h>

#define ROOM 16 /* largest number of rows that moves can add to a node */

static int round_up(int n)
{
	return (n + SLOT_TIMELINE_BLOCK - 1) / SLOT_TIMELINE_BLOCK * SLOT_TIMELINE_BLOCK;
}

static size_t most_rows(const struct problem *p)
{
	return (size_t)p->n_mb * (2 * (size_t)p->length + 1) +
	       (size_t)p->n_nodes * (ROOM + SLOT_TIMELINE_BLOCK);
}

void slot_timeline_init(struct slot_timeline *g, const struct problem *p)
{
	size_t n = (size_t)p->n_nodes, rows = most_rows(p);

	*g = (struct slot_timeline){ .p = p,
			    .steps = 2 * p->length + 1,
			    .overhead_s = (float)p->c->dispatch_overhead_s };
	g->list = arena_array(&g->arena, n, sizeof(*g->list));
	g->kept_list = arena_array(&g->arena, n, sizeof(*g->kept_list));
	g->arrival_s = arena_array(&g->arena, rows, sizeof(*g->arrival_s));
	g->start_s = arena_array(&g->arena, rows, sizeof(*g->start_s));
	g->free_s = arena_array(&g->arena, rows, sizeof(*g->free_s));
	g->task = arena_array(&g->arena, rows, sizeof(*g->task));
	g->kept_arrival_s = arena_array(&g->arena, rows, sizeof(*g->kept_arrival_s));
	g->kept_start_s = arena_array(&g->arena, rows, sizeof(*g->kept_start_s));
	g->kept_free_s = arena_array(&g->arena, rows, sizeof(*g->kept_free_s));
	g->kept_task = arena_array(&g->arena, rows, sizeof(*g->kept_task));
	g->changed = arena_array(&g->arena, n, sizeof(*g->changed));
	g->is_changed = arena_array(&g->arena, n, sizeof(*g->is_changed));
}

void slot_timeline_fini(struct slot_timeline *g)
{
	arena_free(&g->arena);
	*g = (struct slot_timeline){ 0 };
}

static void count_slots(struct slot_timeline *g, int node)
{
	struct slot_timeline_list *list = &g->list[node];
	int n = list->n < 64 ? list->n : 64, held = 0, memory = g->p->c->nodes[node].memory;

	list->full = 0;
	for (int i = 0; i < n; i++) {
		int step = g->task[list->first + i] % g->steps;

		held += (step < g->p->length) - (step > g->p->length);
		list->full |= (uint64_t)(held >= memory) << i;
	}
}

static void lay_out(struct slot_timeline *g, const struct fast_simulate *e)
{
	int32_t first = 0;

	for (int v = 0; v < e->n_nodes; v++)
		g->list[v].n = 0;
	for (int i = 0; i < e->n_booked; i++)
		g->list[e->chain[e->booked[i].task].node].n++;
	for (int v = 0; v < e->n_nodes; v++) {
		struct slot_timeline_list *list = &g->list[v];

		*list = (struct slot_timeline_list){ .first = first,
					    .room = round_up(list->n + ROOM),
					    .forward_s =
						    (float)problem_forward_s(g->p, e->work, v),
					    .backward_s =
						    (float)problem_backward_s(g->p, e->work, v) };
		first += list->room;
	}
}

static void keep_rows(struct slot_timeline *g)
{
	const struct slot_timeline_list *last = &g->list[g->p->n_nodes - 1];
	size_t rows = (size_t)(last->first + last->room);

	memcpy(g->kept_list, g->list, (size_t)g->p->n_nodes * sizeof(*g->list));
	memcpy(g->kept_arrival_s, g->arrival_s, rows * sizeof(*g->arrival_s));
	memcpy(g->kept_start_s, g->start_s, rows * sizeof(*g->start_s));
	memcpy(g->kept_free_s, g->free_s, rows * sizeof(*g->free_s));
	memcpy(g->kept_task, g->task, rows * sizeof(*g->task));
}

void slot_timeline_fill(struct slot_timeline *g, const struct fast_simulate *e)
{
	lay_out(g, e);
	for (int i = 0; i < e->n_booked; i++) {
		int task = e->booked[i].task;
		struct slot_timeline_list *list = &g->list[e->chain[task].node];
		int at = list->first + list->n++;
		float arrival_s = (float)e->arrival_s[task];

		if (at > list->first && g->arrival_s[at - 1] > arrival_s)
			arrival_s = g->arrival_s[at - 1];
		g->arrival_s[at] = arrival_s;
		g->start_s[at] = (float)e->start_s[task];
		g->free_s[at] = (float)(e->start_s[task] + e->chain[task].duration_s +
					e->overhead_s);
		g->task[at] = task;
	}
	for (int v = 0; v < e->n_nodes; v++) {
		const struct slot_timeline_list *list = &g->list[v];

		for (int i = list->n; i < list->room; i++)
			g->arrival_s[list->first + i] = g->start_s[list->first + i] = INFINITY;
		count_slots(g, v);
	}
	keep_rows(g);
	for (int i = 0; i < g->n_changed; i++)
		g->is_changed[g->changed[i]] = false;
	g->n_changed = 0;
}

static void note_change(struct slot_timeline *g, int node)
{
	if (!g->is_changed[node])
		g->changed[g->n_changed++] = node;
	g->is_changed[node] = true;
}

static void move_row(struct slot_timeline *g, int to, int from)
{
	g->arrival_s[to] = g->arrival_s[from];
	g->start_s[to] = g->start_s[from];
	g->free_s[to] = g->free_s[from];
	g->task[to] = g->task[from];
}

void slot_timeline_take_out(struct slot_timeline *g, int node, int mb)
{
	struct slot_timeline_list *list = &g->list[node];
	int end = list->first + list->n, to = list->first;

	note_change(g, node);
	for (int at = list->first; at < end; at++) {
		if (g->task[at] / g->steps != mb)
			move_row(g, to++, at);
	}
	list->n = to - list->first;
	for (; to < end; to++)
		g->arrival_s[to] = g->start_s[to] = INFINITY;
	count_slots(g, node);
}

bool slot_timeline_put_in(struct slot_timeline *g, const struct slot_timeline_task *t)
{
	struct slot_timeline_list *list = &g->list[t->node];
	int at = list->first + list->n;

	if (list->n + 1 == list->room)
		return false;
	note_change(g, t->node);
	list->n++;
	for (; at > list->first && g->arrival_s[at - 1] > t->arrival_s; at--)
		move_row(g, at, at - 1);
	g->arrival_s[at] = t->arrival_s;
	g->start_s[at] = t->start_s;
	g->free_s[at] = t->free_s;
	g->task[at] = t->task;
	count_slots(g, t->node);
	return true;
}

void slot_timeline_restore(struct slot_timeline *g)
{
	for (int i = 0; i < g->n_changed; i++) {
		int v = g->changed[i];
		size_t at = (size_t)g->list[v].first, n = (size_t)g->list[v].room;

		g->list[v] = g->kept_list[v];
		memcpy(g->arrival_s + at, g->kept_arrival_s + at, n * sizeof(*g->arrival_s));
		memcpy(g->start_s + at, g->kept_start_s + at, n * sizeof(*g->start_s));
		memcpy(g->free_s + at, g->kept_free_s + at, n * sizeof(*g->free_s));
		memcpy(g->task + at, g->kept_task + at, n * sizeof(*g->task));
		g->is_changed[v] = false;
	}
	g->n_changed = 0;
}
