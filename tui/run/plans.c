/* Takes plans from messages: the plan in force, and candidates, which are plans for comparison. */
#include "tui/run/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void state_plan_init(struct state_plan *p)
{
	p->first = alloc_array(MSG_NODES + 1, sizeof(*p->first));
}

void state_plan_fini(struct state_plan *p)
{
	free(p->first);
	free(p->tasks);
	memset(p, 0, sizeof(*p));
}

/* Sorts the predicted tasks by node (counting sort). Joins each WORK_STARTS with its WORK_ENDS:
 * the events of a node are in order and its tasks do not overlap, so an ENDS belongs to the
 * node's newest STARTS. */
static void take_planned(struct state_plan *p, const struct msg_task_event *e, uint32_t n)
{
	struct state_segment *tasks = alloc_array((size_t)n + 1, sizeof(*tasks));
	uint32_t *at = alloc_array(MSG_NODES + 1, sizeof(*at));

	for (uint32_t i = 0; i < n; i++)
		if (e[i].type == WORK_STARTS)
			at[e[i].node + 1]++;
	for (uint32_t i = 1; i <= MSG_NODES; i++)
		at[i] += at[i - 1];
	memcpy(p->first, at, (MSG_NODES + 1) * sizeof(*at));
	p->n_tasks = at[MSG_NODES];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t node = e[i].node;

		if (e[i].type == WORK_STARTS)
			tasks[at[node]++] =
				(struct state_segment){ state_bound_us(e[i].at_us),
							state_bound_us(e[i].at_us), 0,
							e[i].microbatch, e[i].kind };
		else if (e[i].type == WORK_ENDS && at[node] > p->first[node])
			tasks[at[node] - 1].end_us = state_bound_us(e[i].at_us);
	}
	free(p->tasks);
	p->tasks = tasks;
	free(at);
}

static uint32_t count_changed(const struct state *s, const struct msg_see_plan *p)
{
	uint32_t changed = 0;

	for (uint32_t i = 0; i < p->n_routes; i++) {
		const struct route *r = &p->routes[i];
		const struct state_flight *f = state_flight(s, r->microbatch);

		if (!f || f->route.n_hops != r->n_hops ||
		    memcmp(f->route.nodes, r->nodes, r->n_hops * sizeof(*r->nodes)) != 0)
			changed++;
	}
	return changed;
}

void state_plan_fill(const struct state *s, struct state_plan *to,
		     const struct msg_see_plan *p)
{
	uint32_t changed = count_changed(s, p);

	take_planned(to, p->planned, p->n_planned);
	if (p->candidate || !to->known || to->see.epoch != p->epoch)
		to->paths_changed = to->known || p->candidate ? changed : 0;
	to->see = *p;
	to->see.visits = NULL;
	to->see.routes = NULL;
	to->see.planned = NULL;
	to->see.n_planned = to->see.n_routes = to->see.n_visits = 0;
	to->n_routes = p->n_routes;
	memset(to->visits, 0, sizeof(to->visits));
	if (p->n_visits)
		memcpy(to->visits, p->visits, p->n_visits * sizeof(*p->visits));
	to->known = true;
}

const struct state_plan *state_candidate(const struct state *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_candidates; i++)
		if (strcmp(s->candidates[i].see.name, name) == 0)
			return &s->candidates[i];
	return NULL;
}

/* Stores a candidate. It replaces a candidate of the same name. If there are too many candidates,
 * the oldest is dropped. */
static void apply_candidate(struct state *s, const struct msg_see_plan *p)
{
	uint32_t i = 0;

	while (i < s->n_candidates && strcmp(s->candidates[i].see.name, p->name) != 0)
		i++;
	if (i == STATE_CANDIDATES) {
		state_plan_fini(&s->candidates[0]);
		memmove(s->candidates, s->candidates + 1,
			(STATE_CANDIDATES - 1) * sizeof(*s->candidates));
		memset(&s->candidates[--i], 0, sizeof(*s->candidates));
		s->n_candidates--;
	}
	if (i == s->n_candidates) {
		state_plan_init(&s->candidates[i]);
		s->n_candidates++;
	}
	state_plan_fill(s, &s->candidates[i], p);
}

void state_apply_plan(struct state *s, const struct msg_see_plan *p)
{
	if (p->candidate) {
		apply_candidate(s, p);
		return;
	}
	state_plan_fill(s, &s->plan, p);
	state_take_routes(s, p->routes, p->n_routes);
}
