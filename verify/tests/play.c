/* Plays a run in one process, with the real stages and the real store. Nodes and orders of tasks
 * are chosen at random, so that the replay meets orders that a real cluster seldom produces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "model/codec/codec.h"
#include "model/hash.h"
#include "model/squares.h"
#include "verify/tests/play.h"

const uint8_t play_stage_of[NODES] = { 0, 1, 2, 0, 2, 1, 2 };
static const struct model_config shape = { .vocab = 256, .dim = 16, .n_layers = 3, .n_heads = 2,
					   .n_kv_heads = 1, .ffn_dim = 24, .context = SEQUENCE,
					   .n_stages = STAGES, .rope_theta = 10000,
					   .norm_eps = 1e-5f, .init_std = 0.02f };
static const struct adamw adamw = { 3e-3f, 0.9f, 0.95f, 1e-8f, 0.1f };

void play_make_text(struct cluster *c)
{
	enum { SIZE = 120000 };
	char *text = malloc(SIZE);

	for (size_t i = 0; i < SIZE; i++)
		text[i] = (char)('a' + rng_below(&c->rng, 26));
	snprintf(c->text, sizeof(c->text), "%s/text", c->folder);
	assert_int_equal(file_write(c->text, text, SIZE, 0600, NULL), 0);
	free(text);
}

static void make_run(struct cluster *c, const char *folder, enum tensor_format wire,
		     enum tensor_format sum_wire)
{
	char *model = model_config_print(&shape, NULL);
	const char *corpus[] = { c->text };
	struct store_run run = { .name = "t",
				 .version = "t",
				 .model = model,
				 .cluster = "{}",
				 .optimizer = "{}",
				 .seed = 11,
				 .batch = BATCH,
				 .sequence = SEQUENCE,
				 .n_shards = SHARDS,
				 .per_shard = PER_SHARD,
				 .threads = 1,
				 .formats = { wire, sum_wire },
				 .n_corpus = 1,
				 .corpus = corpus,
				 .hash = HASH_NAME,
				 .corpus_hash = corpus_hash(c->corpus) };

	assert_non_null(model);
	assert_int_equal(store_create(&c->store, folder, &run, NULL), 0);
	free(model);
}

/* Chooses a route over 1 to 3 stages. Sometimes exchanges stages 1 and 2. Chooses a random node
 * of each stage. */
static void make_route(struct cluster *c, struct journey *j, uint32_t m)
{
	enum { END = 9 };
	static const uint8_t paths[][STAGES] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 0, 1, END }, { 0, 2, END }, { 0, END, END }
	};
	const uint8_t *path = paths[rng_below(&c->rng, 5)];

	j->route = (struct route){ .microbatch = 10 + m, .shard = m % SHARDS,
				   .wave = m / SHARDS };
	for (uint32_t h = 0; h < STAGES && path[h] != END; h++) {
		uint16_t node;

		do
			node = (uint16_t)rng_below(&c->rng, NODES);
		while (play_stage_of[node] != path[h]);
		j->route.nodes[h] = node;
		j->route.stages[h] = path[h];
		j->route.n_hops++;
	}
}

static void record_contribution(struct played *r, uint16_t node, uint32_t microbatch, char kind)
{
	struct store_order *o = &r->orders[node];

	r->counted[node][o->n_counted++] = (struct store_counted){ microbatch, kind };
}

static void swap_buffers(struct journey *j)
{
	float *x = j->x;

	j->x = j->y;
	j->y = x;
}

/* Returns the node that runs task t of a microbatch. Tasks are numbered: n forward passes, the
 * loss, n backward passes. */
static uint16_t node_at(const struct journey *j, uint32_t t)
{
	uint32_t n = j->route.n_hops;

	return j->route.nodes[t < n ? t : t == n ? 0 : 2 * n - t];
}

/* Runs task t of a microbatch on its node. */
static void run_task(struct cluster *c, struct played *r, struct journey *j, uint32_t slot,
		     uint32_t t, bool count)
{
	uint32_t n = j->route.n_hops, hop = t < n ? t : t == n ? 0 : 2 * n - t;
	uint16_t node = node_at(j, t);
	struct stage *s = c->nodes[node];

	if (t < n) {
		assert_int_equal(stage_forward(s, slot, t == 0 ? j->tokens : NULL,
					       t == 0 ? NULL : j->x, j->y, true), 0);
	} else if (t == n) {
		assert_int_equal(stage_loss(s, slot, j->x, j->targets, &j->loss, j->y, count), 0);
	} else {
		assert_int_equal(stage_backward(s, slot, j->x, hop ? j->y : NULL, count), 0);
	}
	if (t < 2 * n && node_at(j, t + 1) != node) {
		struct codec codec = t < n ? codec_of_activation(c->wire, shape.dim)
					   : codec_of_gradient(c->wire);

		assert_int_equal(codec_round(&codec, j->y, stage_activation(s)), 0);
	}
	if (count && t >= n)
		record_contribution(r, node, j->route.microbatch, t == n ? 'L' : 'B');
	swap_buffers(j);
}

static uint32_t begin_journeys(struct cluster *c, struct played *r, uint64_t iteration)
{
	size_t floats = stage_activation(c->nodes[0]);
	uint32_t tasks = 0;

	for (uint32_t m = 0; m < MICROBATCHES; m++) {
		struct journey *j = &r->journeys[m];

		make_route(c, j, m);
		r->routes[m] = j->route;
		j->x = malloc(floats * sizeof(float));
		j->y = malloc(floats * sizeof(float));
		corpus_batch(c->corpus, j->route.shard, SHARDS,
			     (iteration - 1) * PER_SHARD + j->route.wave, BATCH, j->tokens,
			     j->targets);
		tasks += 2 * j->route.n_hops + 1;
	}
	return tasks;
}

static void run_tasks(struct cluster *c, struct played *r, uint64_t iteration)
{
	uint32_t left = begin_journeys(c, r, iteration);

	while (left > 0) {
		uint32_t m = rng_below(&c->rng, MICROBATCHES);
		struct journey *j = &r->journeys[m];

		if (j->step <= 2 * j->route.n_hops) {
			run_task(c, r, j, m, j->step++, true);
			left--;
		}
	}
}

/* Runs every task twice. The first time, tasks run in the order of the path, and no gradient is
 * counted. The second time, tasks run in a random order, and gradients are counted. In a run,
 * such an order arises only if several attempts of an iteration counted gradients. */
static void run_tasks_again(struct cluster *c, struct played *r, uint64_t iteration)
{
	size_t bytes = stage_activation(c->nodes[0]) * sizeof(float);
	uint32_t left = begin_journeys(c, r, iteration), counting = 0;

	for (uint32_t m = 0; m < MICROBATCHES; m++) {
		struct journey *j = &r->journeys[m];

		for (uint32_t t = 0; t <= 2 * j->route.n_hops; t++) {
			j->inputs[t] = malloc(bytes);
			memcpy(j->inputs[t], j->x, bytes);
			run_task(c, r, j, m, t, false);
			left--;
		}
		counting += j->route.n_hops + 1;
	}
	assert_int_equal(left, 0);
	while (counting > 0) {
		uint32_t m = rng_below(&c->rng, MICROBATCHES), t;
		struct journey *j = &r->journeys[m];

		t = j->route.n_hops + rng_below(&c->rng, j->route.n_hops + 1);
		if (!j->inputs[t])
			continue;
		memcpy(j->x, j->inputs[t], bytes);
		free(j->inputs[t]);
		j->inputs[t] = NULL;
		run_task(c, r, j, m, t, true);
		counting--;
	}
	for (uint32_t m = 0; m < MICROBATCHES; m++)
		for (uint32_t t = 0; t < r->journeys[m].route.n_hops; t++)
			free(r->journeys[m].inputs[t]);
}

/* Sums a stage's gradient by slices, as replicas do, and applies the step to every replica. */
static double reduce_and_step(struct cluster *c, struct store_reduction *red, uint64_t t,
			      float scale)
{
	size_t p = stage_parameters(c->nodes[red->nodes[0]]);
	float *sum = malloc(p * sizeof(*sum)), *part = malloc(p * sizeof(*part));
	struct sum_codec *codecs;
	double squares;

	assert_int_equal(sum_codecs_new(&codecs, &shape, c->sum_wire, NULL), 0);
	for (uint32_t k = 0; k < red->n_nodes; k++) {
		memcpy(part, stage_gradient(c->nodes[red->nodes[k]]), p * sizeof(*part));
		assert_int_equal(sum_codec_round(&codecs[red->stage], part, p, red->n_nodes), 0);
		for (size_t i = 0; i < p; i++)
			sum[i] = k ? sum[i] + part[i] : part[i];
	}
	assert_int_equal(sum_codec_round(&codecs[red->stage], sum, p, red->n_nodes), 0);
	squares = squares_sum(sum, p);
	for (uint32_t k = 0; k < red->n_nodes; k++)
		assert_int_equal(stage_step(c->nodes[red->nodes[k]], sum, scale, &adamw, t), 0);
	sum_codecs_free(codecs);
	free(part);
	free(sum);
	return squares;
}

static void make_commit(struct cluster *c, struct played *r, uint64_t iteration)
{
	double loss = 0, squares = 0;

	for (uint32_t m = 0; m < MICROBATCHES; m++)
		loss += (double)r->journeys[m].loss;
	for (uint16_t n = 0; n < NODES; n++) {
		struct store_reduction *red = &r->reductions[play_stage_of[n]];

		red->stage = play_stage_of[n];
		red->nodes = r->replicas[play_stage_of[n]];
		r->replicas[play_stage_of[n]][red->n_nodes++] = n;
	}
	r->commit = (struct store_commit){
		.iteration = iteration,
		.scale = 1.0f / MICROBATCHES / (float)iteration,
		.lr = adamw.lr,
		.beta1 = adamw.beta1,
		.beta2 = adamw.beta2,
		.eps = adamw.eps,
		.weight_decay = adamw.weight_decay,
		.formats = c->recorded,
		.loss = (float)(loss / MICROBATCHES),
		.n_routes = MICROBATCHES,
		.n_orders = NODES,
		.n_reductions = STAGES,
		.routes = r->routes,
		.orders = r->orders,
		.reductions = r->reductions,
	};
	for (uint32_t s = 0; s < STAGES; s++)
		squares += reduce_and_step(c, &r->reductions[s], iteration, r->commit.scale);
	r->commit.gradient_norm = sqrt(squares) / MICROBATCHES;
}

void play_iteration(struct cluster *c, uint64_t iteration, bool again,
		    void (*tamper)(struct played *r))
{
	struct played *r = calloc(1, sizeof(*r));
	struct store_hash hashes[NODES];

	for (uint16_t n = 0; n < NODES; n++) {
		stage_zero_gradient(c->nodes[n]);
		r->orders[n] = (struct store_order){ n, play_stage_of[n], 0, r->counted[n], NULL };
	}
	if (again)
		run_tasks_again(c, r, iteration);
	else
		run_tasks(c, r, iteration);
	make_commit(c, r, iteration);
	if (tamper)
		tamper(r);
	assert_int_equal(store_commit(c->store, &r->commit, NULL), 0);
	for (uint16_t n = 0; n < NODES; n++)
		hashes[n] = (struct store_hash){ iteration, stage_hash(c->nodes[n]), n,
						 play_stage_of[n] };
	assert_int_equal(store_hashes(c->store, hashes, NODES, NULL), 0);
	for (uint32_t m = 0; m < MICROBATCHES; m++) {
		free(r->journeys[m].x);
		free(r->journeys[m].y);
	}
	free(r);
}

static int set_up_run(void **state, enum tensor_format wire, enum tensor_format sum_wire)
{
	struct cluster *c = calloc(1, sizeof(*c));
	struct stage_options o = { .slots = MICROBATCHES, .batch = BATCH, .sequence = SEQUENCE,
				   .threads = 1, .seed = 11 };
	char *paths[] = { c->text };

	rng_init(&c->rng, 5);
	strcpy(c->folder, "/tmp/skippipe-verify-XXXXXX");
	assert_non_null(mkdtemp(c->folder));
	play_make_text(c);
	assert_int_equal(corpus_new(&c->corpus, paths, 1, SEQUENCE, 11, NULL), 0);
	for (uint32_t n = 0; n < NODES; n++)
		assert_int_equal(stage_new(&c->nodes[n], &shape, play_stage_of[n], &o, NULL), 0);
	make_run(c, c->folder, wire, sum_wire);
	c->wire = wire;
	c->sum_wire = sum_wire;
	c->recorded = (struct tensor_formats){ wire, sum_wire };
	*state = c;
	return 0;
}

int play_set_up(void **state)
{
	return set_up_run(state, FORMAT_FP32, FORMAT_FP32);
}

int play_set_up_bf16(void **state)
{
	return set_up_run(state, FORMAT_BF16, FORMAT_FP32);
}

int play_set_up_q6(void **state)
{
	return set_up_run(state, FORMAT_Q6, FORMAT_Q6);
}

int play_tear_down(void **state)
{
	static const char *const files[] = { "run.db", "run.lock", "text", "run.db-wal",
					     "run.db-shm" };
	struct cluster *c = *state;
	char path[128];

	store_close(c->store);
	corpus_free(c->corpus);
	for (uint32_t n = 0; n < NODES; n++)
		stage_free(c->nodes[n]);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", c->folder, files[i]);
		unlink(path);
	}
	rmdir(c->folder);
	free(c);
	return 0;
}

struct compare_result play_compare(struct cluster *c)
{
	struct compare_options o = { .from = 1, .workers = 4 };
	struct compare_result result;
	struct error err = { "" };

	if (compare_run(c->store, &o, &result, &err) != 0)
		fail_msg("%s", err.text);
	return result;
}

struct compare_result play_all(struct cluster *c, bool again, void (*tamper)(struct played *r))
{
	for (uint64_t i = 1; i <= ITERATIONS; i++)
		play_iteration(c, i, again, i == 2 ? tamper : NULL);
	return play_compare(c);
}

uint32_t play_node_of(uint8_t stage)
{
	for (uint32_t n = 0; n < NODES; n++)
		if (play_stage_of[n] == stage)
			return n;
	fail_msg("no node of stage %u", stage);
	return 0;
}

void play_arrays_of(struct stage *s, float *to[3])
{
	to[0] = stage_weights(s);
	to[1] = stage_moment1(s);
	to[2] = stage_moment2(s);
}

void play_average(struct cluster *c, uint64_t iteration, uint8_t stage, uint8_t source,
		  float recorded)
{
	struct store_restore row = { .iteration = iteration,
				     .last = iteration,
				     .stage = stage,
				     .n_from = 1,
				     .from = { source },
				     .weight = { recorded } };
	float *to[3], *from[3];
	struct error err = { "" };

	play_arrays_of(c->nodes[play_node_of(source)], from);
	for (uint32_t n = 0; n < NODES; n++) {
		if (play_stage_of[n] != stage)
			continue;
		play_arrays_of(c->nodes[n], to);
		for (int k = 0; k < 3; k++)
			for (size_t i = 0; i < stage_parameters(c->nodes[n]); i++)
				to[k][i] = 0.75f * from[k][i];
		stage_changed(c->nodes[n]);
		row.node = (uint16_t)n;
		row.hash = stage_hash(c->nodes[n]);
	}
	if (store_restore(c->store, &row, 1, &err) != 0)
		fail_msg("%s", err.text);
}
