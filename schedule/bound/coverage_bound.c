/* Tries lengths T of the iteration, one after the other.
 *
 * A point of the hull (nearest_point.h) has a number for each stage: the visits that some trips
 * within T make, minus the demanded visits. The prices of visits are the hull's point nearest to
 * the origin, negated. At these prices, pricing.h finds for each data node the trips within T whose
 * visits have the highest total price. If all these totals together are less than the total price
 * of the demanded visits, T is impossible, and a longer T is tried. Otherwise the visits of these
 * trips give one more point of the hull.
 *
 * A step examines one kind of data node, so that a search can run between two steps. */
#include "schedule/bound/coverage_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schedule/bound/nearest_point.h"
#include "schedule/bound/pricing.h"

#define FIRST_STRIDE 0.04
#define LAST_STRIDE 0.001
#define MOST_PRICES 100 /* largest number of prices that are tried for one T */
/* Number of states that pricing.h keeps: MOST_STATES or STATES_BY_SIZE / size, whichever is less.
 * `size` (coverage_bound.size) is large if data nodes have many microbatches and slots. */
#define MOST_STATES 300
#define STATES_BY_SIZE 20000
/* Limit of routes given to pricing.h; if there are more routes, neighbouring routes are merged. */
#define MOST_ROUTES 32
#define ROUNDING 1e-9

/* Data nodes with equal routes, speeds and memory that send the same number of microbatches. */
struct kind {
	int node, n, times;
	int n_routes;
	/* Array of n_routes: seconds of each route, ascending; NULL: not known yet */
	double *route_s;
	int *set; /* array of n_routes: index of the set of stages that each route visits */
};

struct coverage_bound {
	const struct problem *p;
	const struct solution *s;
	struct arena *arena; /* borrowed */
	struct shortest_paths *w;
	const int *sent;
	int n_kinds, n_ready; /* number of kinds; number of kinds whose routes are known */
	/* The product microbatches * slots^2, for the kind with the largest product. The work of
	 * pricing.h is proportional to this product. */
	int size;
	struct kind *kinds;
	int n_sets;
	uint64_t *stages; /* array of n_sets: stages of each set, as bits */
	/* Array of n_sets: sum of the present prices of each set's stages */
	double *value;
	/* Array of n_stages - 1: for each stage from 1 on, visits made minus visits demanded. */
	double *point;
	struct nearest_point *nearest;
	struct pricing *pricing;
	/* Arrays of n_sets with the routes for pricing.h: seconds, and sum of the stages' prices */
	double *route_s, *worth;
	uint64_t *route_stages;

	double proved_s, tried_s, stride;
	/* true: some length T could not be proved impossible, so each further step towards a
	 * longer T is half as long as the step before. false: each step is twice as long. */
	bool failed;
	int prices;     /* number of prices tried for the present T */
	int n_examined; /* number of kinds that were examined at the present prices */
	double earned;
	bool is_too_short; /* within T, the microbatches of some kind cannot all make their trips */
};

static struct kind *kind_of(struct coverage_bound *e, int node, int n)
{
	for (int i = 0; i < e->n_kinds; i++) {
		int like = shortest_paths_like(e->w, e->kinds[i].node);

		if (like == shortest_paths_like(e->w, node) && e->kinds[i].n == n)
			return &e->kinds[i];
	}
	e->kinds[e->n_kinds] = (struct kind){ .node = node, .n = n };
	return &e->kinds[e->n_kinds++];
}

/* Finds the kinds of data nodes. Returns false if the cluster is too large. */
static bool find_kinds(struct coverage_bound *e)
{
	for (int i = 0; i < e->p->sizes[0]; i++) {
		int node = e->s->members[i], n = e->sent[i];
		int memory = e->p->c->nodes[node].memory, slots = memory < n ? memory : n;

		if (n == 0)
			continue;
		if (slots < 1 || slots > PRICING_MOST_SLOTS ||
		    n > COVERAGE_BOUND_MOST_SIZE / slots / slots)
			return false;
		kind_of(e, node, n)->times++;
		e->size = n * slots * slots > e->size ? n * slots * slots : e->size;
	}
	return e->n_kinds > 0;
}

static void alloc_all(struct coverage_bound *e, struct arena *a)
{
	size_t stages = (size_t)e->p->n_stages, sets = (size_t)e->n_sets;
	int states = STATES_BY_SIZE / e->size;

	e->stages = arena_array(a, sets, sizeof(*e->stages));
	e->value = arena_array(a, sets, sizeof(*e->value));
	e->point = arena_array(a, stages, sizeof(*e->point));
	e->route_s = arena_array(a, sets, sizeof(*e->route_s));
	e->worth = arena_array(a, sets, sizeof(*e->worth));
	e->route_stages = arena_array(a, sets, sizeof(*e->route_stages));
	e->nearest = nearest_point_new(a, e->p->n_stages - 1);
	e->pricing = pricing_new(a, states < MOST_STATES ? states : MOST_STATES);
}

struct coverage_bound *coverage_bound_new(struct arena *a, const struct problem *p,
					  const struct solution *s, struct shortest_paths *w,
					  const int *sent)
{
	struct coverage_bound *e;

	if (p->length == 1 || p->n_whole > 0 || shortest_paths_sets(w) < 2 ||
	    shortest_paths_sets(w) > COVERAGE_BOUND_MOST_SETS)
		return NULL;
	e = arena_array(a, 1, sizeof(*e));
	e->p = p;
	e->s = s;
	e->arena = a;
	e->w = w;
	e->sent = sent;
	e->n_sets = shortest_paths_sets(w);
	e->stride = FIRST_STRIDE;
	e->kinds = arena_array(a, (size_t)p->sizes[0], sizeof(*e->kinds));
	if (!find_kinds(e))
		return NULL;
	alloc_all(e, a);
	return e;
}

int64_t coverage_bound_work(const struct coverage_bound *e)
{
	return pricing_work(e->pricing);
}

double coverage_bound_s(const struct coverage_bound *e)
{
	return e->proved_s;
}

/* ---- routes ---- */

struct set_time {
	double s;
	int set;
};

static int by_length(const void *a, const void *b)
{
	const struct set_time *x = a, *y = b;

	return x->s != y->s ? (x->s < y->s ? -1 : 1) : x->set - y->set;
}

/* Lists the fastest route through each set of stages. Returns false if there is no route. */
static bool list_routes(struct coverage_bound *e, struct kind *k)
{
	size_t sets = (size_t)e->n_sets;
	double *least_s = alloc_array(sets, sizeof(*least_s));
	struct set_time *routes = alloc_array(sets, sizeof(*routes));

	shortest_paths_of_sets(e->w, k->node, least_s, e->stages);
	k->route_s = arena_array(e->arena, sets, sizeof(*k->route_s));
	k->set = arena_array(e->arena, sets, sizeof(*k->set));
	for (int i = 0; i < e->n_sets; i++)
		if (isfinite(least_s[i]))
			routes[k->n_routes++] = (struct set_time){ least_s[i], i };
	qsort(routes, (size_t)k->n_routes, sizeof(*routes), by_length);
	for (int i = 0; i < k->n_routes; i++) {
		k->route_s[i] = routes[i].s;
		k->set[i] = routes[i].set;
	}
	free(least_s);
	free(routes);
	return k->n_routes > 0;
}

/* ---- prices ---- */

enum answer { IMPOSSIBLE, NOT_SHOWN, NEW_PRICES };

static double price_of(const struct coverage_bound *e, int stage)
{
	return -nearest_point_direction(e->nearest)[stage - 1];
}

static void value_sets(struct coverage_bound *e)
{
	for (int set = 0; set < e->n_sets; set++) {
		e->value[set] = 0;
		for (int stage = 1; stage < e->p->n_stages; stage++)
			if (e->stages[set] >> stage & 1)
				e->value[set] += price_of(e, stage);
	}
}

/* Chooses the routes with a higher price than all shorter routes, and returns their number. If
 * there are more than MOST_ROUTES, several neighbouring routes become one route with the shortest
 * length and the highest price among them. The totals of pricing.h can then only be too high, so
 * the bound stays valid. */
static int choose_routes(struct coverage_bound *e, const struct kind *k)
{
	double best = -INFINITY;
	int n = 0, few, kept = 0;

	for (int i = 0; i < k->n_routes; i++) {
		if (e->value[k->set[i]] <= best)
			continue;
		best = e->value[k->set[i]];
		e->route_s[n] = k->route_s[i];
		e->worth[n] = best;
		e->route_stages[n++] = e->stages[k->set[i]];
	}
	few = (n + MOST_ROUTES - 1) / MOST_ROUTES;
	for (int i = 0; i < n; i += few, kept++) {
		int last = i + few - 1 < n ? i + few - 1 : n - 1;

		e->route_s[kept] = e->route_s[i];
		e->worth[kept] = e->worth[last];
		e->route_stages[kept] = e->route_stages[last];
	}
	return kept;
}

/* Returns the highest total price of the trips that the microbatches of a data node of this kind
 * can make within T. Adds the visits of these trips to `visits`. */
static double earn_most(struct coverage_bound *e, const struct kind *k, int *visits)
{
	const struct cluster_node *n = &e->p->c->nodes[k->node];
	struct pricing_request of = {
		.forward_s = problem_forward_s(e->p, e->s->work, k->node),
		.loss_s = n->loss_s,
		.backward_s = problem_backward_s(e->p, e->s->work, k->node),
		.overhead_s = e->p->c->dispatch_overhead_s,
		.n = k->n,
		.slots = n->memory < k->n ? n->memory : k->n,
		.n_routes = choose_routes(e, k),
		.route_s = e->route_s,
		.worth = e->worth,
		.stages = e->route_stages,
	};

	return pricing_most(e->pricing, &of, e->tried_s * (1 + ROUNDING), visits);
}

/* Returns how many visits of the stage are demanded. Of all numbers that exposure (CC3) allows,
 * this is the number with the lowest total price. */
static int demanded_visits(const struct coverage_bound *e, int stage)
{
	return price_of(e, stage) < 0 ? e->p->high[stage] : e->p->low[stage];
}

static void ask_kind(struct coverage_bound *e, const struct kind *k)
{
	int visits[PRICING_STAGES] = { 0 };
	double worth = earn_most(e, k, visits);

	if (isinf(worth))
		e->is_too_short = true;
	else
		e->earned += k->times * worth;
	for (int stage = 1; stage < e->p->n_stages; stage++)
		e->point[stage - 1] += k->times * visits[stage];
}

/* Decides if T is impossible, after all kinds have been examined at the present prices. */
static enum answer judge_prices(struct coverage_bound *e)
{
	double demanded = 0, size = 0;

	for (int stage = 1; stage < e->p->n_stages; stage++) {
		demanded += price_of(e, stage) * demanded_visits(e, stage);
		size += fabs(price_of(e, stage)) * e->p->high[stage];
		e->point[stage - 1] -= demanded_visits(e, stage);
	}
	if (e->is_too_short || e->earned < demanded - ROUNDING * size)
		return IMPOSSIBLE;
	if (++e->prices > MOST_PRICES || !nearest_point_add(e->nearest, e->point))
		return NOT_SHOWN;
	return NEW_PRICES;
}

static void try_next(struct coverage_bound *e, double known_s)
{
	e->prices = 0;
	e->tried_s = fmax(known_s, e->proved_s) * (1 + e->stride);
}

static void begin_asking(struct coverage_bound *e)
{
	e->n_examined = 0;
	e->earned = 0;
	e->is_too_short = false;
	memset(e->point, 0, (size_t)e->p->n_stages * sizeof(*e->point));
	value_sets(e);
}

bool coverage_bound_step(struct coverage_bound *e, double known_s)
{
	enum answer answer;

	if (e->n_ready < e->n_kinds)
		return list_routes(e, &e->kinds[e->n_ready++]) && known_s > 0;
	if (e->tried_s <= 0)
		try_next(e, known_s);
	if (e->n_examined == 0)
		begin_asking(e);
	ask_kind(e, &e->kinds[e->n_examined++]);
	if (e->n_examined < e->n_kinds && !e->is_too_short)
		return true;
	e->n_examined = 0;
	answer = judge_prices(e);
	if (answer == NEW_PRICES)
		return true;
	if (answer == IMPOSSIBLE) {
		/* Keeps the points of the hull: visits that fit into T also fit into a longer T. */
		e->proved_s = e->tried_s;
	} else {
		e->failed = true;
		nearest_point_clear(e->nearest);
	}
	e->stride *= e->failed ? 0.5 : 2;
	try_next(e, known_s);
	return e->stride > LAST_STRIDE && e->stride < 1 / LAST_STRIDE;
}
