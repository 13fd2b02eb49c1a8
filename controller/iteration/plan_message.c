/* plan_message.c - shows plans to consoles, in a live run and in a replay.
 *
 * Live runs and replays use the same functions, so a console shows a recorded plan exactly as it
 * showed the live plan. For the plan in force, a live run shows the routes of the iteration under
 * way. */
#include "controller/iteration/plan_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/routes.h"
#include "controller/run/stream.h"

/* Turns the plan's simulated trace into the events that agents would report, in real microseconds
 * from the iteration's start. */
static uint32_t planned_events(const struct message_run *run, const struct planned *p,
			       struct msg_task_event *out)
{
	uint32_t n = 0;

	for (int i = 0; i < p->trace->n_tasks; i++) {
		const struct sim_task *t = &p->trace->tasks[i];
		struct msg_task_event e = {
			.type = WORK_STARTS,
			.kind = (uint8_t)t->kind,
			.node = (uint16_t)t->node,
			.blocker_node = (uint16_t)t->node,
			.microbatch = (uint32_t)t->microbatch,
			.blocker = UINT32_MAX,
			.at_us = (int64_t)(t->start_s * run->unit_s * 1e6),
			.arrived_us = (int64_t)(t->arrival_s * run->unit_s * 1e6),
		};

		if (t->collided && t->waited_for >= 0)
			e.blocker = (uint32_t)p->trace->tasks[t->waited_for].microbatch;
		out[n++] = e;
		e.type = WORK_ENDS;
		e.at_us = (int64_t)(t->end_s * run->unit_s * 1e6);
		out[n++] = e;
	}
	return n;
}

void describe_plan(struct msg_see_plan *s, const struct planned *p, const char *candidate)
{
	const struct plan_predicted *predicted = &p->plan->predicted;

	*s = (struct msg_see_plan){
		.epoch = p->epoch,
		.iteration = p->iteration,
		.path_length = (uint32_t)p->plan->path_length,
		.skip_share = (uint32_t)p->plan->skip_share,
		.n_stages = (uint32_t)p->plan->n_stages,
		.iteration_s = (float)predicted->iteration_s,
		.sync_s = (float)plan_visible_sync_s(p->plan),
		.wait_s = (float)predicted->collision_wait_s,
		.lower_bound_s = (float)predicted->lower_bound_s,
		.idle_fraction = (float)predicted->idle_fraction,
		.collisions = (uint32_t)predicted->collisions,
		.elapsed_s = (float)p->elapsed_s,
		.candidate = candidate != NULL,
	};
	snprintf(s->algorithm, sizeof(s->algorithm), "%s",
		 p->plan->search.algorithm ? p->plan->search.algorithm : "");
	snprintf(s->reason, sizeof(s->reason), "%s", p->reason);
	snprintf(s->name, sizeof(s->name), "%s", candidate ? candidate : "");
}

/* Makes the routes with the functions that the run uses, so that each microbatch gets the same
 * number as in the run. */
int plan_message_init(struct plan_message *s, const struct message_run *run,
		      const struct planned *p, const char *candidate)
{
	struct msg_see_plan *m = &s->message.u.see_plan;
	uint32_t n = run->n_shards * run->per_shard;
	struct routes view;
	int rc;

	*s = (struct plan_message){ .message.type = MSG_SEE_PLAN };
	routes_init(&view, n, run->n_nodes);
	rc = routes_from_plan(&view, p->plan, run->shard_of, run->n_shards, run->per_shard, 0,
			      NULL);
	if (rc != 0) {
		routes_fini(&view);
		return rc;
	}
	s->routes = alloc_array(n, sizeof(*s->routes));
	s->events = alloc_array(2 * (size_t)p->trace->n_tasks, sizeof(*s->events));
	s->microbatches = view.microbatches;
	view.microbatches = NULL;
	routes_fini(&view);
	describe_plan(m, p, candidate);
	for (uint32_t i = 0; i < n; i++)
		s->routes[i] = s->microbatches[i].route;
	for (int i = 0; i < p->trace->n_stages && i < MSG_STAGES; i++)
		s->visits[i] = (uint32_t)p->trace->exposure[i];
	m->n_visits = m->n_stages;
	m->visits = s->visits;
	m->n_routes = n;
	m->routes = s->routes;
	m->n_planned = planned_events(run, p, s->events);
	m->planned = s->events;
	return 0;
}

void plan_message_fini(struct plan_message *s)
{
	free(s->routes);
	free(s->events);
	free(s->microbatches);
	*s = (struct plan_message){ 0 };
}

void fill_from_plan(struct msg_see_iteration *s, const struct plan *p)
{
	snprintf(s->algorithm, sizeof(s->algorithm), "%s",
		 p->search.algorithm ? p->search.algorithm : "");
	s->n_stages = (uint32_t)p->n_stages;
	s->skip_share = (uint32_t)p->skip_share;
}

void fill_planned(struct msg_see_iteration *list, size_t n, const struct store_plan *p)
{
	struct plan *plan = NULL;

	for (size_t i = n; i > 0 && list[i - 1].iteration >= p->iteration; i--) {
		if (list[i - 1].epoch != p->epoch)
			continue;
		list[i - 1].predicted_sync_s = (float)p->sync_s;
		if (!plan && plan_parse(p->plan, strlen(p->plan), &plan, NULL) != 0)
			continue;
		fill_from_plan(&list[i - 1], plan);
	}
	plan_free(plan);
}

/* ---- sending plans to the consoles of a run ---- */

int announce_plan_to(struct iteration *it, const struct planned *p, const char *candidate,
		     struct console *only)
{
	struct message_run run = { it->members->n, it->run->training.n_shards,
				   it->run->training.per_shard, it->run->training.shard_of,
				   it->run->unit_s };
	struct plan_message s;
	bool under_way;
	int rc;

	rc = plan_message_init(&s, &run, p, candidate);
	if (rc != 0)
		return rc;
	under_way = !candidate &&
		    (it->run->phase == PHASE_COMPUTING || it->run->phase == PHASE_REDUCING);
	for (uint32_t i = 0; under_way && i < it->routes.n; i++)
		s.routes[i] = it->routes.microbatches[i].route;
	if (only)
		console_send(it->run, only, &s.message);
	else
		consoles_tell(it->run, &s.message);
	plan_message_fini(&s);
	return 0;
}

void consoles_plan(struct iteration *it, const struct planned *p)
{
	announce_plan_to(it, p, NULL, NULL);
}

int console_candidate(struct iteration *it, struct console *to, const struct planned *p,
		      const char *name)
{
	return announce_plan_to(it, p, name, to);
}
