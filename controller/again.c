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
