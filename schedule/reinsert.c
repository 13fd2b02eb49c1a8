#include "schedule/reinsert.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/beam.h"

#define BEAM 4 /* states of a level that are followed */

/* Where a path stands after a visit. Of two neighbours that are exchanged the later stage comes
 * first: then the path owes the earlier one. */
enum owing { NOTHING, EARLIER, PAID };

/* A way to be done with the F of a node. */
struct reinsert_state {
	double end_s, cost; /* as in timetable.c */
	int node, from;     /* from: place in the level before */
	int top;            /* latest stage seen */
	enum owing owing;
};

int reinsert_init(struct reinsert *r, struct timetable *t)
{
	const struct problem *p = t->p;
	size_t n = 3 * (size_t)p->n_nodes, stages = (size_t)p->n_stages;

	*r = (struct reinsert){ .p = p, .t = t };
	r->need = calloc(stages, sizeof(*r->need));
	r->states = calloc((size_t)p->length * n, sizeof(*r->states));
	r->place = malloc(n * sizeof(*r->place));
	r->open_after = calloc(stages, sizeof(*r->open_after));
	r->forced_after = calloc(stages, sizeof(*r->forced_after));
	if (!r->need || !r->states || !r->place || !r->open_after ||
	    !r->forced_after) {
		reinsert_fini(r);
		return -ENOMEM;
	}
	memset(r->place, 0xff, n * sizeof(*r->place));
	return 0;
}

void reinsert_fini(struct reinsert *r)
{
	free(r->need);
	free(r->states);
	free(r->place);
	free(r->open_after);
	free(r->forced_after);
	*r = (struct reinsert){ 0 };
}

/* Still out. */
static int left_of(const struct reinsert *r)
{
	return r->n_out - r->n_in;
}

void reinsert_take_out(struct reinsert *r, const struct solution *s, int mb)
{
	const int *path = s->path + (size_t)mb * (size_t)r->p->length;

	assert(r->n_in == 0 && r->n_out < REINSERT_MOST);
	timetable_take_out(r->t, mb);
	for (int h = 1; h < r->p->length; h++)
		r->need[s->stage_of[path[h]]]++;
	r->out[r->n_out++] = mb;
}

void reinsert_undo(struct reinsert *r)
{
	timetable_take_back(r->t);
	for (int k = 0; k < r->n_out; k++)
		timetable_put_back(r->t, r->out[k]);
	memset(r->need, 0, (size_t)r->p->n_stages * sizeof(*r->need));
	r->n_out = r->n_in = 0;
}

/* What goes on below: the search for one path. */
struct search {
	struct reinsert *r;
	const struct solution *s;
	int level, n; /* n: states of the level */
	struct beam beam; /* of them */
	double charge;
};

static double delay(const struct problem *p, int u, int v)
{
	return p->delay[(size_t)u * (size_t)p->n_nodes + (size_t)v];
}

static struct reinsert_state *level_of(const struct reinsert *r, int level)
{
	return r->states + 3 * (size_t)level * (size_t)r->p->n_nodes;
}

static void reach(struct search *q, int from, int v, enum owing owing, int top)
{
	const struct problem *p = q->r->p;
	const struct cluster_node *node = &p->c->nodes[v];
	const struct reinsert_state *before = level_of(q->r, q->level - 1) + from;
	struct reinsert_state *list = level_of(q->r, q->level);
	double travel_s = delay(p, before->node, v), put_off_s = 0, start_s, cost;
	int *place = &q->r->place[3 * v + (int)owing];

	if (node->memory < 1)
		return;
	cost = before->cost + travel_s + node->forward_s + delay(p, v, before->node) +
	       node->backward_s;
	if (!(cost < INFINITY) || (*place >= 0 && list[*place].cost <= cost))
		return;
	if (beam_excludes(&q->beam, cost)) {
		start_s = INFINITY;
	} else {
		travel_s += before->end_s; /* the arrival */
		start_s = timetable_start_s(q->r->t, v, travel_s, node->forward_s, true,
					    &put_off_s);
		cost += start_s - travel_s + q->charge * put_off_s;
		if (*place >= 0 && list[*place].cost <= cost)
			return;
	}
	if (*place < 0)
		*place = q->n++;
	list[*place] = (struct reinsert_state){
		start_s + node->forward_s, cost, v, from, top, owing
	};
	beam_offer(&q->beam, *place, cost);
}

static void reach_stage(struct search *q, int from, int stage, enum owing owing, int top)
{
	for (int i = q->s->start[stage]; i < q->s->start[stage + 1]; i++)
		reach(q, from, q->s->members[i], owing, top);
}

/* May the path, seen up to this stage, still be filled by so many visits, and see all it must?
 */
static bool fits(const struct reinsert *r, int stage, int more)
{
	return r->need[stage] > 0 && r->open_after[stage] >= more &&
	       r->forced_after[stage] <= more;
}

static void extend(struct search *q, int from)
{
	const struct reinsert *r = q->r;
	const struct reinsert_state *before = level_of(r, q->level - 1) + from;
	int more = r->p->length - 1 - q->level; /* visits after this one */

	if (before->owing == EARLIER) {
		reach_stage(q, from, before->top - 1, PAID, before->top);
		return;
	}
	for (int stage = before->top + 1; stage < r->p->n_stages; stage++) {
		if (fits(r, stage, more))
			reach_stage(q, from, stage, NOTHING, stage);
		if (more > 0 && !r->p->q->ascending && stage + 1 < r->p->n_stages &&
		    r->need[stage] > 0 && fits(r, stage + 1, more - 1))
			reach_stage(q, from, stage + 1, EARLIER, stage + 1);
		if (r->need[stage] == left_of(r))
			return;
	}
}

static void fill_level(struct search *q)
{
	struct reinsert_state *list = level_of(q->r, q->level);
	struct beam before = q->beam;

	q->n = 0;
	q->beam = (struct beam){ .width = BEAM };
	for (int i = 0; i < before.n; i++)
		extend(q, before.at[i]);
	for (int i = 0; i < q->n; i++)
		q->r->place[3 * list[i].node + (int)list[i].owing] = -1;
}

static void count_stages(struct reinsert *r)
{
	for (int s = r->p->n_stages - 1, open = 0, forced = 0; s >= 1; s--) {
		r->open_after[s] = open;
		r->forced_after[s] = forced;
		open += r->need[s] > 0;
		forced += r->need[s] == left_of(r);
	}
}

static bool is_complete(const struct reinsert *r, const struct reinsert_state *last)
{
	for (int s = last->top + 1; s < r->p->n_stages; s++) {
		if (r->need[s] == left_of(r))
			return false;
	}
	return last->owing != EARLIER;
}

static void trace(const struct reinsert *r, int last, int *path)
{
	for (int level = r->p->length - 1; level > 0; level--) {
		path[level] = level_of(r, level)[last].node;
		last = level_of(r, level)[last].from;
	}
}

/* The best of the ways found, followed home, into path. */
static bool choose(const struct search *q, int *path)
{
	const struct reinsert *r = q->r;
	int last = r->p->length - 1, tried[PLAN_MOST_PATH];
	double best = INFINITY;

	tried[0] = path[0];
	for (int i = 0; i < q->beam.n; i++) {
		const struct reinsert_state *end = level_of(r, last) + q->beam.at[i];
		double put_off_s = 0, cost;

		if (!is_complete(r, end))
			continue;
		trace(r, q->beam.at[i], tried);
		cost = timetable_home_s(r->t, tried, end->end_s, &put_off_s);
		cost += q->charge * put_off_s;
		if (cost < best) {
			best = cost;
			memcpy(path, tried, (size_t)r->p->length * sizeof(*path));
		}
	}
	return best < INFINITY;
}

/* Its tasks along the path, each behind those that start before it. The first F stays when it is. */
static void put_tasks_in(struct reinsert *r, int mb, const int *path)
{
	const struct problem *p = r->p;
	int own = mb * r->t->steps, length = p->length, at = path[0];
	double arrival_s = 0, put_off_s = 0;
	struct timetable_row rows[2 * PLAN_MOST_PATH + 1];

	for (int i = 0; i < r->t->steps; i++) {
		int v = path[i < length ? i : i == length ? 0 : 2 * length - i];
		const struct cluster_node *node = &p->c->nodes[v];
		double duration_s = i < length	  ? node->forward_s
				    : i == length ? node->loss_s
						  : node->backward_s;
		struct timetable_row *row = &rows[i];

		*row = *timetable_row(r->t, own + i);
		if (i > 0) {
			row->arrival_s = arrival_s + (v == at ? 0 : delay(p, at, v));
			row->start_s = timetable_start_s(r->t, v, row->arrival_s, duration_s,
							 i < length, &put_off_s);
		}
		arrival_s = row->start_s + duration_s;
		row->free_s = arrival_s + p->c->dispatch_overhead_s;
		at = v;
	}
	for (int i = 0; i < r->t->steps; i++)
		timetable_put_in(r->t, path[i < length ? i : i == length ? 0 : 2 * length - i],
				 &rows[i]);
}

bool reinsert_put_in(struct reinsert *r, const struct solution *s, int mb, double charge,
		     int *path)
{
	const struct problem *p = r->p;
	struct search q = { .r = r, .s = s, .beam = { .width = 1, .n = 1 } };

	q.charge = charge / (r->t->weight[mb] + 1e-9);
	count_stages(r);
	*level_of(r, 0) = (struct reinsert_state){
		.end_s = timetable_row(r->t, mb * r->t->steps)->start_s +
			 p->c->nodes[path[0]].forward_s,
		.node = path[0]
	};
	for (q.level = 1; q.level < p->length; q.level++)
		fill_level(&q);
	if (!choose(&q, path))
		return false;
	for (int h = 1; h < p->length; h++)
		r->need[s->stage_of[path[h]]]--;
	r->n_in++;
	if (left_of(r) > 0)
		put_tasks_in(r, mb, path);
	return true;
}
