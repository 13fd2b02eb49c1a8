/* recorded.c - for tests: writes the small run that recorded.h describes to a store. Tests of
 * replays know every row. */
#include "controller/tests/recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/tests/test.h"
#include "model/config.h"
#include "model/files/run_parts.h"
#include "model/hash.h"
#include "schedule/search/search.h"

/* wall time minus the time of the first controller's clock */
static const int64_t wall_ahead_us = INT64_C(1700000000000000);
/* The second machine's clock minus the first machine's clock */
static const int64_t other_clock_us = -INT64_C(9000000);
static const int cut_stages[RECORDED_NODES] = { 0, 0, 1, 2 }; /* with recorded_options.recut */

/* A task of an iteration. Routes: m00 visits n00 and n01, and m01 visits n00 and n02. After the
 * death of n02, m01 visits n01. Only the times matter here. waited_for_: the microbatch for which
 * the task waited; -1: it did not wait. */
#define TASK(microbatch_, node_, kind_, waited_for_, arrived, start, end) \
	{ \
		.microbatch = (microbatch_), .node = (node_), .kind = (kind_), \
		.counted = (kind_) == 'B', .waited_for = (waited_for_), .arrived_us = (arrived), \
		.start_us = (start), .end_us = (end) \
	}
const struct store_task recorded_tasks[RECORDED_TASKS] = {
	TASK(0, 0, 'F', -1, 0, 0, 100),     TASK(1, 0, 'F', 0, 0, 100, 200),
	TASK(0, 1, 'F', -1, 150, 150, 250), TASK(1, 1, 'F', 0, 230, 250, 350),
	TASK(0, 0, 'L', -1, 300, 300, 320), TASK(0, 1, 'B', -1, 370, 370, 470),
	TASK(1, 0, 'L', -1, 400, 400, 420), TASK(1, 1, 'B', 0, 460, 470, 570),
	TASK(0, 0, 'B', -1, 520, 520, 620), TASK(1, 0, 'B', -1, 650, 650, 750),
};
#undef TASK

int64_t recorded_start_ms(uint64_t iteration)
{
	static const int64_t starts[] = { 2000, 3200, 4500 };

	return starts[iteration - 1];
}

static bool second(const struct recorded_options *o, uint64_t iteration)
{
	return (o->other_machine || o->recut) && iteration >= 3;
}

static int64_t clock_ahead_us(const struct recorded_options *o, uint64_t iteration)
{
	return o->other_machine && iteration >= 3 ? other_clock_us : 0;
}

static void moment(struct store *s, const struct recorded_options *o, uint64_t iteration,
		   int64_t ms, const char *kind, const char *word, int node, int stage,
		   int64_t value)
{
	int64_t at_us = ms * 1000;
	struct store_moment m = { .iteration = iteration,
				  .at_us = at_us + clock_ahead_us(o, iteration),
				  .wall_us = at_us + wall_ahead_us, .kind = kind, .node = node,
				  .stage = stage, .value = value, .word = word,
				  .text = strcmp(word, "dead") == 0 ? "heartbeat lost" : "",
				  .device = "cpu", .host = "here" };

	if (!o->without_moments)
		assert_int_equal(store_moment(s, &m, NULL), 0);
}

/* Records two corrections: n01 computes more slowly than plans assumed, and its link to n00 is
 * slower. */
static void correct(struct store *s, const struct recorded_options *o, int64_t ms)
{
	struct store_moment m = { .iteration = 3,
				  .at_us = ms * 1000 + clock_ahead_us(o, 3),
				  .wall_us = ms * 1000 + wall_ahead_us,
				  .kind = "compute",
				  .node = 1,
				  .stage = -1,
				  .word = "",
				  .text = "",
				  .forward_s = 0.3,
				  .backward_s = 0.1,
				  .loss_s = 0.02,
				  .device = "",
				  .host = "" };

	if (o->without_moments)
		return;
	assert_int_equal(store_moment(s, &m, NULL), 0);
	m.kind = "link";
	m.value = 0;
	m.forward_s = 0.5;
	assert_int_equal(store_moment(s, &m, NULL), 0);
}

static void put_figures(struct store *s, int64_t ms, const char *kind, int node,
			const char *figures)
{
	struct store_moment m = { .iteration = 2,
				  .at_us = ms * 1000,
				  .wall_us = ms * 1000 + wall_ahead_us,
				  .kind = kind,
				  .node = node,
				  .stage = -1,
				  .word = "",
				  .text = figures,
				  .device = "",
				  .host = "" };

	assert_int_equal(store_moment(s, &m, NULL), 0);
}

void recorded_gpu(struct store *s, int64_t ms, int node, const char *figures)
{
	put_figures(s, ms, "gpu", node, figures);
}

void recorded_device(struct store *s, int64_t ms, int node, const char *times)
{
	put_figures(s, ms, "device", node, times);
}

static void note(struct store *s, uint64_t iteration, int64_t ms, const char *kind, char mark,
		 int node, const char *text)
{
	struct store_note n = { .iteration = iteration, .wall_us = ms * 1000 + wall_ahead_us,
				.kind = kind, .mark = mark, .node = node, .text = text };

	assert_int_equal(store_note(s, &n, NULL), 0);
}

static struct cluster *make_cluster(bool is_cut)
{
	struct cluster *c = cluster_alloc(RECORDED_NODES, is_cut ? 3 : 2, false);

	assert_non_null(c);
	c->microbatches_per_data_node = RECORDED_MICROBATCHES / (is_cut ? 2 : 1);
	for (int i = 0; i < RECORDED_NODES; i++) {
		c->nodes[i].stage = is_cut ? cut_stages[i] : i > 0;
		c->stages[c->nodes[i].stage]++;
		c->nodes[i].forward_s = 0.1;
		c->nodes[i].backward_s = 0.1;
		c->nodes[i].loss_s = 0.02;
		c->nodes[i].memory = 3;
	}
	for (int i = 0; i < RECORDED_NODES * RECORDED_NODES; i++)
		c->delay_s[i] = 0.05;
	return c;
}

static void put_plan(struct store *s, uint64_t epoch, uint64_t iteration, int without, bool is_cut)
{
	struct cluster *c = make_cluster(is_cut);
	bool excluded[RECORDED_NODES] = { false };
	struct plan_request q;
	struct plan *p;
	struct store_plan sp = { epoch, iteration, "a reason", (uint32_t)c->n_stages, NULL, 0, 0 };
	char *text;

	plan_request_init(&q);
	q.path_length = c->n_stages;
	q.evaluations = 20;
	q.excluded = excluded;
	excluded[3] = !is_cut;
	if (without >= 0)
		excluded[without] = true;
	assert_int_equal(plan_search(c, &q, &p, NULL), 0);
	text = plan_format(p);
	assert_non_null(text);
	sp.plan = text;
	sp.iteration_s = p->predicted.iteration_s;
	assert_int_equal(store_plan(s, &sp, NULL), 0);
	free(text);
	plan_free(p);
	cluster_free(c);
}

static void put_commit(struct store *s, const struct recorded_options *o, uint64_t k, int64_t ms)
{
	struct store_task tasks[RECORDED_TASKS];
	struct store_commit c = { .iteration = k,
				  .epoch = k < 3 ? 1 : 2,
				  .scale = 0.5f,
				  .lr = 1e-3f,
				  .loss = 5 - (float)k,
				  .iteration_s = 0.75,
				  .predicted_s = 0.7,
				  .sync_s = 0.1,
				  .real_s = 1.2,
				  .collisions = { 2, 0.03 },
				  .alive = 3,
				  .path_length = 2,
				  .wall_us = ms * 1000 + wall_ahead_us };
	int64_t shift = recorded_start_ms(k) * 1000 + clock_ahead_us(o, k);
	struct store_hash hashes[] = { { k, 10 * k, 0, 0 }, { k, 10 * k + 1, 1, 1 },
				       { k, 10 * k + (k == 1 ? 1 : 2), 2, 1 } };

	assert_int_equal(store_commit(s, &c, NULL), 0);
	for (int i = 0; i < RECORDED_TASKS; i++) {
		tasks[i] = recorded_tasks[i];
		tasks[i].iteration = k;
		tasks[i].arrived_us = tasks[i].arrived_us * 1000 + shift;
		tasks[i].start_us = tasks[i].start_us * 1000 + shift;
		tasks[i].end_us = tasks[i].end_us * 1000 + shift;
	}
	assert_int_equal(store_tasks(s, tasks, RECORDED_TASKS, NULL), 0);
	assert_int_equal(store_hashes(s, hashes, k == 1 ? 3 : 2, NULL), 0);
	moment(s, o, k, ms, "commit", "", -1, -1, 900000);
	moment(s, o, k, ms, "phase", "planning", -1, -1, 0);
}

void recorded_iteration(struct store *s, uint64_t k, const struct recorded_options *o)
{
	struct store_validation v = { 1, 4.25, 3100000 + wall_ahead_us };
	struct store_fault f = { 1, 3, "slow-node", 1, -1, 4, 200, 4600000 + wall_ahead_us,
				 4800000 + wall_ahead_us };

	if (k == 1) {
		put_plan(s, 1, 1, -1, false);
		moment(s, o, 1, 2000, "plan", "", -1, -1, 1);
		moment(s, o, 1, 2000, "phase", "computing", -1, -1, 0);
		moment(s, o, 1, 2800, "phase", "reducing", -1, -1, 0);
		put_commit(s, o, 1, 3000);
		assert_int_equal(store_validation(s, &v, NULL), 0);
	} else if (k == 2) {
		moment(s, o, 2, 3200, "phase", "computing", -1, -1, 0);
		moment(s, o, 2, 3205, "checkpoint", "complete", -1, -1, 1);
		if (!o->without_moments) {
			recorded_gpu(s, 3250, 1, "{\"utilisation\":97,\"temperature_c\":88,"
						 "\"throttling\":\"heat\"}");
			recorded_device(s, 3105, 1, RECORDED_TIMES);
			recorded_gpu(s, 3250, 2, "{\"utilisation\":50}");
		}
		moment(s, o, 2, 3450, "node", "dead", 2, 1, 0);
		note(s, 1, 3450, "alert", 'F', 2, "n02 heartbeat lost");
		put_commit(s, o, 2, 4400);
	} else {
		put_plan(s, 2, 3, o->recut ? -1 : 2, o->recut);
		if (second(o, 3))
			moment(s, o, 3, 4420, "phase", "gathering", -1, -1, 0);
		for (int n = 0; second(o, 3) && n < (o->recut ? 3 : 2); n++)
			moment(s, o, 3, 4430, "node", "live", n,
			       o->recut ? cut_stages[n] : n, 0);
		correct(s, o, 4450);
		moment(s, o, 3, 4500, "plan", "", -1, -1, 2);
		moment(s, o, 3, 4500, "phase", "computing", -1, -1, 0);
		moment(s, o, 3, 4510, "checkpoint", "failed", 1, -1, 2);
		moment(s, o, 3, 4550, "checkpoint", "newest", -1, -1, 0);
		assert_int_equal(store_fault(s, &f, NULL), 0);
		moment(s, o, 3, 4700, "node", "live", 3, o->recut ? 2 : 1, 0);
		put_commit(s, o, 3, 5500);
		note(s, 3, 5600, "event", 0, -1, "the run ends: done");
		moment(s, o, 3, 5600, "phase", "finished", -1, -1, 0);
	}
}

static char *print_model(uint32_t n_stages)
{
	struct model_config model;
	struct hyperparameters hyper;

	assert_int_equal(model_preset("tiny", &model, &hyper, NULL), 0);
	model.n_stages = n_stages;
	return model_config_print(&model, &hyper);
}

static void create(const char *folder, struct store **out)
{
	struct cluster *c = make_cluster(false);
	struct store_run run = { .name = "by hand",
				 .version = "0",
				 .optimizer = "{}",
				 .id = 77,
				 .seed = 5,
				 .started_wall_us = 1000000 + wall_ahead_us,
				 .batch = 1,
				 .sequence = 64,
				 .n_shards = 1,
				 .per_shard = RECORDED_MICROBATCHES,
				 .threads = 1,
				 .hash = HASH_NAME };
	char *model_text = print_model(2), *cluster_text = cluster_format(c);

	run.model = model_text;
	run.cluster = cluster_text;
	assert_int_equal(store_create(out, folder, &run, NULL), 0);
	free(model_text);
	free(cluster_text);
	cluster_free(c);
}

/* Prints the state that a controller saves. places: an object with the stages of the nodes. */
static char *print_state(const char *places)
{
	json_t *o = json_loads("{\"time_scale\":1.0,\"iterations\":3,"
			       "\"eval_every\":5,\"eval_batches\":1,\"checkpoint_every\":0,"
			       "\"skip_bad_steps\":0,\"keep_tasks\":10000,"
			       "\"silence_us\":450000,\"overdue_us\":10000000,"
			       "\"gather_us\":30000000,\"budget_s\":0.5,\"ahead_s\":1.0,"
			       "\"formats\":[\"fp32\",\"fp32\"],"
			       "\"wanted_formats\":[\"q8\",\"q4\"],\"skip_phase\":0,"
			       "\"marked\":[0,0,0,0],\"keys\":[\"\",\"\",\"\",\"\"]}",
			       0, NULL);
	json_t *more = json_loads(places, 0, NULL);
	char *text;

	assert_true(o && more);
	json_object_update(o, more);
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	json_decref(more);
	return text;
}

static const char two_stages[] = "{\"path_length\":2,\"stages\":[0,1,1,1],"
				 "\"homes\":[0,1,1,1],\"shards\":[0,-1,-1,-1]}";
static const char three_stages[] = "{\"path_length\":3,\"stages\":[0,0,1,2],"
				   "\"homes\":[0,0,1,2],\"shards\":[0,1,-1,-1]}";

static void cut(struct store *s)
{
	struct cluster *c = make_cluster(true);
	struct run_parts parts = { NULL, 0 };
	char *model = print_model(3), *cluster = cluster_format(c), *text;
	char *former = print_state(two_stages), *state = print_state(three_stages);
	struct store_value values[] = { { "controller", state }, { RUN_PARTS_KEY, NULL } };
	struct store_recut change = { .id = 78, .model = model, .cluster = cluster, .n_shards = 2,
				      .per_shard = 1, .n_values = 2, .values = values };

	run_parts_add(&parts, &(struct run_part){ .n_shards = 1,
						  .per_shard = RECORDED_MICROBATCHES,
						  .model = (char *)store_run_of(s)->model,
						  .cluster = (char *)store_run_of(s)->cluster,
						  .state = former });
	run_parts_add(&parts, &(struct run_part){ .after = 2, .writer = store_writer_epoch(s),
						  .n_shards = 2, .per_shard = 1, .model = model });
	values[1].value = text = run_parts_print(&parts);
	assert_int_equal(store_recut(s, &change, NULL), 0);
	run_parts_free(&parts);
	cluster_free(c);
	free(model);
	free(cluster);
	free(former);
	free(state);
	free(text);
}

void recorded_restart(struct store **s, const char *folder, const struct recorded_options *o)
{
	store_close(*s);
	assert_int_equal(store_resume(s, folder, NULL), 0);
	if (o->recut)
		cut(*s);
}

void recorded_make(char *folder, const struct recorded_options *o, struct store **writer)
{
	struct store *s;
	char *state = print_state(two_stages);

	assert_non_null(mkdtemp(folder));
	create(folder, &s);
	assert_int_equal(store_set(s, "controller", state, NULL), 0);
	free(state);
	moment(s, o, 1, 1000, "phase", "gathering", -1, -1, 0);
	for (int n = 0; n < 3; n++)
		moment(s, o, 1, 1500, "node", "live", n, n > 0, 4000 + n);
	note(s, 0, 1900, "event", 0, -1, "3 of 4 agents are here");
	for (uint64_t k = 1; k <= (o->until ? o->until : 3); k++) {
		if (second(o, k))
			recorded_restart(&s, folder, o);
		recorded_iteration(s, k, o);
	}
	if (writer)
		*writer = s;
	else
		store_close(s);
}

void recorded_remove(const char *folder)
{
	static const char *const files[] = { "run.db", "run.db-wal", "run.db-shm", "run.lock",
					     "a.key",  "b.key",      "admitted" };
	char path[256];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		unlink(path);
	}
	rmdir(folder);
}
