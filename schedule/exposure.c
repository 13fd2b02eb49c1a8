#include "schedule/exposure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/separate.h"
#include "schedule/takings.h"

#define FIRST_STRIDE 0.04
#define LAST_STRIDE 0.001
#define MOST_PRICES 100 /* tried for one T */
#define MOST_STATES 300 /* of takings.h */
#define ROUNDING 1e-9

/* Data nodes with the same ways that send as many microbatches. */
struct kind {
	int node, n, times;
	int n_ways;
	double *way_s; /* (n_ways) ascending; NULL: not known yet */
	int *set;      /* (n_ways) */
};

struct exposure {
	const struct problem *p;
	const struct solution *s;
	struct ways *w;
	const int *sent;
	int n_kinds, n_ready; /* of those the ways are known */
	struct kind *kinds;
	int n_sets;
	uint64_t *stages; /* (n_sets) bits */
	double *value;    /* (n_sets) at the prices */
	double *point;    /* (n_stages - 1) visits less those demanded */
	struct separate *separate;
	struct takings *takings;
	double *way_s, *worth; /* (n_sets) of the ways that are worth having */
	uint64_t *way_stages;

	double proved_s, tried_s, stride;
	bool failed; /* some T could not be shown impossible */
	int prices;  /* tried for this one */
};

static int alloc_all(struct exposure *e)
{
	size_t stages = (size_t)e->p->n_stages, sets = (size_t)e->n_sets;

	e->stages = calloc(sets, sizeof(*e->stages));
	e->value = calloc(sets, sizeof(*e->value));
	e->point = calloc(stages, sizeof(*e->point));
	e->way_s = calloc(sets, sizeof(*e->way_s));
	e->worth = calloc(sets, sizeof(*e->worth));
	e->way_stages = calloc(sets, sizeof(*e->way_stages));
	e->separate = separate_new(e->p->n_stages - 1);
	e->takings = takings_new(MOST_STATES);
	return e->stages && e->value && e->point && e->way_s && e->worth && e->way_stages &&
			       e->separate && e->takings
		       ? 0
		       : -ENOMEM;
}

static struct kind *kind_of(struct exposure *e, int node, int n)
{
	for (int i = 0; i < e->n_kinds; i++)
		if (ways_like(e->w, e->kinds[i].node) == ways_like(e->w, node) &&
		    e->kinds[i].n == n)
			return &e->kinds[i];
	e->kinds[e->n_kinds] = (struct kind){ .node = node, .n = n };
	return &e->kinds[e->n_kinds++];
}

static bool find_kinds(struct exposure *e)
{
	for (int i = 0; i < e->p->sizes[0]; i++) {
		int node = e->s->members[i], n = e->sent[i];
		int memory = e->p->c->nodes[node].memory;

		if (n == 0)
			continue;
		if (memory < 1 || n > EXPOSURE_MOST_MB || (memory < n ? memory : n) > TAKINGS_MOST_SLOTS)
			return false;
		kind_of(e, node, n)->times++;
	}
	return e->n_kinds > 0;
}

int exposure_new(struct exposure **out, const struct problem *p, const struct solution *s,
		 struct ways *w, const int *sent)
{
	struct exposure *e;
	int rc = -ENOMEM;

	*out = NULL;
	if (p->length == 1 || ways_sets(w) < 2 || ways_sets(w) > EXPOSURE_MOST_SETS)
		return 0;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->p = p;
	e->s = s;
	e->w = w;
	e->sent = sent;
	e->n_sets = ways_sets(w);
	e->stride = FIRST_STRIDE;
	e->kinds = calloc((size_t)p->sizes[0], sizeof(*e->kinds));
	if (!e->kinds)
		goto free_exposure;
	rc = find_kinds(e) ? alloc_all(e) : 0;
	if (rc == 0 && e->takings) {
		*out = e;
		return 0;
	}
free_exposure:
	exposure_free(e);
	return rc;
}

void exposure_free(struct exposure *e)
{
	if (!e)
		return;
	for (int i = 0; i < e->n_kinds; i++) {
		free(e->kinds[i].way_s);
		free(e->kinds[i].set);
	}
	free(e->kinds);
	free(e->stages);
	free(e->value);
	free(e->point);
	free(e->way_s);
	free(e->worth);
	free(e->way_stages);
	separate_free(e->separate);
	takings_free(e->takings);
	free(e);
}

double exposure_s(const struct exposure *e)
{
	return e->proved_s;
}

/* ---- ways ---- */

struct way {
	double s;
	int set;
};

static int by_length(const void *a, const void *b)
{
	const struct way *x = a, *y = b;

	return x->s != y->s ? (x->s < y->s ? -1 : 1) : x->set - y->set;
}

/* False: out of memory, or there is none. */
static bool list_ways(struct exposure *e, struct kind *k)
{
	size_t sets = (size_t)e->n_sets;
	double *least_s = malloc(sets * sizeof(*least_s));
	struct way *ways = malloc(sets * sizeof(*ways));
	bool done = least_s && ways && ways_of_sets(e->w, k->node, least_s, e->stages);

	k->way_s = malloc(sets * sizeof(*k->way_s));
	k->set = malloc(sets * sizeof(*k->set));
	done = done && k->way_s && k->set;
	for (int i = 0; done && i < e->n_sets; i++)
		if (isfinite(least_s[i]))
			ways[k->n_ways++] = (struct way){ least_s[i], i };
	if (done)
		qsort(ways, (size_t)k->n_ways, sizeof(*ways), by_length);
	for (int i = 0; i < k->n_ways; i++) {
		k->way_s[i] = ways[i].s;
		k->set[i] = ways[i].set;
	}
	free(least_s);
	free(ways);
	return k->n_ways > 0;
}

/* ---- prices ---- */

enum answer { IMPOSSIBLE, NOT_SHOWN, NEW_PRICES };

static double price_of(const struct exposure *e, int stage)
{
	return -separate_direction(e->separate)[stage - 1];
}

static void value_sets(struct exposure *e)
{
	for (int set = 0; set < e->n_sets; set++) {
		e->value[set] = 0;
		for (int stage = 1; stage < e->p->n_stages; stage++)
			if (e->stages[set] >> stage & 1)
				e->value[set] += price_of(e, stage);
	}
}

/* What a data node of this kind earns at most. Only ways count that are worth more than all shorter. */
static double earn(struct exposure *e, const struct kind *k, int *visits)
{
	const struct cluster_node *n = &e->p->c->nodes[k->node];
	struct takings_of of = {
		.forward_s = n->forward_s,
		.loss_s = n->loss_s,
		.backward_s = n->backward_s,
		.overhead_s = e->p->c->dispatch_overhead_s,
		.n = k->n,
		.slots = n->memory < k->n ? n->memory : k->n,
		.way_s = e->way_s,
		.worth = e->worth,
		.stages = e->way_stages,
	};
	double best = -INFINITY;

	for (int i = 0; i < k->n_ways; i++) {
		if (e->value[k->set[i]] <= best)
			continue;
		best = e->value[k->set[i]];
		e->way_s[of.n_ways] = k->way_s[i];
		e->worth[of.n_ways] = best;
		e->way_stages[of.n_ways++] = e->stages[k->set[i]];
	}
	return takings_most(e->takings, &of, e->tried_s * (1 + ROUNDING), visits);
}

/* Of the visits that a stage may have, those that are worth the least. */
static int demand(const struct exposure *e, int stage)
{
	return price_of(e, stage) < 0 ? e->p->high[stage] : e->p->low[stage];
}

static enum answer look(struct exposure *e)
{
	double earned = 0, demanded = 0, size = 0;

	value_sets(e);
	memset(e->point, 0, (size_t)e->p->n_stages * sizeof(*e->point));
	for (int i = 0; i < e->n_kinds; i++) {
		int visits[TAKINGS_STAGES] = { 0 }, times = e->kinds[i].times;
		double worth = earn(e, &e->kinds[i], visits);

		if (isinf(worth))
			return IMPOSSIBLE;
		earned += times * worth;
		for (int stage = 1; stage < e->p->n_stages; stage++)
			e->point[stage - 1] += times * visits[stage];
	}
	for (int stage = 1; stage < e->p->n_stages; stage++) {
		demanded += price_of(e, stage) * demand(e, stage);
		size += fabs(price_of(e, stage)) * e->p->high[stage];
		e->point[stage - 1] -= demand(e, stage);
	}
	if (earned < demanded - ROUNDING * size)
		return IMPOSSIBLE;
	if (++e->prices > MOST_PRICES || !separate_tell(e->separate, e->point))
		return NOT_SHOWN;
	return NEW_PRICES;
}

bool exposure_step(struct exposure *e, double known_s)
{
	enum answer answer;

	if (e->n_ready < e->n_kinds)
		return list_ways(e, &e->kinds[e->n_ready++]) && known_s > 0;
	if (e->prices == 0 && e->tried_s <= known_s)
		e->tried_s = known_s * (1 + e->stride);
	answer = look(e);
	if (answer == NEW_PRICES)
		return true;
	if (answer == IMPOSSIBLE)
		e->proved_s = e->tried_s;
	else
		e->failed = true;
	e->stride *= e->failed ? 0.5 : 2;
	e->prices = 0;
	separate_clear(e->separate);
	e->tried_s = fmax(known_s, e->proved_s) * (1 + e->stride);
	return e->stride > LAST_STRIDE && e->stride < 1 / LAST_STRIDE;
}
