#include "schedule/timetable.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/beam.h"

#define BEAM 8          /* states of a level that are followed */
#define FOLLOWED_HOME 4 /* of the last level */

/* A way to be done with the F of a node. */
struct timetable_state {
	double end_s;
	double cost;    /* end_s, the way back without waiting, and what others are put off */
	int node, from; /* from: place in the level before */
};

int timetable_init(struct timetable *t, const struct problem *p)
{
	size_t n = (size_t)p->n_nodes, m = (size_t)p->n_mb, steps = 2 * (size_t)p->length + 1;

	*t = (struct timetable){ .p = p, .steps = (int)steps };
	t->home_s = calloc(m, sizeof(*t->home_s));
	t->weight = calloc(m, sizeof(*t->weight));
	t->entry = calloc(m * steps, sizeof(*t->entry));
	t->first = malloc(n * sizeof(*t->first));
	t->states = calloc((size_t)p->length * n, sizeof(*t->states));
	t->place = malloc(n * sizeof(*t->place));
	if (!t->home_s || !t->weight || !t->entry || !t->first || !t->states || !t->place) {
		timetable_fini(t);
		return -ENOMEM;
	}
	memset(t->first, 0xff, n * sizeof(*t->first));
	memset(t->place, 0xff, n * sizeof(*t->place));
	return 0;
}

void timetable_fini(struct timetable *t)
{
	free(t->home_s);
	free(t->weight);
	free(t->entry);
	free(t->first);
	free(t->states);
	free(t->place);
	*t = (struct timetable){ 0 };
}

static void fill_weights(struct timetable *t, const struct engine *e)
{
	for (int i = 0; i < e->n_mb; i++) {
		int last = i * t->steps + t->steps - 1;
		double x;

		t->home_s[i] = e->start_s[last] + e->chain[last].duration_s;
		x = e->makespan_s > 0 ? t->home_s[i] / e->makespan_s : 1;
		t->weight[i] = x * x * x * x * x * x * x;
	}
}

void timetable_fill(struct timetable *t, const struct engine *e)
{
	fill_weights(t, e);
	memset(t->first, 0xff, (size_t)e->n_nodes * sizeof(*t->first));
	for (int i = e->n_booked - 1; i >= 0; i--) {
		int task = e->booked[i].task, mb = task / t->steps,
		    kind = task % t->steps - t->p->length;
		const struct engine_step *step = &e->chain[task];

		t->entry[task] = (struct timetable_entry){
			.arrival_s = e->arrival_s[task],
			.start_s = e->start_s[task],
			.free_s = e->start_s[task] + step->duration_s + e->overhead_s,
			.weight = t->weight[mb],
			.next = t->first[step->node],
			.before = -1,
			.node = step->node,
			.slots = kind < 0    ? 1
				 : kind == 0 ? 0
					     : -1,
		};
		if (t->first[step->node] >= 0)
			t->entry[t->first[step->node]].before = task;
		t->first[step->node] = task;
	}
}

/* When a task that arrives at the node would start: behind those that came before it, and, if
 * it needs a slot, when one is free. */
double timetable_start_s(const struct timetable *t, int mb, int node, double arrival_s,
		       double duration_s, bool needs_slot, double *put_off_s)
{
	int held = 0, own = mb * t->steps, memory = t->p->c->nodes[node].memory;
	double at_s = arrival_s;

	for (int32_t task = t->first[node]; task >= 0; task = t->entry[task].next) {
		const struct timetable_entry *e = &t->entry[task];

		if (task >= own && task < own + t->steps)
			continue;
		if (e->start_s >= at_s && e->arrival_s > arrival_s &&
		    !(needs_slot && held >= memory)) {
			double over_s =
				at_s + duration_s + t->p->c->dispatch_overhead_s - e->start_s;

			*put_off_s += over_s > 0 ? over_s * e->weight : 0;
			return at_s;
		}
		held += e->slots;
		at_s = e->free_s > at_s ? e->free_s : at_s;
	}
	return at_s;
}

static double delay(const struct problem *p, int u, int v)
{
	return p->delay[(size_t)u * (size_t)p->n_nodes + (size_t)v];
}

/* From the end of the last F: L, and the B in reverse. */
double timetable_home_s(const struct timetable *t, int mb, const int *path, double end_s,
			  double *put_off_s)
{
	const struct problem *p = t->p;
	int at = path[p->length - 1];

	for (int hop = p->length; hop >= 0; hop--) {
		int v = path[hop == p->length ? 0 : hop];
		const struct cluster_node *n = &p->c->nodes[v];
		double duration_s = hop == p->length ? n->loss_s : n->backward_s;
		double arrival_s = end_s + (v == at ? 0 : delay(p, at, v));

		end_s = duration_s +
			timetable_start_s(t, mb, v, arrival_s, duration_s, false, put_off_s);
		at = v;
	}
	return end_s;
}

/* The first F stays when it is. */
static double sent_s(const struct timetable *t, int mb, int data_node)
{
	return t->entry[mb * t->steps].start_s + t->p->c->nodes[data_node].forward_s;
}

double timetable_estimate(const struct timetable *t, int mb, const int *path, double *put_off_s)
{
	const struct problem *p = t->p;
	double end_s = sent_s(t, mb, path[0]);

	for (int hop = 1; hop < p->length; hop++) {
		double forward_s = p->c->nodes[path[hop]].forward_s;
		double arrival_s = end_s + delay(p, path[hop - 1], path[hop]);

		end_s = forward_s +
			timetable_start_s(t, mb, path[hop], arrival_s, forward_s, true, put_off_s);
	}
	return timetable_home_s(t, mb, path, end_s, put_off_s);
}

int timetable_waits(const struct timetable *t, int mb, struct timetable_wait *list, int most)
{
	int task = mb * t->steps + t->steps - 1, n = 0;

	while (n < most) {
		const struct timetable_entry *e = &t->entry[task];

		if (e->start_s > e->arrival_s && e->before >= 0) {
			int y = e->before / t->steps;

			if (t->entry[y * t->steps].node != e->node)
				list[n++] = (struct timetable_wait){ task / t->steps, y,
								     e->node };
			task = e->before;
		} else if (task % t->steps > 0) {
			task--;
		} else {
			break;
		}
	}
	return n;
}

static struct timetable_state *level_of(const struct timetable *t, int level)
{
	return t->states + (size_t)level * (size_t)t->p->n_nodes;
}

/* From a state of the level before to node v; *n counts the level's states. */
static void reach(struct timetable *t, int level, int from, int mb, int v, double charge,
		  int *n)
{
	const struct problem *p = t->p;
	const struct timetable_state *before = level_of(t, level - 1) + from;
	const struct cluster_node *node = &p->c->nodes[v];
	double back_s = delay(p, v, before->node), put_off_s = 0, end_s, cost;
	double arrival_s = before->end_s + delay(p, before->node, v);
	struct timetable_state *list = level_of(t, level);
	int at = t->place[v];

	if (isinf(arrival_s) || isinf(back_s) || node->memory < 1)
		return;
	end_s = node->forward_s +
		timetable_start_s(t, mb, v, arrival_s, node->forward_s, true, &put_off_s);
	cost = before->cost + end_s - before->end_s + back_s + node->backward_s +
	       charge * put_off_s;
	if (at >= 0 && list[at].cost <= cost)
		return;
	if (at < 0)
		at = t->place[v] = (*n)++;
	list[at] = (struct timetable_state){ end_s, cost, v, from };
}

/* All states of a level, of which the number that is followed is returned. */
static int fill_level(struct timetable *t, const struct solution *s, const struct near *near,
		      int mb, int level, int stage, int n_before, int banned, double charge)
{
	int size = s->start[stage + 1] - s->start[stage], n = 0;
	struct timetable_state *list = level_of(t, level);

	for (int i = 0; i < n_before; i++) {
		int by = level_of(t, level - 1)[i].node;
		const int *to = size > near->most ? near_list(near, by, stage)
						  : s->members + s->start[stage];

		for (int k = 0; k < size && k < near->most && to[k] >= 0; k++) {
			/* The near lists may be of before an exchange of roles. */
			if (to[k] != banned && s->stage_of[to[k]] == stage)
				reach(t, level, i, mb, to[k], charge, &n);
		}
	}
	for (int i = 0; i < n; i++)
		t->place[list[i].node] = -1;
	return beam_cut(list, n, sizeof(*list), offsetof(struct timetable_state, cost), BEAM);
}

static void trace(const struct timetable *t, int last, int *path)
{
	for (int level = t->p->length - 1; level > 0; level--) {
		path[level] = level_of(t, level)[last].node;
		last = level_of(t, level)[last].from;
	}
}

bool timetable_route(struct timetable *t, const struct solution *s, const struct near *near,
		     int mb, int banned, double charge, int *path)
{
	const struct problem *p = t->p;
	int tried[PLAN_MOST_PATH], n = 1, last = p->length - 1;
	double best = INFINITY;

	charge /= t->weight[mb] + 1e-9; /* against a second of its own */
	*level_of(t, 0) =
		(struct timetable_state){ .end_s = sent_s(t, mb, path[0]), .node = path[0] };
	for (int level = 1; level < p->length; level++)
		n = fill_level(t, s, near, mb, level, s->stage_of[path[level]], n, banned,
			       charge);
	memcpy(tried, path, (size_t)p->length * sizeof(*path));
	for (int i = 0; i < n && i < FOLLOWED_HOME; i++) {
		double put_off_s = 0, cost;

		trace(t, i, tried);
		cost = timetable_home_s(t, mb, tried, level_of(t, last)[i].end_s, &put_off_s);
		cost += charge * put_off_s;
		if (cost < best) {
			best = cost;
			memcpy(path, tried, (size_t)p->length * sizeof(*path));
		}
	}
	return best < INFINITY;
}
