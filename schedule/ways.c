#include "schedule/ways.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALIKE_FROM 64 /* nodes from which on those that are alike are taken as one */

struct ways {
	const struct problem *p;
	const struct solution *s;
	int n;          /* groups, by stage */
	int *group;     /* (n_nodes) */
	int *sample;    /* (n) a node of each */
	int *first;     /* (n_stages + 1) groups of each stage */
	double *delay;  /* (n, n) the least between any two */
	double *hop[3]; /* (n, n) by kind: from u to v and the work at v; NULL: not yet asked
			   for */
	double *way;    /* (length, n) fastest way to be there after so many visits */
	double *from_below; /* the same, coming from below the stage under it */
	double *exchanged;  /* the same, the stage above visited just before */
	long work;
};

static bool alike(const struct problem *p, int u, int v)
{
	const struct cluster_node *a = &p->c->nodes[u], *b = &p->c->nodes[v];

	return a->forward_s == b->forward_s && a->backward_s == b->backward_s &&
	       a->loss_s == b->loss_s && a->weight_gradient_s == b->weight_gradient_s &&
	       a->memory == b->memory && strcmp(a->location, b->location) == 0;
}

static void group_nodes(struct ways *w)
{
	const struct problem *p = w->p;
	const struct solution *s = w->s;

	for (int stage = 0; stage < p->n_stages; stage++) {
		w->first[stage] = w->n;
		for (int i = s->start[stage]; i < s->start[stage + 1]; i++) {
			int v = s->members[i],
			    g = p->n_nodes < ALIKE_FROM ? w->n : w->first[stage];

			while (g < w->n && !alike(p, w->sample[g], v))
				g++;
			if (g == w->n)
				w->sample[w->n++] = v;
			w->group[v] = g;
		}
	}
	w->first[p->n_stages] = w->n;
}

static void find_delays(struct ways *w)
{
	const struct problem *p = w->p;
	int in = w->s->start[p->n_stages];

	for (size_t i = 0; i < (size_t)w->n * (size_t)w->n; i++)
		w->delay[i] = INFINITY;
	for (int i = 0; i < in; i++) {
		int u = w->s->members[i];
		double *row = w->delay + (size_t)w->group[u] * (size_t)w->n;
		const double *delay = p->delay + (size_t)u * (size_t)p->n_nodes;

		for (int k = 0; k < in; k++) {
			int v = w->s->members[k];

			if (u != v && delay[v] < row[w->group[v]])
				row[w->group[v]] = delay[v];
		}
	}
}

struct ways *ways_new(const struct problem *p, const struct solution *s)
{
	struct ways *w = calloc(1, sizeof(*w));
	size_t nodes = (size_t)p->n_nodes, cells;

	if (!w)
		return NULL;
	w->p = p;
	w->s = s;
	w->group = calloc(nodes, sizeof(*w->group));
	w->sample = calloc(nodes, sizeof(*w->sample));
	w->first = calloc((size_t)p->n_stages + 1, sizeof(*w->first));
	if (!w->group || !w->sample || !w->first)
		goto free_ways;
	group_nodes(w);
	cells = (size_t)w->n * (size_t)p->length;
	w->delay = malloc((size_t)w->n * (size_t)w->n * sizeof(double));
	w->way = malloc(cells * sizeof(double));
	w->from_below = malloc(cells * sizeof(double));
	w->exchanged = malloc(cells * sizeof(double));
	if (!w->delay || !w->way || !w->from_below || !w->exchanged)
		goto free_ways;
	find_delays(w);
	return w;

free_ways:
	ways_free(w);
	return NULL;
}

void ways_free(struct ways *w)
{
	if (!w)
		return;
	free(w->group);
	free(w->sample);
	free(w->first);
	free(w->delay);
	for (int kind = 0; kind < 3; kind++)
		free(w->hop[kind]);
	free(w->way);
	free(w->from_below);
	free(w->exchanged);
	free(w);
}

int ways_like(const struct ways *w, int data_node)
{
	return w->group[data_node];
}

long ways_work(const struct ways *w)
{
	return w->work;
}

/* The delay and work of a hop in the direction asked for. Nodes without memory cannot be
 * visited. */
static double hop_s(const struct ways *w, int u, int v, enum way_kind kind)
{
	const struct cluster_node *n = &w->p->c->nodes[w->sample[v]];
	double there = w->delay[(size_t)u * (size_t)w->n + (size_t)v];
	double back = w->delay[(size_t)v * (size_t)w->n + (size_t)u];

	if (v >= w->first[1] && n->memory < 1)
		return INFINITY;
	switch (kind) {
	case WAY_OUT:
		return there + n->forward_s;
	case WAY_BACK:
		return back + n->backward_s;
	default:
		return there + n->forward_s + back + n->backward_s;
	}
}

static const double *hops(struct ways *w, enum way_kind kind)
{
	size_t n = (size_t)w->n;

	if (!w->hop[kind]) {
		w->hop[kind] = malloc(n * n * sizeof(double));
		for (size_t i = 0; w->hop[kind] && i < n * n; i++)
			w->hop[kind][i] = hop_s(w, (int)(i / n), (int)(i % n), kind);
	}
	return w->hop[kind];
}

static void lower(double *cell, double s)
{
	if (s < *cell)
		*cell = s;
}

/* From u, reached after k visits with `top` the highest stage so far, to all that may follow.
 */
static void spread(struct ways *w, int k, const double *from_u, int top, double s)
{
	double *way = w->way + (size_t)(k + 1) * (size_t)w->n;
	double *from_below = w->from_below + (size_t)(k + 1) * (size_t)w->n;
	int next = w->first[top + 1],
	    after = top + 2 <= w->p->n_stages ? w->first[top + 2] : w->n;

	for (int v = next; v < w->n; v++)
		lower(&way[v], s + from_u[v]);
	for (int v = after; v < w->n; v++)
		lower(&from_below[v], s + from_u[v]);
	w->work += w->n - next;
}

/* A stage entered from below the one under it: now that one. */
static void exchange(struct ways *w, int k, const double *from_v, int under, double s)
{
	double *exchanged = w->exchanged + (size_t)(k + 1) * (size_t)w->n;

	for (int v = w->first[under]; v < w->first[under + 1]; v++)
		lower(&exchanged[v], s + from_v[v]);
}

static double way_home(const struct ways *w, int data, enum way_kind kind)
{
	size_t last = (size_t)(w->p->length - 1) * (size_t)w->n, n = (size_t)w->n;
	double best = INFINITY;

	for (int v = w->first[1]; v < w->n; v++) {
		double there = w->delay[(size_t)v * n + (size_t)data];
		double back = w->delay[(size_t)data * n + (size_t)v];
		double home = kind == WAY_OUT ? there : kind == WAY_BACK ? back : there + back;

		lower(&best,
		      fmin(w->way[last + (size_t)v], w->exchanged[last + (size_t)v]) + home);
	}
	return best;
}

double ways_fastest_s(struct ways *w, int data_node, enum way_kind kind)
{
	const struct problem *p = w->p;
	const double *hop = hops(w, kind);
	size_t n = (size_t)w->n, cells = (size_t)p->length * n;
	int data = w->group[data_node];

	if (p->length == 1 || !hop)
		return 0;
	for (size_t i = 0; i < cells; i++)
		w->way[i] = w->from_below[i] = w->exchanged[i] = INFINITY;
	spread(w, 0, hop + (size_t)data * n, 0, 0);
	for (int k = 1; k < p->length - 1; k++) {
		for (int stage = 1; stage < p->n_stages; stage++) {
			for (int v = w->first[stage]; v < w->first[stage + 1]; v++) {
				size_t at = (size_t)k * n + (size_t)v;
				const double *from_v = hop + (size_t)v * n;

				if (w->way[at] < INFINITY)
					spread(w, k, from_v, stage, w->way[at]);
				if (w->exchanged[at] < INFINITY)
					spread(w, k, from_v, stage + 1, w->exchanged[at]);
				if (w->from_below[at] < INFINITY && !p->q->ascending)
					exchange(w, k, from_v, stage - 1, w->from_below[at]);
			}
		}
	}
	return way_home(w, data, kind);
}
