/* A dynamic program: the least seconds to reach a node after k visits.
 *
 * CC2 allows a path to exchange two neighbouring stages, that is, to visit stage s + 1 just before
 * stage s. Three tables therefore hold the partial paths by their last visit. at_top: the last
 * visit is the highest stage so far. from_below: the path has skipped the stage below its last
 * visit, so it may still visit that stage next. exchanged: the last visit is the lower stage of an
 * exchange.
 *
 * To find the fastest path through each set of stages, each_set fills the same tables by recursion
 * over the first stages of a set. */
#include "schedule/bound/shortest_paths.h"

#include <limits.h>
#include <math.h>

#include "schedule/problem/node_classes.h"

struct shortest_paths {
	const struct problem *p;
	const struct solution *s;
	struct arena *arena; /* borrowed */
	struct node_classes groups; /* similar nodes, which count as one */
	int n;                      /* number of groups of similar nodes */
	const int *first;           /* array of n_stages + 1: first group of each stage */
	double *delay;              /* array of (n, n): least delay between two groups */
	/* For each kind, an array of (n, n): seconds of a hop from u to v, with the work at v.
	 * NULL: not computed yet. */
	double *hop[3];
	/* Array of (length, n): least seconds to reach each group. Row k is for paths with k
	 * visits before the group. */
	double *at_top;
	/* Array of (length, n): like at_top, but only for paths that have skipped the stage below
	 * their last visit. */
	double *from_below;
	/* Array of (length, n): like at_top, but for paths that end with the lower stage of an
	 * exchange. */
	double *exchanged;
	long work; /* number of hops examined */
};

static void find_delays(struct shortest_paths *w)
{
	const struct problem *p = w->p;
	int in = w->s->start[p->n_stages];

	for (size_t i = 0; i < (size_t)w->n * (size_t)w->n; i++)
		w->delay[i] = INFINITY;
	for (int i = 0; i < in; i++) {
		int u = w->s->members[i];
		double *row = w->delay + (size_t)w->groups.of[u] * (size_t)w->n;
		const double *delay = p->delay + (size_t)u * (size_t)p->n_nodes;

		for (int k = 0; k < in; k++) {
			int v = w->s->members[k];

			if (u != v && delay[v] < row[w->groups.of[v]])
				row[w->groups.of[v]] = delay[v];
		}
	}
}

struct shortest_paths *shortest_paths_new(struct arena *a, const struct problem *p,
					  const struct solution *s)
{
	struct shortest_paths *w = arena_array(a, 1, sizeof(*w));
	size_t cells;

	node_classes_init(&w->groups, a, p, s, true);
	w->p = p;
	w->s = s;
	w->arena = a;
	w->n = w->groups.n;
	w->first = w->groups.first;
	cells = (size_t)w->n * (size_t)p->length;
	w->delay = arena_array(a, (size_t)w->n * (size_t)w->n, sizeof(double));
	w->at_top = arena_array(a, cells, sizeof(double));
	w->from_below = arena_array(a, cells, sizeof(double));
	w->exchanged = arena_array(a, cells, sizeof(double));
	find_delays(w);
	return w;
}

int shortest_paths_like(const struct shortest_paths *w, int data_node)
{
	return w->groups.of[data_node];
}

long shortest_paths_work(const struct shortest_paths *w)
{
	return w->work;
}

/* Returns the delay and the work of a hop in the direction of the kind. INFINITY: there is no link,
 * or the node has no memory. */
static double hop_s(const struct shortest_paths *w, int u, int v, enum shortest_paths_kind kind)
{
	int sample = w->groups.sample[v];
	double forward_s = problem_forward_s(w->p, w->s->work, sample);
	double backward_s = problem_backward_s(w->p, w->s->work, sample);
	double there = w->delay[(size_t)u * (size_t)w->n + (size_t)v];
	double back = w->delay[(size_t)v * (size_t)w->n + (size_t)u];

	if (v >= w->first[1] && w->p->c->nodes[sample].memory < 1)
		return INFINITY;
	switch (kind) {
	case SHORTEST_PATHS_OUT:
		return there + forward_s;
	case SHORTEST_PATHS_BACK:
		return back + backward_s;
	default:
		return there + forward_s + back + backward_s;
	}
}

static const double *hop_matrix(struct shortest_paths *w, enum shortest_paths_kind kind)
{
	size_t n = (size_t)w->n;

	if (!w->hop[kind]) {
		w->hop[kind] = arena_array(w->arena, n * n, sizeof(double));
		for (size_t i = 0; i < n * n; i++)
			w->hop[kind][i] = hop_s(w, (int)(i / n), (int)(i % n), kind);
	}
	return w->hop[kind];
}

static void lower_cell(double *cell, double s)
{
	if (s < *cell)
		*cell = s;
}

/* Extends a path to all nodes that may follow. The path has reached u after k visits, and its
 * highest stage is `top`. */
static void spread_from(struct shortest_paths *w, int k, const double *from_u, int top, double s)
{
	double *at_top = w->at_top + (size_t)(k + 1) * (size_t)w->n;
	double *from_below = w->from_below + (size_t)(k + 1) * (size_t)w->n;
	int next = w->first[top + 1],
	    after = top + 2 <= w->p->n_stages ? w->first[top + 2] : w->n;

	for (int v = next; v < w->n; v++)
		lower_cell(&at_top[v], s + from_u[v]);
	for (int v = after; v < w->n; v++)
		lower_cell(&from_below[v], s + from_u[v]);
	w->work += w->n - next;
}

/* Extends a path, which has skipped the stage `under`, by a visit to a node of that stage. */
static void exchange_stages(struct shortest_paths *w, int k, const double *from_v, int under,
			    double s)
{
	double *exchanged = w->exchanged + (size_t)(k + 1) * (size_t)w->n;

	for (int v = w->first[under]; v < w->first[under + 1]; v++)
		lower_cell(&exchanged[v], s + from_v[v]);
}

static double way_home(const struct shortest_paths *w, int data, enum shortest_paths_kind kind,
		       int length)
{
	size_t last = (size_t)(length - 1) * (size_t)w->n, n = (size_t)w->n;
	double best = INFINITY;

	for (int v = w->first[1]; v < w->n; v++) {
		double there = w->delay[(size_t)v * n + (size_t)data];
		double back = w->delay[(size_t)data * n + (size_t)v];
		double home = kind == SHORTEST_PATHS_OUT ? there
			      : kind == SHORTEST_PATHS_BACK ? back : there + back;

		lower_cell(&best, home + fmin(w->at_top[last + (size_t)v],
					      w->exchanged[last + (size_t)v]));
	}
	return best;
}

/* Goes through the rows in turn, one for each number of visits. Each partial path lowers the least
 * times in the next row. */
double shortest_paths_fastest_s(struct shortest_paths *w, int data_node,
				enum shortest_paths_kind kind)
{
	const struct problem *p = w->p;
	const double *hop = hop_matrix(w, kind);
	size_t n = (size_t)w->n, cells = (size_t)p->length * n;
	int data = w->groups.of[data_node];

	if (p->short_length == 1)
		return 0;
	for (size_t i = 0; i < cells; i++)
		w->at_top[i] = w->from_below[i] = w->exchanged[i] = INFINITY;
	spread_from(w, 0, hop + (size_t)data * n, 0, 0);
	for (int k = 1; k < p->length - 1; k++) {
		for (int stage = 1; stage < p->n_stages; stage++) {
			for (int v = w->first[stage]; v < w->first[stage + 1]; v++) {
				size_t at = (size_t)k * n + (size_t)v;
				const double *from_v = hop + (size_t)v * n;

				if (w->at_top[at] < INFINITY)
					spread_from(w, k, from_v, stage, w->at_top[at]);
				if (w->exchanged[at] < INFINITY)
					spread_from(w, k, from_v, stage + 1, w->exchanged[at]);
				if (w->from_below[at] < INFINITY && !p->q->ascending)
					exchange_stages(w, k, from_v, stage - 1,
							w->from_below[at]);
			}
		}
	}
	return fmin(way_home(w, data, kind, p->length), way_home(w, data, kind, p->short_length));
}

int shortest_paths_sets(const struct shortest_paths *w)
{
	double sets = 1;
	int others = w->p->n_stages - 1, visits = w->p->length - 1;

	for (int i = 1; i <= visits; i++) {
		sets = sets * (others - visits + i) / i;
		if (sets >= INT_MAX)
			return INT_MAX;
	}
	return (int)lround(sets);
}

/* The first stages of a set. All sets that begin with these stages share the rows of the tables. */
struct prefix {
	/* Number of visits so far; highest stage of the prefix, and its second highest stage. */
	int visits, top, under;
	uint64_t stages;
};

struct by_set {
	struct shortest_paths *w;
	const double *hop;
	int data;
	double *least_s;  /* where the result of the next set is written */
	uint64_t *stages; /* where the next set is written; NULL: the caller wants no sets */
};

/* Fills to[v] for each node v of the stage: the least seconds in which a path reaches v after the
 * stages of the prefix. */
static void enter_stage(struct by_set *b, const struct prefix *p, int stage, double *to)
{
	struct shortest_paths *w = b->w;
	size_t n = (size_t)w->n, row = (size_t)(p->visits - 1) * n;

	for (int v = w->first[stage]; v < w->first[stage + 1]; v++)
		to[v] = INFINITY;
	for (int end = 0; end < 2; end++) {
		const double *from = (end ? w->exchanged : w->at_top) + row;
		int last = end ? p->under : p->top;

		for (int u = w->first[last]; u < w->first[last + 1]; u++) {
			if (isinf(from[u]))
				continue;
			for (int v = w->first[stage]; v < w->first[stage + 1]; v++)
				lower_cell(&to[v], from[u] + b->hop[(size_t)u * n + (size_t)v]);
			w->work += w->first[stage + 1] - w->first[stage];
		}
	}
}

/* Extends the prefix by a stage, and fills its rows: `at_top` for paths that end at the new
 * stage, `exchanged` for paths that visit the new stage just before the prefix's last stage.
 * before: the prefix without its last stage. */
static struct prefix one_more(struct by_set *b, const struct prefix *before,
			      const struct prefix *p, int stage)
{
	struct shortest_paths *w = b->w;
	size_t n = (size_t)w->n, row = (size_t)p->visits * n;
	struct prefix more = { p->visits + 1, stage, p->top, p->stages | UINT64_C(1) << stage };

	enter_stage(b, p, stage, w->at_top + row);
	for (int v = w->first[p->top]; v < w->first[p->top + 1]; v++)
		w->exchanged[row + (size_t)v] = INFINITY;
	if (p->top == 0 || stage != p->top + 1 || w->p->q->ascending)
		return more;
	enter_stage(b, before, stage, w->from_below + row);
	for (int u = w->first[stage]; u < w->first[stage + 1]; u++)
		for (int v = w->first[p->top]; v < w->first[p->top + 1]; v++)
			lower_cell(&w->exchanged[row + (size_t)v],
				   w->from_below[row + (size_t)u] +
					   b->hop[(size_t)u * n + (size_t)v]);
	return more;
}

static double home_of(const struct by_set *b, const struct prefix *p)
{
	const struct shortest_paths *w = b->w;
	size_t n = (size_t)w->n, row = (size_t)(p->visits - 1) * n, data = (size_t)b->data;
	double best = INFINITY;

	for (int end = 0; end < 2; end++) {
		const double *from = (end ? w->exchanged : w->at_top) + row;
		int last = end ? p->under : p->top;

		for (int v = w->first[last]; v < w->first[last + 1]; v++)
			lower_cell(&best, from[v] + w->delay[(size_t)v * n + data] +
					     w->delay[data * n + (size_t)v]);
	}
	return best;
}

static void each_set(struct by_set *b, const struct prefix *before, const struct prefix *p)
{
	int stages = b->w->p->n_stages, left = b->w->p->length - p->visits;

	if (left == 0) {
		*b->least_s++ = home_of(b, p);
		if (b->stages)
			*b->stages++ = p->stages;
		return;
	}
	for (int stage = p->top + 1; stage <= stages - left; stage++) {
		struct prefix more = one_more(b, before, p, stage);

		each_set(b, p, &more);
	}
}

void shortest_paths_of_sets(struct shortest_paths *w, int data_node, double *least_s,
			    uint64_t *stages)
{
	struct by_set b = { w, hop_matrix(w, SHORTEST_PATHS_ROUND), w->groups.of[data_node],
			    least_s, stages };
	struct prefix start = { .visits = 1 };

	for (int v = 0; v < w->first[1]; v++)
		w->at_top[v] = w->exchanged[v] = INFINITY;
	w->at_top[b.data] = 0;
	each_set(&b, NULL, &start);
}
