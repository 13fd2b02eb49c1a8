#include "schedule/place.h"

#include <math.h>

#define MOST_EXCHANGES 4 /* a node */

/* The slowest pair weighs most by far, but others count: a stage with two nodes here and two
 * there gets better by steps. */
static double pair_cost(const struct problem *p, int a, int b)
{
	size_t n = (size_t)p->n_nodes, i = (size_t)a, j = (size_t)b;
	double t = fmax(p->sync[i * n + j], p->sync[j * n + i]);

	return t * t * t * t;
}

/* Of node v in a stage, in place of its member `out`. */
static double cost_in(const struct solution *s, const struct problem *p, int v, int stage,
		      int out)
{
	double sum = 0;

	for (int i = s->start[stage]; i < s->start[stage + 1]; i++) {
		int u = s->members[i];

		sum += u == v || u == out ? 0 : pair_cost(p, u, v);
	}
	return sum;
}

static bool may_move(const struct problem *p, int v)
{
	return p->movable[v] && p->c->nodes[v].memory > 0;
}

/* Finds node a the best partner in another stage. False: none helps. */
static bool exchange(struct solution *s, const struct problem *p, int a)
{
	int best = -1, stage = s->stage_of[a];
	double least = -1e-9 * cost_in(s, p, a, stage, -1), now;

	if (!may_move(p, a) || !(least < 0))
		return false;
	now = cost_in(s, p, a, stage, -1);
	for (int b = 0; b < p->n_nodes; b++) {
		int other = s->stage_of[b];
		double change;

		if (other < 0 || other == stage || !may_move(p, b))
			continue;
		change = cost_in(s, p, a, other, b) - now + cost_in(s, p, b, stage, a) -
			 cost_in(s, p, b, other, -1);
		if (change < least) {
			least = change;
			best = b;
		}
	}
	if (best < 0)
		return false;
	solution_exchange(s, a, best);
	return true;
}

void place_by_sync(struct solution *s, const struct problem *p)
{
	for (int i = 0; i < MOST_EXCHANGES * p->n_nodes; i++) {
		int a, b;

		if (solution_slowest_pair(s, p, &a, &b) <= 0 ||
		    (!exchange(s, p, a) && !exchange(s, p, b)))
			return;
	}
}
