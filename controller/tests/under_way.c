/* under_way.c - for tests: builds a controller with an iteration under way, and makes nodes report
 * to it.
 *
 * Tests of single modules then need no agents, no process and no clock. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/iteration.h"
#include "controller/loop.h"
#include "controller/setup.h"
#include "controller/tests/bare.h"
#include "controller/tests/under_way.h"
#include "model/hash.h"
#include "schedule/search/search.h"

struct cluster *under_way_cluster(int nodes, int stages, int each)
{
	struct cluster *c = cluster_alloc(nodes, stages, false);
	int data = nodes / stages;

	assert_non_null(c);
	c->microbatches_per_data_node = each;
	for (int i = 0; i < nodes; i++) {
		c->stages[i / data]++;
		c->nodes[i].stage = i / data;
		c->nodes[i].forward_s = c->nodes[i].backward_s = 0.1;
		c->nodes[i].loss_s = 0.02;
		c->nodes[i].memory = 4;
	}
	for (int i = 0; i < nodes * nodes; i++)
		c->delay_s[i] = 0.05;
	return c;
}

static void create_store(struct controller *c)
{
	struct model_config model;
	struct hyperparameters hyper;
	struct store_run run = { .name = "under way",
				 .version = "0",
				 .optimizer = "{}",
				 .batch = 1,
				 .sequence = 64,
				 .n_shards = c->run.training.n_shards,
				 .per_shard = c->run.training.per_shard,
				 .threads = 1,
				 .hash = HASH_NAME };
	char *model_text, *cluster_text = cluster_format(c->run.cluster);

	assert_int_equal(model_preset("tiny", &model, &hyper, NULL), 0);
	model.n_stages = (uint32_t)c->run.cluster->n_stages;
	model_text = model_config_print(&model, &hyper);
	run.model = model_text;
	run.cluster = cluster_text;
	assert_int_equal(store_create(&c->run.record.store, c->run.options.run_dir, &run, NULL),
			 0);
	free(model_text);
	free(cluster_text);
}

static void make_plan(struct controller *c)
{
	struct plan_request q;
	struct store_plan sp = { 1, 1, "a reason", c->run.wanted.path_length, NULL, 0, 0 };
	struct error err = { "" };
	char *text;

	plan_request_init(&q);
	q.path_length = (int)c->run.wanted.path_length;
	q.evaluations = 20;
	c->run.plan = calloc(1, sizeof(*c->run.plan));
	assert_int_equal(plan_search(c->run.cluster, &q, &c->run.plan->plan, &err), 0);
	assert_int_equal(simulate(c->run.cluster, c->run.plan->plan, &c->run.plan->trace, &err), 0);
	sp.plan = text = plan_format(c->run.plan->plan);
	assert_int_equal(store_plan(c->run.record.store, &sp, NULL), 0);
	free(text);
}

struct controller *under_way_knowing(struct cluster *cluster)
{
	struct controller *c = bare_controller(cluster, 2);

	c->run.epoch = c->run.iteration = 1;
	c->run.training.n_shards = (uint32_t)cluster->stages[0];
	c->run.training.per_shard = (uint32_t)cluster->microbatches_per_data_node;
	c->run.training.shard_of = alloc_array(c->members.n, sizeof(*c->run.training.shard_of));
	for (uint16_t i = 0; i < c->members.n; i++)
		c->run.training.shard_of[i] = i < c->run.training.n_shards ? i : -1;
	routes_init(&c->iteration.routes, c->run.training.n_shards * c->run.training.per_shard,
		    c->members.n);
	return c;
}

struct controller *under_way_begun(struct cluster *cluster, int path_length)
{
	struct controller *c = under_way_knowing(cluster);
	struct error err;
	char *folder = strdup("/tmp/skippipe-under-way-XXXXXX");

	assert_non_null(mkdtemp(folder));
	c->run.options.run_dir = folder;
	c->run.wanted.path_length = (uint32_t)path_length;
	create_store(c);
	make_plan(c);
	c->run.phase = PHASE_COMPUTING;
	c->run.first_attempt = FIRST;
	c->run.now_us = c->iteration.progress.started_us = SECOND;
	assert_int_equal(routes_from_plan(&c->iteration.routes, c->run.plan->plan,
					  c->run.training.shard_of, c->run.training.n_shards,
					  c->run.training.per_shard, FIRST, &err),
			 0);
	return c;
}

void under_way_keep_messages(struct controller *c, struct member *m)
{
	struct keys_identity *own;
	char address[96];

	assert_int_equal(keys_generate(&own, NULL), 0);
	snprintf(address, sizeof(address), "ipc://%s/agent%d", c->run.options.run_dir, m->id);
	assert_int_equal(post_dial(c->run.post, address, keys_public_of(own), &m->peer, NULL), 0);
	keys_free(own);
}

void under_way_plans_exchange(struct controller *c)
{
	struct planned *p = calloc(1, sizeof(*p));
	struct cluster *moved = cluster_copy(c->run.cluster);
	struct plan_request q;
	bool excluded[MSG_NODES];

	for (uint32_t i = 0; i < c->members.n; i++)
		excluded[i] = !member_is_replica(&c->members.list[i]);
	cluster_set_stages(moved, c->planning.targets.exchange.to);
	plan_request_init(&q);
	q.path_length = (int)c->run.wanted.path_length;
	q.evaluations = 20;
	q.excluded = excluded;
	q.keep_batch = true;
	assert_int_equal(plan_search(moved, &q, &p->plan, NULL), 0);
	cluster_free(moved);
	p->exchange = c->planning.targets.exchange.number;
	planned_free(c->planning.pending);
	c->planning.pending = p;
	c->planning.wanted_id = 0;
}

struct controller *under_way_of(int nodes, int each, int path_length)
{
	return under_way_begun(under_way_cluster(nodes, 2, each), path_length);
}

int under_way_begin(void **state)
{
	*state = under_way_of(NODES, EACH, 2);
	return 0;
}

int under_way_end(void **state)
{
	struct controller *c = *state;
	char *folder = (char *)c->run.options.run_dir, command[128];

	controller_fini(c);
	free(c);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	free(folder);
	return system(command);
}

/* ---- reports from nodes ---- */

void under_way_does(struct controller *c, uint16_t node, uint32_t microbatch, enum task_kind kind,
		    uint32_t attempt, double took_s)
{
	struct msg_task_event events[2] = {
		{ .type = WORK_STARTS,
		  .kind = (uint8_t)kind,
		  .microbatch = microbatch,
		  .attempt = attempt,
		  .blocker = UINT32_MAX,
		  .at_us = c->run.now_us },
		{ .type = WORK_ENDS,
		  .kind = (uint8_t)kind,
		  .microbatch = microbatch,
		  .attempt = attempt,
		  .blocker = UINT32_MAX,
		  .at_us = c->run.now_us + (int64_t)(took_s * SECOND),
		  .counted = kind != TASK_FORWARD,
		  .loss = 3 },
	};
	struct msg_report r = { .iteration = 1, .n_events = 2, .events = events };

	iteration_report(&c->iteration, &c->members.list[node], &r);
	loop_act(&c->iteration);
}

uint16_t under_way_second_of(const struct controller *c, uint32_t microbatch)
{
	return c->iteration.routes.microbatches[microbatch].route.nodes[1];
}

void under_way_three_is_slow(struct controller *c)
{
	uint32_t begun[NODES] = { 0 }, others = 0;

	for (uint32_t i = 0; i < N; i++) {
		uint16_t data = c->iteration.routes.microbatches[i].route.nodes[0],
			 next = under_way_second_of(c, i);

		if (begun[data] == 2 || begun[next] == 2 || next == 3)
			continue;
		begun[data]++;
		begun[next]++;
		under_way_does(c, data, i, TASK_FORWARD, FIRST, 0.1);
		under_way_does(c, next, i, TASK_FORWARD, FIRST, 0.1);
		others++;
	}
	assert_true(others >= 3);
	c->run.now_us += SECOND;
	for (uint32_t i = 0; i < N && begun[3] < 2; i++) {
		if (under_way_second_of(c, i) != 3)
			continue;
		begun[3]++;
		under_way_does(c, c->iteration.routes.microbatches[i].route.nodes[0], i,
			       TASK_FORWARD, FIRST, 0.1);
		under_way_does(c, 3, i, TASK_FORWARD, FIRST, 0.6);
	}
}

void under_way_all_is_done(struct controller *c)
{
	for (uint32_t i = 0; i < N; i++) {
		uint16_t data = c->iteration.routes.microbatches[i].route.nodes[0],
			 next = under_way_second_of(c, i);

		under_way_does(c, data, i, TASK_FORWARD, FIRST, 0.1);
		under_way_does(c, next, i, TASK_FORWARD, FIRST, 0.1);
		under_way_does(c, data, i, TASK_LOSS, FIRST, 0.02);
		under_way_does(c, next, i, TASK_BACKWARD, FIRST, 0.1);
		under_way_does(c, data, i, TASK_BACKWARD, FIRST, 0.1);
	}
	assert_int_equal(c->run.phase, PHASE_REDUCING);
}

void under_way_reports_sum(struct controller *c, uint16_t node)
{
	uint64_t slices[DATA] = { 1, 2, 3 };
	uint8_t stage = (uint8_t)(node / DATA);
	struct msg_reduced r = { .iteration = 1,
				 .attempt = c->iteration.reduce_attempt,
				 .stage = stage,
				 .sum_squares = 1,
				 .n_slices = c->iteration.summing[stage],
				 .slices = slices };

	iteration_reduced(&c->iteration, &c->members.list[node], &r);
	loop_act(&c->iteration);
}

static bool summed_in(const struct store_commit *k, uint8_t stage, uint16_t node)
{
	for (size_t i = 0; i < k->n_reductions; i++)
		for (size_t n = 0; k->reductions[i].stage == stage && n < k->reductions[i].n_nodes;
		     n++)
			if (k->reductions[i].nodes[n] == node)
				return true;
	return false;
}

/* Returns how many times the recorded sum contains the microbatch's gradient and its loss. */
static uint32_t times_in_sum(const struct store_commit *k, uint8_t stage, uint32_t microbatch,
			     char kind)
{
	uint32_t times = 0;

	for (size_t i = 0; i < k->n_orders; i++) {
		const struct store_order *o = &k->orders[i];

		for (uint32_t n = 0; n < o->n_counted; n++)
			times += o->stage == stage && summed_in(k, stage, o->node) &&
				 o->counted[n].microbatch == microbatch &&
				 o->counted[n].kind == kind;
	}
	return times;
}

void under_way_recorded_once(const struct controller *c)
{
	struct store_commit k;

	assert_int_equal(c->run.committed, 1);
	assert_int_equal(store_read_commit(c->run.record.store, 1, &k, NULL), 0);
	assert_int_equal(k.n_routes, N);
	for (size_t i = 0; i < k.n_routes; i++) {
		assert_int_equal(times_in_sum(&k, 0, (uint32_t)i, 'L'), 1);
		for (uint32_t h = 0; h < k.routes[i].n_hops; h++) {
			assert_int_equal(times_in_sum(&k, k.routes[i].stages[h], (uint32_t)i, 'B'),
					 1);
			assert_true(summed_in(&k, k.routes[i].stages[h], k.routes[i].nodes[h]));
		}
	}
	store_commit_clear(&k);
}

void under_way_all_tell_their_sums(struct controller *c)
{
	assert_int_equal(c->run.phase, PHASE_REDUCING);
	for (uint16_t node = 0; node < NODES && c->run.phase == PHASE_REDUCING; node++)
		if (member_is_replica(&c->members.list[node]))
			under_way_reports_sum(c, node);
}
