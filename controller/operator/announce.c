/* announce.c - what the run is, and which ways its microbatches take: told whenever either changes. */
#include "controller/operator/announce.h"

#include <stdio.h>

#include "controller/controller.h"
#include "controller/operator/console_messages.h"
#include "controller/operator/stream.h"

void announce_fill_run(const struct controller *c, struct msg *m)
{
	struct msg_see_run *r = &m->u.see_run;

	m->type = MSG_SEE_RUN;
	*r = (struct msg_see_run){
		.run = c->run + c->n_rewinds,
		.parameters = c->parameters,
		.n_nodes = c->n_members,
		.n_stages = (uint32_t)c->cluster->n_stages,
		.microbatches = c->n_shards * c->per_shard,
		.per_data_node = c->per_shard,
		.tokens_per_iteration = (uint64_t)c->n_shards * c->per_shard * c->recipe.batch * c->recipe.sequence,
		.iterations = c->options.iterations, .time_scale = c->unit_s,
		.started_wall_us = c->started_wall_us, .baseline_s = c->baseline_s,
		.embedded = c->options.embedded,
		.emulated = c->options.time_scale != 0, /* < 0: which, is not chosen yet */
	};
	snprintf(r->name, sizeof(r->name), "%s", c->options.name);
	snprintf(r->model, sizeof(r->model), "llama-%s %.3gM", c->options.model,
		 (double)c->parameters * 1e-6);
}

void announce_fill_fault(const struct fault *f, struct msg *m)
{
	m->type = MSG_SEE_FAULT;
	m->u.see_fault = (struct msg_see_fault){ f->id, (uint8_t)f->kind, f->active, f->node,
						 f->peer, f->factor, f->ends_us };
}

void consoles_run(struct controller *c)
{
	struct msg m = { 0 };

	announce_fill_run(c, &m);
	consoles_tell(c, &m);
	for (uint32_t i = 0; i < c->n_faults; i++) { /* after a run consoles expect them anew */
		announce_fill_fault(&c->faults[i], &m);
		if (c->faults[i].active)
			consoles_tell(c, &m);
	}
}

/* While an iteration is under way its routes are told as they are by now, not as planned. */
int announce_plan_to(struct controller *c, const struct planned *p, const char *candidate,
		      struct console *only)
{
	struct message_run run = { c->n_members, c->n_shards, c->per_shard, c->shard_of, c->unit_s };
	struct plan_message s;
	bool under_way;
	int rc;

	rc = plan_message_init(&s, &run, p, candidate);
	if (rc != 0)
		return rc;
	under_way = !candidate && (c->phase == PHASE_COMPUTING || c->phase == PHASE_REDUCING);
	for (uint32_t i = 0; under_way && i < c->routes.n; i++)
		s.routes[i] = c->routes.microbatches[i].route;
	if (only)
		console_send(c, only, &s.message);
	else
		consoles_tell(c, &s.message);
	plan_message_fini(&s);
	return 0;
}

void consoles_plan(struct controller *c, const struct planned *p)
{
	announce_plan_to(c, p, NULL, NULL);
}

int console_candidate(struct controller *c, struct console *to, const struct planned *p,
		      const char *name)
{
	return announce_plan_to(c, p, name, to);
}
