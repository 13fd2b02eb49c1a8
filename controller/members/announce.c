/* announce.c - describes the run and its faults to consoles.
 *
 * The controller sends these messages again whenever the run's description changes; a console that
 * attaches receives them in its snapshot. */
#include "controller/members/announce.h"

#include <stdio.h>
#include <string.h>

#include "controller/members/members.h"
#include "controller/run/rates.h"
#include "controller/run/stream.h"

/* Returns the model's name for consoles: the name of the preset, of the model's file, or of the
 * folder with the first weights. */
static const char *model_name(const struct run *run)
{
	const char *from = run->training.origin.folder, *slash;

	if (!from[0])
		return run->options.training.model ? run->options.training.model : "tiny";
	slash = strrchr(from, '/');
	return slash && slash[1] ? slash + 1 : from;
}

void announce_fill_run(const struct members *members, struct msg *m)
{
	struct msg_see_run *r = &m->u.see_run;

	m->type = MSG_SEE_RUN;
	*r = (struct msg_see_run){
		.run = members->run->id + members->run->record.n_rewinds,
		.parameters = members->run->training.parameters,
		.n_nodes = members->n,
		.n_stages = (uint32_t)members->run->cluster->n_stages,
		.always = members->run->cluster->always,
		.microbatches = members->run->training.n_shards * members->run->training.per_shard,
		.per_data_node = members->run->training.per_shard,
		.iterations = rates_last(members->run),
		.time_scale = members->run->unit_s,
		.started_wall_us = members->run->started.wall_us,
		.baseline_s = members->run->training.baseline_s,
		.embedded = members->run->options.mode.embedded,
		/* A scale below 0 means that the network is emulated, but the scale is not chosen
		 * yet */
		.emulated = members->run->options.cluster.time_scale != 0,
		.rehearsal = members->run->training.model.rehearsal,
	};
	if (!r->rehearsal)
		r->tokens_per_iteration = (uint64_t)r->microbatches *
					  members->run->training.hyper.batch *
					  members->run->training.hyper.sequence;
	snprintf(r->name, sizeof(r->name), "%s", members->run->options.name);
	if (r->rehearsal) /* the record of a resumed run does not name the model */
		snprintf(r->model, sizeof(r->model), "llama%s%.32s, bytes / %u",
			 members->run->options.training.model ? "-" : "",
			 members->run->options.training.model ? members->run->options.training.model
							      : "",
			 r->rehearsal);
	else
		snprintf(r->model, sizeof(r->model), "llama-%.32s %.3gM", model_name(members->run),
			 (double)members->run->training.parameters * 1e-6);
	model_cut_append(&members->run->training.model, r->model, sizeof(r->model));
}

void announce_fill_fault(const struct fault *f, struct msg *m)
{
	m->type = MSG_SEE_FAULT;
	m->u.see_fault = (struct msg_see_fault){ f->id,   (uint8_t)f->kind, f->active, f->node,
						 f->peer, f->factor,        f->ends_us };
}

void consoles_run(struct members *members)
{
	struct msg m = { 0 };

	announce_fill_run(members, &m);
	consoles_tell(members->run, &m);
	/* MSG_SEE_RUN makes a console discard the faults, so they are sent again after
	 * MSG_SEE_RUN. */
	for (uint32_t i = 0; i < members->run->faults.n; i++) {
		announce_fill_fault(&members->run->faults.list[i], &m);
		if (members->run->faults.list[i].active)
			consoles_tell(members->run, &m);
	}
}
