/* The genetic search. A member of the population is a list of the nodes, stage by stage. A child
 * mixes two parents, and a local search brings the nodes of each stage closer together. The child
 * replaces the worst member if it is better. */
#include "schedule/published/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define POPULATION 200
#define EXCHANGES 8 /* exchanges tried for each node of a child by the local search */

struct matching {
	const double *cost;
	int n, m;
	double most;   /* length of the longest edge that may be used */
	int *match;    /* array of n */
	int *taken_by; /* array of m */
	int *seen;     /* array of m: value of `round` when each column was last tried */
	int round;
};

static bool augment_match(struct matching *g, int row)
{
	for (int col = 0; col < g->m; col++) {
		if (g->cost[row * g->m + col] > g->most || g->seen[col] == g->round)
			continue;
		g->seen[col] = g->round;
		if (g->taken_by[col] < 0 || augment_match(g, g->taken_by[col])) {
			g->taken_by[col] = row;
			g->match[row] = col;
			return true;
		}
	}
	return false;
}

static int match_below(struct matching *g, double most)
{
	int matched = 0;

	g->most = most;
	for (int i = 0; i < g->n; i++)
		g->match[i] = -1;
	for (int i = 0; i < g->m; i++)
		g->taken_by[i] = -1;
	for (int i = 0; i < g->n; i++) {
		g->round++;
		matched += augment_match(g, i);
	}
	return matched;
}

static int compare_edges(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double allocate_match(const double *cost, int n, int m, int *match)
{
	size_t edges = (size_t)n * (size_t)m, low = 0, high = edges - 1;
	struct arena arena = { 0 };
	double *sorted = arena_array(&arena, edges, sizeof(*sorted)), worst;
	struct matching g = { .cost = cost, .n = n, .m = m, .match = match };

	g.taken_by = arena_array(&arena, (size_t)m, sizeof(int));
	g.seen = arena_array(&arena, (size_t)m, sizeof(int));
	memcpy(sorted, cost, edges * sizeof(*sorted));
	qsort(sorted, edges, sizeof(*sorted), compare_edges);
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (match_below(&g, sorted[middle]) == n)
			high = middle;
		else
			low = middle + 1;
	}
	worst = match_below(&g, fmin(sorted[low], 1e300)) == n ? sorted[low] : INFINITY;
	arena_free(&arena);
	return worst;
}

/* The population. An assignment is a list of nodes; the nodes of stage s begin at start[s]. */
struct population {
	const struct problem *p;
	struct rng rng;
	const int *start;
	int n;              /* number of nodes with a stage */
	int size;           /* number of assignments in the population */
	struct arena arena; /* owns the arrays below */
	/* Array of (size + 1, n): nodes of each assignment; the last one is the child */
	int *nodes;
	double *score;   /* array of size */
	int *stage_of;   /* array of n_nodes */
	double *between; /* array of (n_stages, n_stages): distances between stages */
	double *cost;    /* array of (most replicas)^2 */
	int *match;
	int *tour; /* array of n_stages */
};

static double edge_cost_s(const struct population *h, int a, int b, int stage)
{
	return h->p->delay[(size_t)a * (size_t)h->p->n_nodes + (size_t)b] +
	       h->p->c->nodes[b].forward_s * h->p->c->work[stage];
}

static double stage_distance(struct population *h, const int *nodes, int s, int t)
{
	int n = h->start[s + 1] - h->start[s], m = h->start[t + 1] - h->start[t];

	if (n > m)
		return stage_distance(h, nodes, t, s);
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < m; j++)
			h->cost[i * m + j] = edge_cost_s(h, nodes[h->start[s] + i],
							 nodes[h->start[t] + j], t);
	}
	return allocate_match(h->cost, n, m, h->match);
}

/* Returns the length of an open tour from stage 0 that always goes to the nearest stage. */
static double nearest_tour(struct population *h)
{
	int n = h->p->n_stages, at = 0;
	uint64_t left = n >= 64 ? ~(uint64_t)1 : ((uint64_t)1 << n) - 2;
	double length = 0;

	h->tour[0] = 0;
	for (int k = 1; k < n; k++) {
		int best = 0; /* index of the nearest stage; 0: none yet */

		for (int t = 1; t < n; t++) {
			if ((left >> t & 1) && (best == 0 || h->between[at * n + t] <
							     h->between[at * n + best]))
				best = t;
		}
		length += h->between[at * n + best];
		left &= ~((uint64_t)1 << best);
		h->tour[k] = at = best;
	}
	return length;
}

/* Returns the length of the shortest open tour from stage 0; it is exact for up to 12 stages. */
static double shortest_tour(struct population *h)
{
	int n = h->p->n_stages, full;
	double best[1 << 11][12], length = INFINITY;
	int end = 1;

	if (n == 1 || n > 12)
		return n == 1 ? 0 : nearest_tour(h);
	full = (1 << (n - 1)) - 1; /* the set of all stages from 1 to n - 1 */
	for (int set = 1; set <= full; set++) {
		for (int t = 1; t < n; t++) {
			int before = set & ~(1 << (t - 1));

			best[set][t] = INFINITY;
			if (before == set)
				continue;
			if (before == 0)
				best[set][t] = h->between[t];
			for (int u = 1; u < n; u++) {
				if (before >> (u - 1) & 1)
					best[set][t] = fmin(best[set][t], best[before][u] +
									  h->between[u * n + t]);
			}
		}
	}
	for (int t = 1; t < n; t++) {
		if (best[full][t] <= length) {
			length = best[full][t];
			end = t;
		}
	}
	for (int set = full, k = n - 1; k >= 1; k--) {
		int before = set & ~(1 << (end - 1)), next = 0;

		h->tour[k] = end;
		for (int u = 1; u < n && before; u++) {
			if ((before >> (u - 1) & 1) &&
			    (next == 0 || best[before][u] + h->between[u * n + end] <
					  best[before][next] + h->between[next * n + end]))
				next = u;
		}
		set = before;
		end = next;
	}
	h->tour[0] = 0;
	return length;
}

static double herd_sync(const struct population *h, const int *nodes)
{
	double most = 0;

	for (int s = 0; s < h->p->n_stages; s++) {
		int r = h->start[s + 1] - h->start[s];

		for (int i = h->start[s]; i < h->start[s + 1]; i++) {
			for (int j = h->start[s]; j < h->start[s + 1]; j++) {
				double pair = h->p->sync[(size_t)nodes[i] * (size_t)h->p->n_nodes +
							 (size_t)nodes[j]];

				most = fmax(most, 2.0 * (r - 1) / r * pair);
			}
		}
	}
	return most;
}

static double herd_score(struct population *h, const int *nodes)
{
	int n = h->p->n_stages;

	for (int s = 0; s < n; s++) {
		for (int t = s + 1; t < n; t++) {
			double d = stage_distance(h, nodes, s, t);

			h->between[s * n + t] = h->between[t * n + s] = d;
		}
	}
	return herd_sync(h, nodes) + 2 * shortest_tour(h);
}

static void swap_nodes(int *a, int *b)
{
	int was = *a;

	*a = *b;
	*b = was;
}

/* Shuffles the movable nodes. */
static void shuffle_nodes(struct population *h, int *nodes)
{
	for (int i = h->n - 1; i > 0; i--) {
		int j = (int)rng_below(&h->rng, (uint32_t)i + 1);

		if (h->p->movable[nodes[i]] && h->p->movable[nodes[j]])
			swap_nodes(&nodes[i], &nodes[j]);
	}
}

/* Five-point crossover: the child is a copy of b, in which five random nodes go to the stage that
 * they have in a. Each of them exchanges stages with a random node of that stage, so that the sizes
 * of stages stay the same. */
static void cross_parents(struct population *h, const int *a, const int *b, int *child)
{
	memcpy(child, b, (size_t)h->n * sizeof(*child));
	for (int s = 0; s < h->p->n_stages; s++) {
		for (int i = h->start[s]; i < h->start[s + 1]; i++)
			h->stage_of[a[i]] = s;
	}
	for (int k = 0; k < 5; k++) {
		int i = (int)rng_below(&h->rng, (uint32_t)h->n), stage = h->stage_of[child[i]];
		int size = h->start[stage + 1] - h->start[stage];
		int j = h->start[stage] + (int)rng_below(&h->rng, (uint32_t)size);

		if (h->p->movable[child[i]] && h->p->movable[child[j]])
			swap_nodes(&child[i], &child[j]);
	}
}

/* Returns the sum of the distances of node v from the members of the stage. `at` is the index that
 * v has or would get; the node there is not counted. */
static double spread_at(const struct population *h, const int *nodes, int v, int stage, int at)
{
	double sum = 0;

	for (int i = h->start[stage]; i < h->start[stage + 1]; i++) {
		size_t pair = (size_t)v * (size_t)h->p->n_nodes + (size_t)nodes[i];

		if (i != at)
			sum += h->p->weigh_sync ? h->p->sync[pair] : fmin(h->p->delay[pair], 1e6);
	}
	return sum;
}

static int stage_at(const struct population *h, int place)
{
	int s = 0;

	while (place >= h->start[s + 1])
		s++;
	return s;
}

/* Tries random exchanges of two nodes. Keeps each exchange that brings the members of the two
 * stages closer together. */
static void settle_members(struct population *h, int *nodes)
{
	for (int k = 0; k < EXCHANGES * h->n; k++) {
		int i = (int)rng_below(&h->rng, (uint32_t)h->n);
		int j = (int)rng_below(&h->rng, (uint32_t)h->n);
		int s = stage_at(h, i), t = stage_at(h, j);
		double before, after;

		if (s == t || !h->p->movable[nodes[i]] || !h->p->movable[nodes[j]])
			continue;
		before = spread_at(h, nodes, nodes[i], s, i) + spread_at(h, nodes, nodes[j], t, j);
		after = spread_at(h, nodes, nodes[j], s, i) + spread_at(h, nodes, nodes[i], t, j);
		if (after < before)
			swap_nodes(&nodes[i], &nodes[j]);
	}
}

static void herd_init(struct population *h, const struct solution *s, const struct problem *p)
{
	size_t most = 1, n = (size_t)s->start[p->n_stages];

	for (int k = 0; k < p->n_stages; k++)
		most = (size_t)p->sizes[k] > most ? (size_t)p->sizes[k] : most;
	*h = (struct population){ .p = p, .start = s->start, .n = (int)n };
	h->size = problem_is(p, REGIME_POPULATION) ? POPULATION : 20000 / p->n_nodes + 2;
	rng_init_stream(&h->rng, p->q->seed, 2);
	h->nodes = arena_array(&h->arena, (size_t)(h->size + 1) * n, sizeof(int));
	h->score = arena_array(&h->arena, (size_t)h->size, sizeof(double));
	h->stage_of = arena_array(&h->arena, (size_t)p->n_nodes, sizeof(int));
	h->between = arena_array(&h->arena, (size_t)p->n_stages * (size_t)p->n_stages,
				 sizeof(double));
	h->cost = arena_array(&h->arena, most * most, sizeof(double));
	h->match = arena_array(&h->arena, most, sizeof(int));
	h->tour = arena_array(&h->arena, (size_t)p->n_stages, sizeof(int));
}

/* Writes the best assignment to s. Stages of equal size are numbered along the tour. */
static void take_best(struct population *h, struct solution *s, int size)
{
	const struct problem *p = h->p;
	const int *nodes;
	int best = 0;
	bool alike = p->n_movable == h->n;

	for (int i = 1; i < size; i++)
		best = h->score[i] < h->score[best] ? i : best;
	nodes = h->nodes + (size_t)best * (size_t)h->n;
	herd_score(h, nodes); /* also computes the tour */
	for (int k = 2; k < p->n_stages; k++)
		alike = alike && p->sizes[k] == p->sizes[1];
	for (int k = 0; k < p->n_stages; k++) {
		int from = alike ? h->tour[k] : k;

		for (int i = h->start[from]; i < h->start[from + 1]; i++)
			s->stage_of[nodes[i]] = k;
	}
	solution_index(s, p);
}

void allocate_genetic(struct solution *s, const struct problem *p, const struct progress *g,
		      int trials)
{
	struct population h;
	int size = 1;
	size_t n;

	if (p->n_movable < 2)
		return;
	herd_init(&h, s, p);
	n = (size_t)h.n;
	/* The present order of the nodes is one member of the first population. */
	memcpy(h.nodes, s->members, n * sizeof(int));
	h.score[0] = herd_score(&h, h.nodes);
	for (; size < h.size && !progress_over(g); size++) {
		int *nodes = h.nodes + (size_t)size * n;

		memcpy(nodes, s->members, n * sizeof(int));
		shuffle_nodes(&h, nodes);
		h.score[size] = herd_score(&h, nodes);
	}
	for (int k = 0; k < trials && !progress_over(g); k++) {
		int *child = h.nodes + (size_t)h.size * n, worst = 0;
		int a = (int)rng_below(&h.rng, (uint32_t)size);
		int b = (int)rng_below(&h.rng, (uint32_t)size);
		double score;

		cross_parents(&h, h.nodes + (size_t)a * n, h.nodes + (size_t)b * n, child);
		settle_members(&h, child);
		score = herd_score(&h, child);
		for (int i = 1; i < size; i++)
			worst = h.score[i] > h.score[worst] ? i : worst;
		if (score < h.score[worst]) {
			memcpy(h.nodes + (size_t)worst * n, child, n * sizeof(int));
			h.score[worst] = score;
		}
	}
	take_best(&h, s, size);
	arena_free(&h.arena);
}
