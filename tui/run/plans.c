/* Plans as they are told: the one in force, and candidates that are only compared with it. */
#include "tui/run/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int state_plan_init(struct state_plan *p)
{
	p->first = calloc(MSG_NODES + 1, sizeof(*p->first));
	return p->first ? 0 : -ENOMEM;
}

void state_plan_fini(struct state_plan *p)
{
	free(p->first);
	free(p->tasks);
	memset(p, 0, sizeof(*p));
}

/* The predicted tasks, sorted by node (counting sort), each STARTS joined with its ENDS. Per
 * node they come in order, one at a time: the open one is the last of that node. */
static int take_planned(struct state_plan *p, const struct msg_task_event *e, uint32_t n)
{
	struct state_segment *tasks = malloc(((size_t)n + 1) * sizeof(*tasks));
	uint32_t *at = calloc(MSG_NODES + 1, sizeof(*at));

	if (!tasks || !at) {
		free(tasks);
		free(at);
		return -ENOMEM;
	}
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
	return 0;
}

static uint32_t count_changed(const struct state *s, const struct msg_see_plan *p)
{
	uint32_t changed = 0;

	for (uint32_t i = 0; i < p->n_routes; i++) {
		const struct msg_route *r = &p->routes[i];
		const struct state_flight *f = state_flight(s, r->microbatch);

		if (!f || f->n_hops != r->n_hops ||
		    memcmp(f->nodes, r->nodes, r->n_hops * sizeof(*r->nodes)) != 0)
			changed++;
	}
	return changed;
}

int state_plan_fill(const struct state *s, struct state_plan *to, const struct msg_see_plan *p)
{
	uint32_t changed = count_changed(s, p);
	int rc = take_planned(to, p->planned, p->n_planned);

	if (rc != 0)
		return rc;
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
	return 0;
}

const struct state_plan *state_candidate(const struct state *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_candidates; i++)
		if (strcmp(s->candidates[i].see.name, name) == 0)
			return &s->candidates[i];
	return NULL;
}

/* A later answer to one question takes the earlier one's place; of too many the oldest goes. */
static int apply_candidate(struct state *s, const struct msg_see_plan *p)
{
	uint32_t i = 0;
	int rc;

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
		rc = state_plan_init(&s->candidates[i]);
		if (rc != 0)
			return rc;
		s->n_candidates++;
	}
	return state_plan_fill(s, &s->candidates[i], p);
}

int state_apply_plan(struct state *s, const struct msg_see_plan *p)
{
	int rc;

	if (p->candidate)
		return apply_candidate(s, p);
	rc = state_plan_fill(s, &s->plan, p);
	return rc != 0 ? rc : state_take_routes(s, p->routes, p->n_routes);
}
