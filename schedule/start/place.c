/* Placement of nodes for quick sums and short paths.
 *
 * Quick sums: one node of the slowest pair of replicas exchanges its stage with another node
 * (part_slowest), as often as this helps. The cost of every node in every stage is kept up to
 * date, so one pass over the nodes finds the best partner. Single exchanges can end far from the
 * best placement, so random placements are tried too.
 *
 * Short paths: whole stages are renumbered so that a tour through them is short. */
#include "schedule/start/place.h"

#include <math.h>

#include "base/arena.h"
#include "base/rng.h"

#define MOST_EXCHANGES 4 /* largest number of exchanges for each node */
#define CHECK_EVERY 16   /* number of exchanges between two checks of the time left */
#define RESTARTS 32
#define RESTARTS_WITHIN 1000
#define NO_LINK_S 1e6 /* seconds that a hop without a link counts as */

/* The costs of the present placement. An exchange of two nodes updates the costs of their two
 * stages. */
struct place {
	struct solution *s;
	const struct problem *p;
	struct arena arena; /* owns the arrays below */
	/* array of (n_nodes, n_stages): cost of a node together with the other members of a
	 * stage */
	double *cost;
	double *slowest; /* array of n_stages: seconds to sum the gradients of each stage */
	int *pair;       /* array of (n_stages, 2): the slowest pair of each stage; -1: none */
};

/* Returns the cost of two nodes in one stage. Because of the fourth power, the slowest pair
 * dominates, but other pairs still count. A stage with two nodes in each of two distant places can
 * therefore improve step by step. */
static double pair_cost(const struct problem *p, int a, int b)
{
	size_t n = (size_t)p->n_nodes, i = (size_t)a, j = (size_t)b;
	double t = fmax(p->sync[i * n + j], p->sync[j * n + i]);

	return t * t * t * t;
}

static double *cost_in(const struct place *w, int v, int stage)
{
	return &w->cost[(size_t)v * (size_t)w->p->n_stages + (size_t)stage];
}

static void find_slowest(struct place *w, int stage)
{
	w->slowest[stage] = solution_stage_sync_s(w->s, w->p, stage, w->pair + 2 * (size_t)stage);
}

static void place_init(struct place *w, struct solution *s, const struct problem *p)
{
	size_t n = (size_t)p->n_nodes, stages = (size_t)p->n_stages;

	*w = (struct place){ .s = s, .p = p };
	w->cost = arena_array(&w->arena, n * stages, sizeof(*w->cost));
	w->slowest = arena_array(&w->arena, stages, sizeof(*w->slowest));
	w->pair = arena_array(&w->arena, stages * 2, sizeof(*w->pair));
	for (int v = 0; v < p->n_nodes; v++) {
		for (int i = 0; i < s->start[p->n_stages]; i++) {
			int u = s->members[i];

			*cost_in(w, v, s->stage_of[u]) += u == v ? 0 : pair_cost(p, u, v);
		}
	}
	for (int stage = 0; stage < p->n_stages; stage++)
		find_slowest(w, stage);
}

static bool may_move(const struct problem *p, int v)
{
	return p->movable[v] && p->c->nodes[v].memory > 0;
}

static void exchange_nodes(struct place *w, int a, int b)
{
	int stage = w->s->stage_of[a], other = w->s->stage_of[b];

	solution_exchange(w->s, a, b);
	for (int v = 0; v < w->p->n_nodes; v++) {
		double with_a = v == a ? 0 : pair_cost(w->p, v, a);
		double with_b = v == b ? 0 : pair_cost(w->p, v, b);

		*cost_in(w, v, stage) += with_b - with_a;
		*cost_in(w, v, other) += with_a - with_b;
	}
	find_slowest(w, stage);
	find_slowest(w, other);
}

/* Exchanges node a with the best partner in another stage. Returns false if no partner helps. */
static bool exchange_best(struct place *w, int a)
{
	const struct problem *p = w->p;
	int best = -1, stage = w->s->stage_of[a];
	double now = *cost_in(w, a, stage), least = -1e-9 * now;

	if (!may_move(p, a) || !(least < 0))
		return false;
	for (int b = 0; b < p->n_nodes; b++) {
		int other = w->s->stage_of[b];
		double change;

		if (other < 0 || other == stage || !may_move(p, b))
			continue;
		change = *cost_in(w, a, other) - now + *cost_in(w, b, stage) -
			 *cost_in(w, b, other) - 2 * pair_cost(p, a, b);
		if (change < least) {
			least = change;
			best = b;
		}
	}
	if (best < 0)
		return false;
	exchange_nodes(w, a, best);
	return true;
}

/* Separates the slowest pair of a stage by one exchange. Returns false if no exchange helps. */
static bool part_slowest(struct place *w)
{
	int stage = 0, a, b;

	for (int k = 1; k < w->p->n_stages; k++)
		stage = w->slowest[k] > w->slowest[stage] ? k : stage;
	a = w->pair[2 * stage];
	b = w->pair[2 * stage + 1];
	return w->slowest[stage] > 0 && (exchange_best(w, a) || exchange_best(w, b));
}

static double slowest_s(const struct place *w)
{
	double most = 0;

	for (int k = 0; k < w->p->n_stages; k++)
		most = fmax(most, w->slowest[k]);
	return most;
}

/* Exchanges nodes until the slowest sum takes at most enough_s or no exchange helps. Returns the
 * seconds of the slowest sum. */
static double descend_sync(struct solution *s, const struct problem *p, const struct progress *g,
			   double enough_s)
{
	struct place w;
	double reached_s;

	place_init(&w, s, p);
	for (int i = 0; i < MOST_EXCHANGES * p->n_nodes; i++) {
		if ((g && i % CHECK_EVERY == 0 && progress_late(g)) ||
		    slowest_s(&w) <= enough_s || !part_slowest(&w))
			break;
	}
	reached_s = slowest_s(&w);
	arena_free(&w.arena);
	return reached_s;
}

static void shuffle_nodes(struct solution *s, const struct problem *p, struct rng *rng)
{
	for (int a = p->n_nodes - 1; a > 0; a--) {
		int b = (int)rng_below(rng, (uint32_t)a + 1);

		if (s->stage_of[a] >= 0 && s->stage_of[b] >= 0 &&
		    s->stage_of[a] != s->stage_of[b] && may_move(p, a) && may_move(p, b))
			solution_exchange(s, a, b);
	}
}

static void place_restarting(struct solution *s, const struct problem *p,
			     const struct progress *g, double enough_s, int restarts)
{
	double least = descend_sync(s, p, g, enough_s), now;
	struct solution other;
	struct rng rng;

	if (!problem_is(p, REGIME_RESTARTS))
		return;
	solution_init(&other, p);
	rng_init(&rng, p->q->seed);
	for (int i = 0; i < restarts && least > enough_s && !(g && progress_late(g)); i++) {
		solution_copy(&other, s, p);
		shuffle_nodes(&other, p, &rng);
		now = descend_sync(&other, p, g, enough_s);
		if (now < least * (1 - 1e-9)) {
			least = now;
			solution_copy(s, &other, p);
		}
	}
	solution_fini(&other);
}

void place_by_sync(struct solution *s, const struct problem *p, const struct progress *g)
{
	place_restarting(s, p, g, 0, RESTARTS);
}

void place_within(struct solution *s, const struct problem *p, double enough_s)
{
	place_restarting(s, p, NULL, enough_s, RESTARTS_WITHIN);
}

void place_at_random(struct solution *s, const struct problem *p, double enough_s, struct rng *rng)
{
	shuffle_nodes(s, p, rng);
	descend_sync(s, p, NULL, enough_s);
}

/* Fills `apart` with the distances between stages. It is an array of (n_stages, n_stages), which
 * the caller sets to zero. The distance from one stage to another is the mean, over the nodes of
 * the first, of the round trip to the nearest node of the other. */
static void measure_distances(const struct solution *s, const struct problem *p, double *apart)
{
	for (int i = 0; i < s->start[p->n_stages]; i++) {
		const double *round =
			p->round + (size_t)s->members[i] * (size_t)p->n_nodes;
		int from = s->stage_of[s->members[i]];

		for (int to = 0; to < p->n_stages; to++) {
			double least = INFINITY;

			for (int k = s->start[to]; k < s->start[to + 1]; k++)
				least = k != i ? fmin(least, round[s->members[k]]) : least;
			apart[from * p->n_stages + to] +=
				fmin(least, NO_LINK_S) / p->sizes[from];
		}
	}
}

/* Returns the mean length of a round trip if stages are visited in this order, and if a
 * microbatch skips each stage except the first with equal chance. order: array of n_stages. */
static double tour_length_s(const struct problem *p, const double *apart, const int *order)
{
	int n = p->n_stages;
	double visited = n > 1 ? ((double)p->visits / p->n_mb - 1) / (n - 1) : 1, sum = 0;

	for (int s = 0; s < n; s++) {
		double likely = s == 0 ? 1 : visited;

		for (int t = s + 1; t <= n; t++) { /* t == n: the return to the data node */
			double stops = t == n ? 1 : visited;

			sum += likely * stops * apart[order[s] * n + order[t % n]];
			likely *= 1 - stops;
		}
	}
	return sum;
}

/* Returns true if the two stages have the same size and all of their nodes may move. */
static bool may_swap(const struct solution *s, const struct problem *p, int a, int b)
{
	bool may = p->sizes[a] == p->sizes[b];

	for (int k = 0; k < p->sizes[a] && may; k++)
		may = may_move(p, s->members[s->start[a] + k]) &&
		      may_move(p, s->members[s->start[b] + k]);
	return may;
}

/* Exchanges two stages of the order as long as an exchange shortens the tour. */
static void shorten_tour(const struct solution *s, const struct problem *p, const double *apart,
			 int *order)
{
	double now = tour_length_s(p, apart, order), was;

	do {
		was = now;
		for (int a = 0; a < p->n_stages; a++) {
			for (int b = a + 1; b < p->n_stages; b++) {
				int swapped = order[a];
				double next;

				if (!may_swap(s, p, a, b))
					continue;
				order[a] = order[b];
				order[b] = swapped;
				next = tour_length_s(p, apart, order);
				if (next < now * (1 - 1e-9)) {
					now = next;
					continue;
				}
				order[b] = order[a];
				order[a] = swapped;
			}
		}
	} while (now < was);
}

void place_in_order(struct solution *s, const struct problem *p)
{
	size_t n = (size_t)p->n_stages;
	struct arena arena = { 0 };
	double *apart = arena_array(&arena, n * n, sizeof(*apart));
	int *order = arena_array(&arena, n, sizeof(*order));
	int *turn = arena_array(&arena, n, sizeof(*turn));

	measure_distances(s, p, apart);
	for (int k = 0; k < p->n_stages; k++)
		order[k] = k;
	shorten_tour(s, p, apart, order);
	for (int k = 0; k < p->n_stages; k++)
		turn[order[k]] = k;
	for (int i = 0; i < p->n_nodes; i++)
		s->stage_of[i] = s->stage_of[i] < 0 ? -1 : turn[s->stage_of[i]];
	solution_index(s, p);
	arena_free(&arena);
}
