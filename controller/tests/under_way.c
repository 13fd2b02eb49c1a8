#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/setup.h"
#include "controller/tests/under_way.h"
#include "schedule/search.h"

static const int shard_of[NODES] = { 0, 1, 2, -1, -1, -1 };

/* Three data nodes and three of the second stage, all alike. */
static struct cluster *make_cluster(void)
{
	struct cluster *c = cluster_alloc(NODES, 2, false);

	assert_non_null(c);
	c->microbatches_per_data_node = EACH;
	for (int i = 0; i < NODES; i++) {
		c->stages[i / DATA]++;
		c->nodes[i].stage = i / DATA;
		c->nodes[i].forward_s = c->nodes[i].backward_s = 0.1;
		c->nodes[i].loss_s = 0.02;
		c->nodes[i].memory = EACH;
	}
	for (int i = 0; i < NODES * NODES; i++)
		c->delay_s[i] = 0.05;
	return c;
}

static void create_store(struct controller *c)
{
	struct model_config model;
	struct recipe recipe;
	struct store_run run = { .name = "under way", .version = "0", .optimizer = "{}", .batch = 1,
				 .sequence = 64, .n_shards = DATA, .per_shard = EACH, .threads = 1 };
	char *model_text, *cluster_text = cluster_format(c->cluster);

	assert_int_equal(model_preset("tiny", &model, &recipe, NULL), 0);
	model.n_stages = 2;
	model_text = model_config_print(&model, &recipe);
	run.model = model_text;
	run.cluster = cluster_text;
	assert_int_equal(store_create(&c->store, c->options.run_dir, &run, NULL), 0);
	free(model_text);
	free(cluster_text);
}

static void make_plan(struct controller *c)
{
	struct plan_request q;
	struct store_plan sp = { 1, 1, "a reason", 2, NULL, 0, 0 };
	struct error err = { "" };
	char *text;

	plan_request_init(&q);
	q.path_length = 2;
	q.evaluations = 20;
	c->current = calloc(1, sizeof(*c->current));
	assert_int_equal(plan_search(c->cluster, &q, &c->current->plan, &err), 0);
	assert_int_equal(simulate(c->cluster, c->current->plan, &c->current->trace, &err), 0);
	sp.plan = text = plan_format(c->current->plan);
	assert_int_equal(store_plan(c->store, &sp, NULL), 0);
	free(text);
}

struct controller *under_way_knowing(struct cluster *cluster)
{
	struct controller *c = calloc(1, sizeof(*c));
	struct post_options o = { 0 };

	assert_non_null(c);
	c->cluster = cluster;
	assert_int_equal(keys_generate(&c->identity, NULL), 0);
	o.identity = c->identity;
	assert_int_equal(post_open(&c->post, &o, NULL), 0);
	assert_int_equal(planner_start(&c->planner, NULL), 0);
	c->supervisor = -1;
	c->unit_s = c->options.time_scale = 1;
	c->path_length = 2;
	c->epoch = c->iteration = 1;
	c->n_shards = DATA;
	c->per_shard = EACH;
	c->shard_of = malloc(sizeof(shard_of));
	memcpy(c->shard_of, shard_of, sizeof(shard_of));
	c->n_members = NODES;
	c->members = calloc(NODES, sizeof(*c->members));
	for (uint16_t i = 0; i < NODES; i++)
		c->members[i] = (struct member){ .id = i, .peer = i + 1u, .state = NODE_LIVE,
						 .replica = true, .keeps = -1, .welcomed = true };
	assert_int_equal(routes_init(&c->routes, N, NODES), 0);
	return c;
}

int under_way_begin(void **state)
{
	struct controller *c = under_way_knowing(make_cluster());
	struct error err;
	char *folder = strdup("/tmp/skippipe-under-way-XXXXXX");

	assert_non_null(mkdtemp(folder));
	c->options.run_dir = folder;
	create_store(c);
	make_plan(c);
	c->phase = PHASE_COMPUTING;
	c->first_attempt = c->own_attempt = FIRST;
	c->now_us = c->progress.started_us = SECOND;
	assert_int_equal(routes_from_plan(&c->routes, c->current->plan, shard_of, DATA, EACH, FIRST,
					  &err), 0);
	*state = c;
	return 0;
}

int under_way_end(void **state)
{
	struct controller *c = *state;
	char *folder = (char *)c->options.run_dir, command[128];

	controller_fini(c);
	free(c);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	free(folder);
	return system(command);
}
