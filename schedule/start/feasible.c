/* The complete search for legal paths.
 *
 * Step 1 finds, for each data node, every set of stages that a legal path can visit, with the
 * cheapest such path. Step 2 chooses a set for each microbatch, depth first, so that every stage
 * gets its visits. It remembers each state (the visits of each stage so far) from which it found no
 * sets for the remaining microbatches. If both steps end without paths, this proves that no paths
 * exist. If a step reaches its limit, the result is only "not found". */
#include "schedule/start/feasible.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/array.h"

#define MOST_WORK 40000000L     /* largest number of hops that are examined */
#define MOST_ROUTES 60000       /* largest number of sets of stages, over all data nodes */
#define MOST_STATES 100000      /* largest number of failures that are remembered */
#define EXCHANGE_COST 1e12      /* cost of an exchange in seconds: an exchange is a last resort */

/* A set of stages through which a data node can send a microbatch, with the cheapest path. */
struct set_path {
	uint64_t stages; /* stages of the set, as bits */
	double cost;
	int path; /* offset of the path in the array `paths` */
};

struct feasible {
	const struct problem *p;
	struct solution *s;
	struct set_path *routes;
	int n_routes;
	size_t room_routes, room_paths;
	struct arena arena; /* owns all other arrays except `paths` */
	/* Array of sizes[0] + 1: index in `routes` of the first route of each data node, in the
	 * order of s->members. */
	int *first_route;
	int *paths; /* array of (n_routes, length) */
	long work_left;
	/* State of step 1 for one data node: least cost to reach each node of a layer's stage.
	 * Layer h has the nodes of the h-th visit. */
	int place, data_node;
	double *cost;  /* array of (length, n_nodes) */
	int32_t *from; /* array of (length, n_nodes) */
	int stage[PLAN_MOST_PATH];
	/* State of step 2. */
	int *visits; /* array of n_stages: number of visits so far */
	/* arrays of (n_mb + 1, n_stages). can[i]: for each stage, how many of the microbatches from
	 * i on can visit the stage. must[i]: how many of them must visit the stage. */
	int *can, *must;
	int *choice; /* array of n_mb: the route chosen for each microbatch */
	/* Array of MOST_STATES: the states of step 2 from which no choice succeeded. Each state
	 * is the index i of a microbatch, followed by the number of visits of each stage except
	 * stage 0. */
	uint16_t *keys;
	int32_t *table; /* hash table with TABLE entries: indices into keys; -1: empty */
	int n_keys;
};

#define TABLE (4 * MOST_STATES)

static void feasible_init(struct feasible *f, struct solution *s, const struct problem *p)
{
	size_t n = (size_t)p->n_nodes, stages = (size_t)p->n_stages, mb = (size_t)p->n_mb + 1;

	*f = (struct feasible){ .p = p, .s = s, .work_left = MOST_WORK };
	f->first_route = arena_array(&f->arena, (size_t)p->sizes[0] + 1, sizeof(*f->first_route));
	f->cost = arena_array(&f->arena, (size_t)p->length * n, sizeof(*f->cost));
	f->from = arena_array(&f->arena, (size_t)p->length * n, sizeof(*f->from));
	f->visits = arena_array(&f->arena, stages, sizeof(*f->visits));
	f->can = arena_array(&f->arena, mb * stages, sizeof(*f->can));
	f->must = arena_array(&f->arena, mb * stages, sizeof(*f->must));
	f->choice = arena_array(&f->arena, mb, sizeof(*f->choice));
}

static void feasible_fini(struct feasible *f)
{
	arena_free(&f->arena);
	free(f->routes);
	free(f->paths);
}

/* Fills layer h with the nodes of `stage`, reached from the nodes of the layer before. Returns
 * false if no node can be reached. */
static bool reach_layer(struct feasible *f, int h, int stage, double extra)
{
	const struct problem *p = f->p;
	const struct solution *s = f->s;
	size_t n = (size_t)p->n_nodes, row = (size_t)h * n, before = row - n;
	int was = f->stage[h - 1], begin = s->start[was], end = s->start[was + 1];
	bool any = false;

	f->stage[h] = stage;
	for (int i = s->start[stage]; i < s->start[stage + 1]; i++) {
		int v = s->members[i];

		f->cost[row + (size_t)v] = INFINITY;
		for (int k = begin; k < end && p->c->nodes[v].memory > 0; k++) {
			int u = s->members[k];
			double cost = f->cost[before + (size_t)u] + extra +
				      p->round[(size_t)u * n + (size_t)v];

			f->work_left--;
			if (cost < f->cost[row + (size_t)v]) {
				f->cost[row + (size_t)v] = cost;
				f->from[row + (size_t)v] = u;
				any = true;
			}
		}
	}
	return any;
}

/* Finds the data node's route through this set of stages. If the data node has no such route yet,
 * adds a route without a path. */
static struct set_path *find_route(struct feasible *f, uint64_t stages)
{
	size_t n = (size_t)f->n_routes + 1, length = (size_t)f->p->length;

	for (int i = f->first_route[f->place]; i < f->n_routes; i++) {
		if (f->routes[i].stages == stages)
			return &f->routes[i];
	}
	array_reserve(&f->routes, &f->room_routes, n, sizeof(f->routes[0]));
	array_reserve(&f->paths, &f->room_paths, n * length, sizeof(f->paths[0]));
	f->routes[n - 1] = (struct set_path){ stages, INFINITY, f->n_routes * f->p->length };
	f->n_routes++;
	return &f->routes[n - 1];
}

/* Called when all layers are filled: adds the hop back to the data node, and keeps the path if it
 * is the cheapest through its set of stages. */
static void close_route(struct feasible *f)
{
	const struct problem *p = f->p;
	size_t n = (size_t)p->n_nodes;
	int h = p->length - 1, last = -1, stage = f->stage[h];
	struct set_path *r;
	uint64_t stages = 0;
	double best = INFINITY;

	for (int i = f->s->start[stage]; i < f->s->start[stage + 1]; i++) {
		int v = f->s->members[i];
		double cost = f->cost[(size_t)h * n + (size_t)v] +
			      p->round[(size_t)v * n + (size_t)f->data_node];

		if (cost < best) {
			best = cost;
			last = v;
		}
	}
	if (last < 0)
		return;
	for (int k = 0; k <= h; k++)
		stages |= (uint64_t)1 << f->stage[k];
	f->work_left -= f->n_routes - f->first_route[f->place];
	r = find_route(f, stages);
	if (best >= r->cost)
		return;
	r->cost = best;
	for (int k = h; k >= 0; k--) {
		f->paths[r->path + k] = last;
		last = k > 0 ? f->from[(size_t)k * n + (size_t)last] : -1;
	}
}

/* Tries all legal orders of stages from layer h on; `top` is the highest stage so far. */
static int walk_orders(struct feasible *f, int h, int top)
{
	const struct problem *p = f->p;
	int rc = 0;

	if (f->work_left < 0 || f->n_routes > MOST_ROUTES)
		return PLAN_NOT_FOUND;
	if (h == p->length) {
		close_route(f);
		return 0;
	}
	/* Enough stages must be left for the layers that follow. */
	for (int stage = top + 1; rc == 0 && stage <= p->n_stages - (p->length - h); stage++) {
		if (reach_layer(f, h, stage, 0))
			rc = walk_orders(f, h + 1, stage);
		if (rc == 0 && !p->q->ascending && h + 1 < p->length &&
		    stage + 1 < p->n_stages && reach_layer(f, h, stage + 1, EXCHANGE_COST) &&
		    reach_layer(f, h + 1, stage, 0))
			rc = walk_orders(f, h + 2, stage + 1);
	}
	return rc;
}

static int find_routes(struct feasible *f, struct error *err)
{
	const struct problem *p = f->p;
	int rc = 0;

	for (int place = 0; rc == 0 && place < p->sizes[0]; place++) {
		f->place = place;
		f->data_node = f->s->members[place];
		f->first_route[place] = f->n_routes;
		f->stage[0] = 0;
		for (int i = f->s->start[0]; i < f->s->start[1]; i++)
			f->cost[f->s->members[i]] = INFINITY;
		f->cost[f->data_node] = 0;
		if (p->c->nodes[f->data_node].memory > 0)
			rc = walk_orders(f, 1, 0);
		if (rc == 0 && f->n_routes == f->first_route[place])
			return error_set(
				err, PLAN_INFEASIBLE,
				p->c->nodes[f->data_node].memory > 0
					? "data node %d has no path through %d stages and back"
					: "data node %d has no memory: 1 slot short",
				f->data_node, p->length - 1);
	}
	f->first_route[p->sizes[0]] = f->n_routes;
	return rc;
}

/* Counts, from the last microbatch to the first, how many can visit and how many must visit each
 * stage. */
static void count_ahead(struct feasible *f)
{
	const struct problem *p = f->p;
	int stages = p->n_stages;

	for (int i = p->n_mb - 1; i >= 0; i--) {
		int place = p->mb_slot[i];
		uint64_t any = 0, all = ~(uint64_t)0;

		for (int r = f->first_route[place]; r < f->first_route[place + 1]; r++) {
			any |= f->routes[r].stages;
			all &= f->routes[r].stages;
		}
		for (int s = 1; s < stages; s++) {
			size_t at = (size_t)i * (size_t)stages + (size_t)s;

			f->can[at] = f->can[at + (size_t)stages] + (int)(any >> s & 1);
			f->must[at] = f->must[at + (size_t)stages] + (int)(all >> s & 1);
		}
	}
}

static int check_stages(const struct feasible *f, struct error *err)
{
	const struct problem *p = f->p;

	for (int s = 1; s < p->n_stages; s++) {
		if (f->can[s] < p->low[s])
			return error_set(err, PLAN_INFEASIBLE,
					 "stage %d: exposure asks for %d visits, links and "
					 "memory allow %d: %d short",
					 s, p->low[s], f->can[s], p->low[s] - f->can[s]);
		if (f->must[s] > p->high[s])
			return error_set(err, PLAN_INFEASIBLE,
					 "stage %d: %d microbatches cannot avoid it, exposure "
					 "allows %d visits",
					 s, f->must[s], p->high[s]);
	}
	return 0;
}

/* Returns the state's entry in the hash table, which is -1 if the state is not remembered. */
static int32_t *find_remembered(const struct feasible *f, int i)
{
	int stages = f->p->n_stages;
	uint64_t hash = (uint64_t)i * 0x9e3779b97f4a7c15u;

	for (int s = 1; s < stages; s++)
		hash = (hash ^ (uint64_t)f->visits[s]) * 0x100000001b3u;
	for (uint64_t at = (hash ^ hash >> 29) % TABLE;; at = (at + 1) % TABLE) {
		const uint16_t *key;
		int s = 1;

		if (f->table[at] < 0)
			return &f->table[at];
		key = f->keys + (size_t)f->table[at] * (size_t)stages;
		while (s < stages && key[s] == (uint16_t)f->visits[s])
			s++;
		if (s == stages && key[0] == (uint16_t)i)
			return &f->table[at];
	}
}

static int remember_failure(struct feasible *f, int i)
{
	uint16_t *key = f->keys + (size_t)f->n_keys * (size_t)f->p->n_stages;

	if (f->n_keys == MOST_STATES)
		return PLAN_NOT_FOUND;
	*find_remembered(f, i) = f->n_keys++;
	key[0] = (uint16_t)i;
	for (int s = 1; s < f->p->n_stages; s++)
		key[s] = (uint16_t)f->visits[s];
	return PLAN_INFEASIBLE;
}

/* Returns true if the microbatches from i on can still give every stage a legal number of visits.
 */
static bool within_reach(const struct feasible *f, int i)
{
	const struct problem *p = f->p;
	const int *can = f->can + (size_t)i * (size_t)p->n_stages;
	const int *must = f->must + (size_t)i * (size_t)p->n_stages;

	for (int s = 1; s < p->n_stages; s++) {
		if (f->visits[s] + must[s] > p->high[s] || f->visits[s] + can[s] < p->low[s])
			return false;
	}
	return true;
}

/* Returns how urgent a set is: the visits that its stages lack, divided by the number of
 * microbatches that can still visit them. */
static double need_of(const struct feasible *f, int i, uint64_t set)
{
	const struct problem *p = f->p;
	const int *can = f->can + (size_t)i * (size_t)p->n_stages;
	double need = 0;

	for (int s = 1; s < p->n_stages; s++) {
		if (set >> s & 1)
			need += (p->high[s] - f->visits[s]) / (double)can[s];
	}
	return need;
}

static void visit_all(struct feasible *f, uint64_t set, int by)
{
	for (int s = 1; s < f->p->n_stages; s++)
		f->visits[s] += set >> s & 1 ? by : 0;
}

/* Chooses the sets of the microbatches from i on. PLAN_INFEASIBLE: no choice is possible.
 * PLAN_NOT_FOUND: the limits were reached. */
static int choose_sets(struct feasible *f, int i)
{
	const struct problem *p = f->p;
	int first, n, rc = PLAN_INFEASIBLE;
	double *need;

	if (!within_reach(f, i))
		return PLAN_INFEASIBLE;
	if (i == p->n_mb)
		return 0;
	if (*find_remembered(f, i) >= 0)
		return PLAN_INFEASIBLE;
	first = f->first_route[p->mb_slot[i]];
	n = f->first_route[p->mb_slot[i] + 1] - first;
	if ((f->work_left -= (long)n * p->n_stages) < 0)
		return PLAN_NOT_FOUND;
	need = alloc_array((size_t)n, sizeof(*need));
	for (int k = 0; k < n; k++)
		need[k] = need_of(f, i, f->routes[first + k].stages);
	for (int tried = 0; tried < n && rc == PLAN_INFEASIBLE; tried++) {
		int best = 0;

		for (int k = 1; k < n; k++)
			best = need[k] > need[best] ? k : best;
		need[best] = -INFINITY;
		f->choice[i] = first + best;
		visit_all(f, f->routes[first + best].stages, 1);
		rc = choose_sets(f, i + 1);
		visit_all(f, f->routes[first + best].stages, -1);
	}
	free(need);
	return rc == PLAN_INFEASIBLE ? remember_failure(f, i) : rc;
}

static int choose_paths(struct feasible *f, struct error *err)
{
	const struct problem *p = f->p;
	int rc;

	if (!problem_is(p, REGIME_FEASIBLE))
		return PLAN_NOT_FOUND;
	f->keys = arena_array(&f->arena, (size_t)MOST_STATES * (size_t)p->n_stages,
			      sizeof(*f->keys));
	f->table = arena_array(&f->arena, TABLE, sizeof(*f->table));
	memset(f->table, 0xff, (size_t)TABLE * sizeof(*f->table));
	rc = choose_sets(f, 0);
	if (rc == PLAN_INFEASIBLE)
		error_set(
			err, rc,
			"the links allow no paths that visit every stage equally often (CC3)");
	for (int i = 0; rc == 0 && i < p->n_mb; i++)
		memcpy(solution_path(f->s, p, i),
		       f->paths + f->routes[f->choice[i]].path, (size_t)p->length * sizeof(int));
	return rc;
}

int feasible_paths(struct solution *s, const struct problem *p, struct error *err)
{
	struct feasible f;
	int rc;

	feasible_init(&f, s, p);
	rc = find_routes(&f, err);
	if (rc == 0) {
		count_ahead(&f);
		rc = check_stages(&f, err);
	}
	if (rc == 0)
		rc = choose_paths(&f, err);
	feasible_fini(&f);
	if (rc == PLAN_NOT_FOUND)
		error_set(err, rc,
			  "no legal paths found, and too many nodes to be sure that there are "
			  "none");
	return rc;
}
