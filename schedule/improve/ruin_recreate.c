#include "schedule/improve/ruin_recreate.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/improve/beam.h"

#define BEAM 4 /* states of a level that are followed */

/* A way to be done with the F of a node. */
struct ruin_recreate_state {
	double end_s, cost; /* as in timetable.c */
	int node, from;     /* from: place in the level before */
	struct visit visit;
};

int ruin_recreate_init(struct ruin_recreate *r, struct timetable *t)
{
	const struct problem *p = t->p;
	size_t n = VISIT_OWINGS * (size_t)p->n_nodes;

	*r = (struct ruin_recreate){ .p = p, .t = t };
	stage_quota_init(&r->quota, p);
	r->states = calloc((size_t)p->length * n, sizeof(*r->states));
	r->place = malloc(n * sizeof(*r->place));
	if (!r->states || !r->place) {
		ruin_recreate_fini(r);
		return -ENOMEM;
	}
	memset(r->place, 0xff, n * sizeof(*r->place));
	return 0;
}

void ruin_recreate_fini(struct ruin_recreate *r)
{
	free(r->states);
	free(r->place);
	*r = (struct ruin_recreate){ 0 };
}

void ruin_recreate_take_out(struct ruin_recreate *r, const struct solution *s, int mb)
{
	assert(r->quota.out == r->n_out && r->n_out < RUIN_RECREATE_MOST);
	timetable_take_out(r->t, mb);
	stage_quota_leave(&r->quota, s, s->path + (size_t)mb * (size_t)r->p->length);
	r->out[r->n_out++] = mb;
}

void ruin_recreate_undo(struct ruin_recreate *r)
{
	timetable_take_back(r->t);
	for (int k = 0; k < r->n_out; k++)
		timetable_put_back(r->t, r->out[k]);
	stage_quota_init(&r->quota, r->p);
	r->n_out = 0;
}

/* What goes on below: the search for one path. */
struct search {
	struct ruin_recreate *r;
	const struct solution *s;
	int level, n; /* n: states of the level */
	struct beam beam; /* of them */
	double charge;
};

static double delay(const struct problem *p, int u, int v)
{
	return p->delay[(size_t)u * (size_t)p->n_nodes + (size_t)v];
}

static struct ruin_recreate_state *level_of(const struct ruin_recreate *r, int level)
{
	return r->states + VISIT_OWINGS * (size_t)level * (size_t)r->p->n_nodes;
}

static void reach(struct search *q, int from, int v, const struct visit *visit)
{
	const struct problem *p = q->r->p;
	const struct cluster_node *node = &p->c->nodes[v];
	const struct ruin_recreate_state *before = level_of(q->r, q->level - 1) + from;
	struct ruin_recreate_state *list = level_of(q->r, q->level);
	double travel_s = delay(p, before->node, v), put_off_s = 0, start_s, cost;
	int *place = &q->r->place[VISIT_OWINGS * v + (int)visit->owing];

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
	list[*place] = (struct ruin_recreate_state){ start_s + node->forward_s, cost, v, from, *visit };
	beam_offer(&q->beam, *place, cost);
}

static void extend(struct search *q, int from)
{
	struct visit next[STAGE_QUOTA_MOST_NEXT];
	int n = stage_quota_next(&q->r->quota, q->level, &level_of(q->r, q->level - 1)[from].visit, next);

	for (int k = 0; k < n; k++) {
		int stage = next[k].stage;

		for (int i = q->s->start[stage]; i < q->s->start[stage + 1]; i++)
			reach(q, from, q->s->members[i], &next[k]);
	}
}

static void fill_level(struct search *q)
{
	struct ruin_recreate_state *list = level_of(q->r, q->level);
	struct beam before = q->beam;

	q->n = 0;
	q->beam = (struct beam){ .width = BEAM };
	for (int i = 0; i < before.n; i++)
		extend(q, before.at[i]);
	for (int i = 0; i < q->n; i++)
		q->r->place[VISIT_OWINGS * list[i].node + (int)list[i].visit.owing] = -1;
}

static void trace(const struct ruin_recreate *r, int last, int *path)
{
	for (int level = r->p->length - 1; level > 0; level--) {
		path[level] = level_of(r, level)[last].node;
		last = level_of(r, level)[last].from;
	}
}

/* The best of the ways found, followed home, into path. */
static bool choose(const struct search *q, int *path)
{
	const struct ruin_recreate *r = q->r;
	int last = r->p->length - 1, tried[PLAN_MOST_PATH];
	double best = INFINITY;

	tried[0] = path[0];
	for (int i = 0; i < q->beam.n; i++) {
		const struct ruin_recreate_state *end = level_of(r, last) + q->beam.at[i];
		double put_off_s = 0, cost;

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
static void put_tasks_in(struct ruin_recreate *r, int mb, const int *path)
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

bool ruin_recreate_put_in(struct ruin_recreate *r, const struct solution *s, int mb, double charge,
		     int *path)
{
	const struct problem *p = r->p;
	struct search q = { .r = r, .s = s, .beam = { .width = 1, .n = 1 } };

	q.charge = charge / (r->t->weight[mb] + 1e-9);
	stage_quota_count(&r->quota);
	*level_of(r, 0) = (struct ruin_recreate_state){
		.end_s = timetable_row(r->t, mb * r->t->steps)->start_s +
			 p->c->nodes[path[0]].forward_s,
		.node = path[0]
	};
	for (q.level = 1; q.level < p->length; q.level++)
		fill_level(&q);
	if (!choose(&q, path))
		return false;
	stage_quota_return(&r->quota, s, path);
	if (r->quota.out > 0)
		put_tasks_in(r, mb, path);
	return true;
}
