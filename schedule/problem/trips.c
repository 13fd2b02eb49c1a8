#include "schedule/problem/trips.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/problem/candidate_lists.h"

#define MOST_LOOKED_AT 20000 /* partial trips of one data node */
#define NEAR 8 /* next hops looked at in each stage */

/* Depth first, near nodes first; branches that cannot beat the
 * worst of the trips kept are cut. */
struct finder {
	struct trips *t;
	const struct solution *s;
	int data_node, place, looked_at;
	int path[PLAN_MOST_PATH];
	struct candidate_lists candidates;
	double shortest_hop; /* any hop there and back, and the work at its end */
};

static double hop(const struct problem *p, int u, int v)
{
	const struct cluster_node *n = &p->c->nodes[v];

	return p->round[(size_t)u * (size_t)p->n_nodes + (size_t)v] + n->forward_s + n->backward_s;
}

static void keep(struct finder *f, double seconds)
{
	struct trips *t = f->t;
	const struct problem *p = t->p;
	struct trip *list = t->trips + (size_t)f->place * (size_t)t->most;
	int *n = &t->count[f->place], at, *room;
	uint64_t stages = 0;

	if (*n == t->most && seconds >= list[*n - 1].seconds)
		return;
	room = *n == t->most ? (int *)list[*n - 1].path
			     : t->paths + ((size_t)f->place * (size_t)t->most + (size_t)*n) *
						  (size_t)p->length;
	if (*n < t->most)
		++*n;
	memcpy(room, f->path, (size_t)p->length * sizeof(int));
	for (int h = 0; h < p->length; h++)
		stages |= (uint64_t)1 << f->s->stage_of[f->path[h]];
	for (at = *n - 1; at > 0 && list[at - 1].seconds > seconds; at--)
		list[at] = list[at - 1];
	list[at] = (struct trip){ seconds, stages, room };
}

static double worst_kept(const struct finder *f)
{
	int n = f->t->count[f->place];

	return n < f->t->most ? INFINITY : f->t->trips[(size_t)f->place * (size_t)f->t->most +
							(size_t)n - 1].seconds;
}

static void extend(struct finder *f, int n, int top, double seconds);

/* Visits v, which raises the highest stage to top. */
static void visit(struct finder *f, int n, int v, int top, double seconds)
{
	const struct problem *p = f->t->p;
	double with = seconds + hop(p, f->path[n - 1], v);

	if (with + (p->length - n - 1) * f->shortest_hop >= worst_kept(f))
		return;
	f->path[n] = v;
	extend(f, n + 1, top, with);
}

static void visit_stage(struct finder *f, int n, int stage, int top, double seconds)
{
	const int *list = candidate_lists_of(&f->candidates, f->path[n - 1], stage);

	for (int i = 0; i < f->candidates.most && list[i] >= 0; i++)
		visit(f, n, list[i], top, seconds);
}

static void extend(struct finder *f, int n, int top, double seconds)
{
	const struct problem *p = f->t->p;
	const struct solution *s = f->s;
	int last = f->path[n - 1], stage = s->stage_of[last];

	if (n == p->length) {
		seconds += p->round[(size_t)last * (size_t)p->n_nodes + (size_t)f->data_node];
		if (isfinite(seconds))
			keep(f, seconds);
		return;
	}
	if (f->looked_at++ > MOST_LOOKED_AT && f->t->count[f->place] > 0)
		return;
	/* The stage under the last, if that was entered from below it. */
	if (!p->q->ascending && n > 1 && stage == top && stage > 1 && s->stage_of[f->path[n - 2]] < stage - 1) {
		bool after_exchange = n > 2 && s->stage_of[f->path[n - 3]] == s->stage_of[f->path[n - 2]] + 1;
		int below = after_exchange ? s->stage_of[f->path[n - 3]] : s->stage_of[f->path[n - 2]];

		if (below < stage - 1)
			visit_stage(f, n, stage - 1, top, seconds);
	}
	for (int k = top + 1; k < p->n_stages; k++)
		visit_stage(f, n, k, k, seconds);
}

static double shortest_hop(const struct problem *p)
{
	double least = INFINITY;

	for (int i = 0; i < p->n_nodes; i++) {
		for (int j = 0; j < p->n_nodes; j++) {
			if (i != j && !p->out[i] && !p->out[j])
				least = fmin(least, hop(p, i, j));
		}
	}
	return isfinite(least) ? least : 0;
}

int trips_init(struct trips *t, const struct problem *p, const struct solution *s, int most)
{
	size_t data = (size_t)p->sizes[0];
	struct finder f = { .t = t, .s = s, .shortest_hop = shortest_hop(p) };

	*t = (struct trips){ .p = p, .most = most };
	t->count = calloc(data, sizeof(*t->count));
	t->trips = calloc(data * (size_t)most, sizeof(*t->trips));
	t->paths = calloc(data * (size_t)most * (size_t)p->length, sizeof(*t->paths));
	if (!t->count || !t->trips || !t->paths || candidate_lists_init(&f.candidates, p, NEAR) != 0) {
		trips_fini(t);
		return -ENOMEM;
	}
	candidate_lists_fill(&f.candidates, p, s);
	for (int place = 0; place < (int)data; place++) {
		const struct cluster_node *n;

		f.place = place;
		f.data_node = f.path[0] = s->members[place];
		f.looked_at = 0;
		n = &p->c->nodes[f.data_node];
		extend(&f, 1, 0, n->forward_s + n->loss_s + n->backward_s);
	}
	candidate_lists_fini(&f.candidates);
	return 0;
}

void trips_fini(struct trips *t)
{
	free(t->count);
	free(t->trips);
	free(t->paths);
	*t = (struct trips){ 0 };
}
