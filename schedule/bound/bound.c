/* The bound, computed in parts as time allows.
 *
 * The first parts are the bounds of single data nodes. The data node that finishes last is examined
 * first. Then come the bounds of single stages, and then the coverage bound, which takes several
 * steps. A data node is skipped if it equals a data node that was examined. Each part can only
 * raise the bound, so the bound is valid after any part. */
#include "schedule/bound/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "schedule/bound/coverage_bound.h"
#include "schedule/bound/single_machine.h"
#include "schedule/bound/shortest_paths.h"

/* Argument most_states of single_machine_least_s: number of partial schedules that are kept in each
 * group. All partial schedules of a group have the same number of forward passes done, the same
 * number of losses, and the same number of backward passes. */
#define MOST_STATES 100
/* After this many examined hops, the remaining data nodes are skipped. */
#define MOST_HOPS 300000000L
/* During a search, bound_beside takes a step of the bound, then waits for n_nodes / NODES_APART + 1
 * evaluations. If the step compared partial schedules (states), the wait is longer by the time of
 * that work: STATES_A_VISIT states take as long as one simulated visit. The bound then takes about
 * a tenth of the search's time. */
#define NODES_APART 4
#define STATES_A_VISIT 1
/* Limits of one call of bound_answer: at most this many steps, and this many compared states. */
#define MOST_STEPS 100
#define MOST_COMPARED 5000000

struct bound {
	const struct problem *p;
	const struct solution *s;
	struct arena arena; /* owns the fields below */
	/* Array of sizes[0]: number of microbatches of each data node, in the order of
	 * s->members. */
	int *sent;
	/* Array of sizes[0]: indices of the data nodes in s->members. The data nodes that finish
	 * latest come first. */
	int *order;
	/* Number of parts that are done or skipped. The parts are the data nodes in `order`, then
	 * all stages except stage 0. */
	int next;
	int64_t due; /* number of evaluations until the next step is due during a search */
	bool done;
	struct shortest_paths *routes;
	/* The last part of the bound. NULL: this part is not reached yet, or is not possible for
	 * this cluster. */
	struct coverage_bound *coverage;
	double best_s;
};

struct bound *bound_new(const struct problem *p, const struct solution *s,
			const double *finish_s)
{
	struct bound *b = alloc_new(sizeof(*b));
	size_t data = (size_t)p->sizes[0];
	double *late;

	b->p = p;
	b->s = s;
	b->sent = arena_array(&b->arena, data, sizeof(*b->sent));
	b->order = arena_array(&b->arena, data, sizeof(*b->order));
	late = arena_array(&b->arena, data, sizeof(*late));
	b->routes = shortest_paths_new(&b->arena, p, s);
	for (int i = 0; i < p->n_mb; i++) {
		b->sent[p->mb_slot[i]]++;
		if (finish_s && finish_s[i] > late[p->mb_slot[i]])
			late[p->mb_slot[i]] = finish_s[i];
	}
	for (int i = 0; i < (int)data; i++) {
		int at = i;

		for (; at > 0 && late[b->order[at - 1]] < late[i]; at--)
			b->order[at] = b->order[at - 1];
		b->order[at] = i;
	}
	return b;
}

void bound_free(struct bound *b)
{
	if (b)
		arena_free(&b->arena);
	free(b);
}

double bound_s(const struct bound *b)
{
	return b->best_s;
}

static void bound_data_node(struct bound *b, int place)
{
	int node = b->s->members[place];
	const struct cluster_node *n = &b->p->c->nodes[node];
	struct single_machine m = {
		.forward_s = problem_forward_s(b->p, b->s->work, node),
		.loss_s = n->loss_s,
		.backward_s = problem_backward_s(b->p, b->s->work, node),
		.overhead_s = b->p->c->dispatch_overhead_s,
		.slots = n->memory,
		.lag_loss_s = shortest_paths_fastest_s(b->routes, node, SHORTEST_PATHS_OUT),
		.lag_back_s = shortest_paths_fastest_s(b->routes, node, SHORTEST_PATHS_BACK),
		.lag_round_s = shortest_paths_fastest_s(b->routes, node, SHORTEST_PATHS_ROUND),
		.n = b->sent[place],
	};
	bool exact;

	if (isfinite(m.lag_round_s))
		b->best_s = fmax(b->best_s, single_machine_least_s(&m, MOST_STATES, &exact));
}

/* Returns true if the search can skip the data node s->members[place]. This is so if the limit on
 * hops is reached, or if an examined data node has the same routes, speed and memory, and at least
 * as many microbatches. */
static bool may_skip(const struct bound *b, int place)
{
	for (int i = 0; i < b->next; i++) {
		int before = b->order[i];

		if (b->sent[before] >= b->sent[place] &&
		    shortest_paths_like(b->routes, b->s->members[before]) ==
			    shortest_paths_like(b->routes, b->s->members[place]))
			return true;
	}
	return shortest_paths_work(b->routes) > MOST_HOPS;
}

/* Returns how many visits node v can serve in an iteration of t seconds. */
static double visits_within(const struct bound *b, int v, double edges_s, double t)
{
	const struct cluster_node *n = &b->p->c->nodes[v];
	double each = problem_visit_s(b->p, b->s->work, v);
	double room = t - edges_s + b->p->c->dispatch_overhead_s;

	if (n->memory < 1 || room < 0)
		return 0;
	return each > 0 ? floor(room / each * (1 + 1e-12)) : INFINITY;
}

/* Returns a lower bound of the seconds for which node v is idle in an iteration: before its first
 * arrival, and after its last backward pass. */
static double edges_of(const struct bound *b, int v)
{
	const struct problem *p = b->p;
	size_t n = (size_t)p->n_nodes;
	double in = INFINITY, out = INFINITY, first = INFINITY, last = INFINITY;

	for (int i = 0; i < b->s->start[p->n_stages]; i++) {
		int u = b->s->members[i];

		if (u == v)
			continue;
		in = fmin(in, p->delay[(size_t)u * n + (size_t)v]);
		out = fmin(out, p->delay[(size_t)v * n + (size_t)u]);
		if (b->s->stage_of[u] == 0) {
			first = fmin(first, problem_forward_s(p, b->s->work, u));
			last = fmin(last, problem_backward_s(p, b->s->work, u));
		}
	}
	return in + out + first + last;
}

static double served_within(const struct bound *b, int stage, const double *edges, double t)
{
	int first = b->s->start[stage], size = b->s->start[stage + 1] - first;
	double served = 0;

	for (int i = 0; i < size; i++)
		served += isfinite(edges[i])
			? visits_within(b, b->s->members[first + i], edges[i], t) : 0;
	return served;
}

static void bound_stage(struct bound *b, int stage)
{
	int first = b->s->start[stage], size = b->s->start[stage + 1] - first;
	int demand = b->p->low[stage];
	double *edges = alloc_array((size_t)size, sizeof(*edges)), low = 0, high = 1;

	for (int i = 0; i < size; i++)
		edges[i] = edges_of(b, b->s->members[first + i]);
	while (high < 1e12 && served_within(b, stage, edges, high) < demand) {
		low = high;
		high *= 2;
	}
	for (int round = 0; round < 60 && high < 1e12; round++) {
		double t = (low + high) / 2;

		if (served_within(b, stage, edges, t) < demand)
			low = t;
		else
			high = t;
	}
	if (demand > 0 && high < 1e12 && low > b->best_s)
		b->best_s = low;
	free(edges);
}

static bool bound_coverage(struct bound *b)
{
	bool more = coverage_bound_step(b->coverage, b->best_s);

	b->best_s = fmax(b->best_s, coverage_bound_s(b->coverage));
	return more;
}

/* Works on the next part of the bound. Returns false if no part is left. */
static bool bound_part(struct bound *b)
{
	int data = b->p->sizes[0], stage;

	if (b->coverage)
		return bound_coverage(b);
	while (b->next < data && may_skip(b, b->order[b->next]))
		b->next++;
	stage = b->next - data + 1;
	if (b->next < data) {
		bound_data_node(b, b->order[b->next]);
	} else if (stage < b->p->n_stages && b->p->length > 1) {
		bound_stage(b, stage);
	} else {
		b->coverage = coverage_bound_new(&b->arena, b->p, b->s, b->routes, b->sent);
		return b->coverage != NULL;
	}
	b->next++;
	return true;
}

bool bound_step(struct bound *b)
{
	b->done = b->done || !bound_part(b);
	return !b->done;
}

static int64_t states_compared(const struct bound *b)
{
	return b->coverage ? coverage_bound_work(b->coverage) : 0;
}

double bound_beside(struct bound *b, int64_t runs)
{
	int64_t visits = b->p->visits, were;

	for (b->due -= runs; b->due <= 0; b->due += b->p->n_nodes / NODES_APART + 1) {
		were = states_compared(b);
		if (!bound_step(b))
			break;
		b->due += (states_compared(b) - were) / (STATES_A_VISIT * visits);
	}
	return b->best_s;
}

double bound_answer(struct bound *b)
{
	int left = MOST_STEPS;

	while ((left-- > 0 || b->coverage) && states_compared(b) < MOST_COMPARED && bound_step(b))
		;
	return b->best_s;
}
