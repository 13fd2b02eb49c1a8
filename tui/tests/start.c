#include "tui/tests/start.h"

#include <stdio.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/tests/stream.h"

enum { MOST = 60 };

static void apply_message(struct state *s, struct msg *m)
{
	m->sequence = s->stream.sequence + 1;
	state_apply(s, m);
}

void start_status(struct state *s, enum gather_step step, uint32_t part, uint32_t parts,
		  float left_s, const char *doing, struct msg *m)
{
	unsigned all = (1u << (GATHER_BUILD + 1)) - 1,
		 measured = 1u << GATHER_LINKS | 1u << GATHER_PLAN;

	*m = (struct msg){ .type = MSG_SEE_STATUS };
	m->u.see_status = (struct msg_see_status){
		.phase = PHASE_GATHERING,
		.iteration = 1,
		.n_nodes = s->run.n_nodes,
		.n_stages = s->run.n_stages,
		.path_length = s->run.n_stages - 1,
		.now_us = STREAM_START_US + 9000000,
		.steps = (uint8_t)(s->run.emulated ? all & ~measured : all),
		.step = (uint8_t)step,
		.part = part,
		.parts = parts,
		.left_s = left_s,
	};
	snprintf(m->u.see_status.doing, sizeof(m->u.see_status.doing), "%s", doing);
	apply_message(s, m);
}

static void apply_nodes(struct state *s, bool placed)
{
	struct msg m = { .type = MSG_SEE_NODE };

	for (uint32_t i = 0; i < s->run.n_nodes; i++) {
		m.u.see_node = (struct msg_see_node){ .node = (uint16_t)i, .state = NODE_JOINING };
		if (placed)
			m.u.see_node.stage = (uint8_t)(i * s->run.n_stages / s->run.n_nodes);
		snprintf(m.u.see_node.host, sizeof(m.u.see_node.host), "host%u", i);
		apply_message(s, &m);
	}
}

/* Sends the links that were measured in the first `rounds` rounds of the tournament. Nodes a and b
 * measure their link in round (a + b) % (n - 1). */
static void apply_links(struct state *s, uint32_t rounds, bool travelled)
{
	struct msg_link links[MOST * MOST];
	struct msg m = { .type = MSG_SEE_LINKS };
	uint32_t n = s->run.n_nodes < MOST ? s->run.n_nodes : MOST, k = 0;

	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t b = 0; b < n; b++) {
			float far_s = 0.002f + 0.011f * (float)((a + 3 * b) % 17);
			float rate = 4e6f + 3e6f * (float)((a * 5 + b) % 13);
			bool met = (a + b) % (n - 1) < rounds;

			if (a == b)
				continue;
			links[k] = (struct msg_link){ .from = (uint16_t)a,
						      .to = (uint16_t)b,
						      .latency_s = far_s,
						      .spread_s = far_s * 0.03f,
						      .planned_delay_s = -1 };
			if (met && a == 3 && b == 1)
				links[k].latency_s = -1;
			else if (met)
				links[k].bandwidth_bytes_per_s = rate,
				links[k].planned_delay_s = far_s + 131072 / rate;
			if (travelled && met && (a + 2 * b) % 5 == 0)
				links[k].measured_delay_s = links[k].planned_delay_s *
							    (b == 4 ? 2.7f : 1.05f);
			k++;
		}
	}
	m.u.see_links = (struct msg_see_links){ k, links };
	apply_message(s, &m);
}

struct state *start_state(uint32_t nodes, uint32_t stages, bool emulated, enum gather_step step,
			  uint32_t part, uint32_t parts, float left_s)
{
	struct state *s;
	struct msg m = { .type = MSG_SEE_RUN };

	s = state_new();
	m.u.see_run = (struct msg_see_run){ .run = 1,
					    .n_nodes = nodes,
					    .n_stages = stages,
					    .microbatches = 12,
					    .time_scale = 1,
					    .emulated = emulated,
					    .started_wall_us = STREAM_WALL_US };
	snprintf(m.u.see_run.name, sizeof(m.u.see_run.name), "skippipe");
	snprintf(m.u.see_run.model, sizeof(m.u.see_run.model), "llama-tiny 1.3M");
	apply_message(s, &m);
	apply_nodes(s, step == GATHER_BUILD);
	if (step >= GATHER_LINKS && !emulated)
		apply_links(s, step == GATHER_LINKS ? part - 1 : nodes, false);
	start_status(s, step, part, parts, left_s, "at some step", &m);
	m = (struct msg){ .type = MSG_SEE_SYNCED };
	apply_message(s, &m);
	return s;
}

void start_measured(struct state *s)
{
	s->run.emulated = 0;
	s->n_links = 0;
	apply_links(s, s->run.n_nodes, true);
	for (size_t i = 0; i < s->history.n_iterations; i++) {
		struct msg_see_iteration *it = &s->history.iterations[i];

		it->predicted_sync_s = 4.1f;
		it->sync_s = 4.4f;
		it->real_s = it->iteration_s + it->sync_s + 0.6f;
	}
}
