/* views.c - a view with a value in each field that monitors show. Its texts have every character
 * that the formats have to escape. */
#include "controller/tests/views.h"

#include <stdio.h>

#include "base/alloc.h"

void views_fill(struct view *v)
{
	*v = (struct view){
		.run = { .microbatches = 6,
			 .n_nodes = 4,
			 .n_stages = 2,
			 .iterations = 100,
			 .tokens_per_iteration = 1000,
			 .time_scale = 0.5 },
		.status = { .phase = PHASE_COMPUTING, .committed = 41, .now_us = 90000000 },
		.plan = { .epoch = 3, .iteration_s = 2 },
		.has_plan = true,
		.last = { .iteration = 41, .loss = 3.25F, .iteration_s = 4, .wall_us = 999000000 },
		.has_last = true,
		.goodput = 0.75,
		.totals = { 41, 7, 2, 1.5 },
		.notes = { [NOTE_ALERT] = 2 },
		.wall_us = 1000000000,
		.n_nodes = 4,
		.room_nodes = 4,
		.nodes = alloc_array(4, sizeof(*v->nodes)),
	};
	snprintf(v->run.name, sizeof(v->run.name), "a \"quoted\\ name\n\xc3\xa9");
	for (uint16_t i = 0; i < v->n_nodes; i++) {
		v->nodes[i] = (struct msg_see_node){ .node = i,
						     .stage = i % 2,
						     .state = NODE_LIVE,
						     .rss_bytes = 4000000000,
						     .heard_us = 89500000 };
		snprintf(v->nodes[i].host, sizeof(v->nodes[i].host), "host%u", i);
	}
	v->nodes[2].state = NODE_DEAD;
	snprintf(v->nodes[2].why, sizeof(v->nodes[2].why), "no heartbeat for 2 s");
	v->nodes[1].spent = (struct device_time){ { 1000000, 500000, 1500000, 1000000 } };
	v->nodes[2].spent = v->nodes[1].spent;
	v->nodes[3].gpu = (struct gpu_figures){ .known = GPU_ALL,
						.utilisation = 87,
						.temperature_c = 61,
						.throttling = GPU_HEAT,
						.power_mw = 350500,
						.power_limit_mw = 700000,
						.memory_used_mib = 1024,
						.memory_mib = 2048 };
}
