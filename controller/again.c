#include "controller/again.h"

#include <stdlib.h>

#include "schedule/simulate.h"

static bool runs_again(const struct routes *r, uint32_t i, uint32_t first)
{
	return r->microbatches[i].route.attempt > first && !r->microbatches[i].done;
}

/* Without orders those who wait go by arrival; agents let what runs again go first. */
static int hurry(struct plan *p, const struct routes *r, uint32_t first)
{
	static const enum task_kind kinds[] = { TASK_BACKWARD, TASK_LOSS, TASK_FORWARD };

	if (p->n_orders > 0)
		return 0; /* what has no rank goes last */
	p->orders = calloc(r->n_nodes, sizeof(*p->orders));
	if (!p->orders)
		return -1;
	for (; p->n_orders < (int)r->n_nodes; p->n_orders++) {
		struct plan_order *o = &p->orders[p->n_orders];

		o->node = p->n_orders;
		o->tasks = malloc(3 * r->n * sizeof(*o->tasks));
		if (!o->tasks)
			return -1;
		for (uint32_t i = 0; i < r->n; i++)
			for (int k = 0; k < 3 && runs_again(r, i, first); k++)
				o->tasks[o->n_tasks++] =
					(struct plan_task){ p->microbatches[i].id, kinds[k] };
	}
	return 0;
}

/* What again_improve looks at. */
struct look {
	const struct cluster *c;
	const struct plan *p;
	struct routes *r;
	uint32_t first;
	double at_s, until_s;
	const bool *usable;
	const int *stage_of;
	int64_t left; /* tasks that may still be simulated */
};

double again_until_s(const struct cluster *c, const struct plan *p, const struct routes *r,
		     uint32_t first, double at_s)
{
	struct plan *now = plan_copy(p);
	struct simulation *sim = NULL;
	struct error err;
	double until = -1;

	if (!now)
		return -1;
	for (uint32_t i = 0; i < r->n; i++) {
		struct plan_microbatch *m = &now->microbatches[i];

		if (!runs_again(r, i, first))
			continue;
		for (int h = 0; h < m->length; h++)
			m->path[h] = r->microbatches[i].nodes[h];
		m->data_node = m->path[0];
		m->release_s = at_s;
	}
	if (hurry(now, r, first) == 0 && simulate(c, now, &sim, &err) == 0)
		until = sim->iteration_s;
	simulation_free(sim);
	plan_free(now);
	return until;
}

static bool may_go(const struct look *l, const struct microbatch *m, uint32_t hop, uint16_t node)
{
	return l->usable[node] && l->stage_of[node] == m->stages[hop] && routes_hop(m, node) < 0;
}

/* The hop moves to where the iteration is shortest. Whether it has moved. */
static bool move(struct look *l, uint32_t i, uint32_t hop)
{
	struct microbatch *m = &l->r->microbatches[i];
	uint16_t best = m->nodes[hop];
	uint32_t attempt = m->route.attempt;
	bool moved = false;

	if (attempt == l->first)
		m->route.attempt++;
	for (uint32_t node = 0; node < l->r->n_nodes && l->left > 0; node++) {
		double until;

		if (!may_go(l, m, hop, (uint16_t)node))
			continue;
		m->nodes[hop] = (uint16_t)node;
		until = again_until_s(l->c, l->p, l->r, l->first, l->at_s);
		l->left -= (int64_t)l->r->n * (2 * m->route.n_hops + 1);
		if (until >= 0 && until < l->until_s) {
			l->until_s = until;
			best = (uint16_t)node;
			moved = true;
		}
		m->nodes[hop] = best;
	}
	if (!moved)
		m->route.attempt = attempt;
	return moved;
}

static bool among(const uint32_t *list, int n, uint32_t i)
{
	while (n > 0 && list[n - 1] != i)
		n--;
	return n > 0;
}

static bool move_any(struct look *l, uint32_t i)
{
	struct microbatch *m = &l->r->microbatches[i];
	bool moved = false;

	for (uint32_t h = 1; h < m->route.n_hops; h++)
		moved = move(l, i, h) || moved;
	m->moved = m->moved || moved;
	return moved;
}

int again_improve(const struct cluster *c, const struct plan *p, struct routes *r, uint32_t first,
		  double at_s, const bool *usable, const int *stage_of, int64_t most_tasks,
		  uint32_t *changed, int n)
{
	struct look l = { c, p, r, first, at_s, again_until_s(c, p, r, first, at_s), usable, stage_of,
			  most_tasks };
	int n_again = n;
	bool moved = l.until_s >= 0;

	while (moved && l.left > 0) {
		moved = false;
		for (int k = 0; k < n_again; k++)
			moved = move(&l, changed[k], r->microbatches[changed[k]].replaced) || moved;
		for (uint32_t i = 0; i < r->n; i++) {
			const struct microbatch *m = &r->microbatches[i];
			bool fresh = m->route.attempt == first;

			if (m->begun || (!fresh && !among(changed + n_again, n - n_again, i)))
				continue;
			moved = move_any(&l, i) || moved;
			if (fresh && m->route.attempt > first)
				changed[n++] = i;
		}
	}
	return n;
}
