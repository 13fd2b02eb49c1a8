/* plans.c - checks and keeps the plans that the controller sends.
 * An invalid plan must not replace a valid one, so each is checked as a whole first. */
#include "agent/execution/plans.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"

static void clear_plan(struct plan *p)
{
	free(p->routes);
	free(p->ranks);
	memset(p, 0, sizeof(*p));
}

const struct plan *plans_find(const struct agent *a, uint64_t epoch)
{
	for (int i = 0; i < PLANS_KEPT; i++)
		if (a->iteration.plans[i].known && a->iteration.plans[i].epoch == epoch)
			return &a->iteration.plans[i];
	return NULL;
}

/* Returns the place of the plan with this epoch, otherwise a free place or that of the older
 * plan. */
static struct plan *choose_place(struct agent *a, uint64_t epoch)
{
	for (int i = 0; i < PLANS_KEPT; i++)
		if (a->iteration.plans[i].known && a->iteration.plans[i].epoch == epoch)
			return &a->iteration.plans[i];
	if (!a->iteration.plans[0].known || !a->iteration.plans[1].known)
		return &a->iteration.plans[a->iteration.plans[0].known ? 1 : 0];
	return &a->iteration
			.plans[a->iteration.plans[0].epoch < a->iteration.plans[1].epoch ? 0 : 1];
}

/* Reads all routes first, so that an invalid plan leaves the known plans unchanged. */
void plans_take(struct agent *a, const struct msg_plan *m)
{
	struct plan new = { .known = true, .epoch = m->epoch, .n_ranks = m->n_ranks };
	const char *fault = NULL;
	struct plan *to;

	new.routes = calloc(m->n_routes + 1u, sizeof(new.routes[0]));
	new.ranks = calloc(m->n_ranks + 1u, sizeof(new.ranks[0]));
	if (!new.routes || !new.ranks) {
		clear_plan(&new);
		tell_trouble(&a->tell, true, "no memory for plan %" PRIu64, m->epoch);
		return;
	}
	for (uint32_t i = 0; i < m->n_routes && !fault; i++)
		fault = route_read(&new.routes[new.n_routes++], &m->routes[i], &a->run.limits);
	if (fault) {
		clear_plan(&new);
		tell_trouble(&a->tell, false, "plan %" PRIu64 ": %s", m->epoch, fault);
		return;
	}
	if (m->n_ranks)
		memcpy(new.ranks, m->ranks, m->n_ranks * sizeof(new.ranks[0]));
	for (uint32_t i = 0; i < new.n_routes; i++)
		new.visits += route_find(&new.routes[i], a->run.welcome.node) >= 0;
	to = choose_place(a, m->epoch);
	clear_plan(to);
	*to = new;
}

uint32_t plans_most_visits(const struct agent *a)
{
	uint32_t n = 0;

	for (int i = 0; i < PLANS_KEPT; i++)
		if (a->iteration.plans[i].known && a->iteration.plans[i].visits > n)
			n = a->iteration.plans[i].visits;
	return n;
}

void plans_forget(struct agent *a)
{
	for (int i = 0; i < PLANS_KEPT; i++)
		clear_plan(&a->iteration.plans[i]);
}
