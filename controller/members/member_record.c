/* member_record.c - writes the nodes' states, the times of their devices and the figures of their
 * GPUs to the record.
 *
 * Replays show these rows, and tools read the events. If a row cannot be written, this is only
 * logged. */
#include "controller/members/member_record.h"

#include <stdlib.h>

#include <jansson.h>

#include "controller/members/device_record.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/run/gpu_record.h"
#include "controller/run/record.h"

/* Time between two records of the figures of GPUs. The figures change every second, but only people
 * read these records, so a record every ten seconds is enough. */
enum { GPUS_EVERY_US = 10000000 };

void record_node(struct run *run, const struct member *m)
{
	struct store_moment moment = {
		.kind = "node",
		.node = m->id,
		.stage = member_stage(run, m),
		.value = m->hello.pid,
		.word = node_state_name(member_shown(m)),
		.text = m->why,
		.forward_s = m->compute.forward_s,
		.backward_s = m->compute.backward_s,
		.loss_s = m->compute.loss_s,
		.device = m->hello.device,
		.host = m->hello.host,
		.name = m->name,
		.place = m->hello.place,
	};

	record_moment(run, &moment);
	record_event(run, json_pack("{s:s, s:i, s:i, s:s, s:s, s:I, s:s, s:s, s:i}", "event",
				    "node", "node", (int)m->id, "stage", member_stage(run, m),
				    "state", node_state_name(member_shown(m)), "why", m->why,
				    "iteration", (json_int_t)run->committed, "name", m->name,
				    "place", m->hello.place, "layers",
				    (int)member_layers(run, m)));
}

static void record_figures(struct run *run, const struct member *m, const char *kind,
			   uint64_t iteration, const json_t *figures)
{
	char *text = json_dumps(figures, JSON_COMPACT);

	record_moment(run, &(struct store_moment){ .kind = kind,
						   .node = m->id,
						   .stage = -1,
						   .value = (int64_t)iteration,
						   .text = text });
	free(text);
}

void record_device(struct run *run, const struct member *m)
{
	json_t *times = device_record_pack(&m->compute.spent);

	record_figures(run, m, "device", run->committed, times);
	json_decref(times);
}

void record_devices_event(const struct members *members)
{
	struct run *run = members->run;
	json_t *nodes = json_array();

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member_compute *c = &members->list[i].compute;
		json_t *node;

		if (c->spent_in == 0 || c->spent_in != run->committed)
			continue;
		node = device_record_pack(&c->spent);
		json_object_set_new(node, "node", json_integer((json_int_t)i));
		json_array_append_new(nodes, node);
	}
	if (json_array_size(nodes) > 0)
		record_event(run, json_pack("{s:s, s:I, s:O}", "event", "device", "iteration",
					    (json_int_t)run->committed, "nodes", nodes));
	json_decref(nodes);
}

static void record_gpu(struct run *run, const struct member *m)
{
	json_t *figures = gpu_record_pack(&m->beat.gpu);
	json_t *event = json_pack("{s:s, s:i, s:I}", "event", "gpu", "node", (int)m->id,
				  "iteration", (json_int_t)run->iteration);

	record_figures(run, m, "gpu", run->iteration, figures);
	json_object_update(event, figures);
	record_event(run, event);
	json_decref(figures);
}

void record_gpus(struct members *members)
{
	struct run *run = members->run;

	if (run->now_us - run->record.gpus_us < GPUS_EVERY_US)
		return;
	run->record.gpus_us = run->now_us;
	for (uint32_t i = 0; i < members->n; i++)
		if (members->list[i].beat.gpu.known && member_alive(&members->list[i]))
			record_gpu(run, &members->list[i]);
}
