/* plans.c - checks and keeps the plans that the controller sends. An invalid plan must not replace
 * a valid one, so the whole plan is checked before it is kept. */
#include "agent/execution/plans.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void clear_plan(struct agent_plan *p)
{
	free(p->routes);
	free(p->ranks);
	memset(p, 0, sizeof(*p));
}

const struct agent_plan *plans_find(const struct plans *x, uint64_t epoch)
{
	for (int i = 0; i < PLANS_KEPT; i++)
		if (x->list[i].known && x->list[i].epoch == epoch)
			return &x->list[i];
	return NULL;
}

/* Returns the array entry in which to keep a plan of this epoch. The first choice is the entry
 * that has this epoch, the second an unused entry, and the third the entry of the older plan. */
static struct agent_plan *choose_place(struct plans *x, uint64_t epoch)
{
	for (int i = 0; i < PLANS_KEPT; i++)
		if (x->list[i].known && x->list[i].epoch == epoch)
			return &x->list[i];
	if (!x->list[0].known || !x->list[1].known)
		return &x->list[x->list[0].known ? 1 : 0];
	return &x->list[x->list[0].epoch < x->list[1].epoch ? 0 : 1];
}

/* Reads all routes first, so that an invalid plan leaves the known plans unchanged. */
void plans_take(struct plans *x, const struct msg_plan *m)
{
	struct agent_plan new = { .known = true, .epoch = m->epoch, .n_ranks = m->n_ranks };
	const char *fault = NULL;
	struct agent_plan *to;

	new.routes = calloc(m->n_routes + 1u, sizeof(new.routes[0]));
	new.ranks = calloc(m->n_ranks + 1u, sizeof(new.ranks[0]));
	if (!new.routes || !new.ranks) {
		clear_plan(&new);
		tell_trouble(x->tell, true, "no memory for plan %" PRIu64, m->epoch);
		return;
	}
	for (uint32_t i = 0; i < m->n_routes && !fault; i++)
		fault = route_read(&new.routes[new.n_routes++], &m->routes[i], &x->run->limits);
	if (fault) {
		clear_plan(&new);
		tell_trouble(x->tell, false, "plan %" PRIu64 ": %s", m->epoch, fault);
		return;
	}
	if (m->n_ranks)
		memcpy(new.ranks, m->ranks, m->n_ranks * sizeof(new.ranks[0]));
	for (uint32_t i = 0; i < new.n_routes; i++)
		new.visits += route_find(&new.routes[i], x->run->welcome.node) >= 0;
	to = choose_place(x, m->epoch);
	clear_plan(to);
	*to = new;
}

uint32_t plans_most_visits(const struct plans *x)
{
	uint32_t n = 0;

	for (int i = 0; i < PLANS_KEPT; i++)
		if (x->list[i].known && x->list[i].visits > n)
			n = x->list[i].visits;
	return n;
}

void plans_forget(struct plans *x)
{
	for (int i = 0; i < PLANS_KEPT; i++)
		clear_plan(&x->list[i]);
}
