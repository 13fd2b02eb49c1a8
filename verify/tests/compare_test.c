/* A small cluster is played here with a stage object for every node, tasks in a random order and
 * sums by slices, as agents do it; what it records must replay to the same bits. Then the record
 * is tampered with, and every tampering must be found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "model/bf16.h"
#include "model/text/corpus.h"
#include "model/hash.h"
#include "model/stage.h"
#include "verify/audit.h"
#include "verify/compare.h"

enum {
	STAGES = 3, NODES = 7, SHARDS = 2, PER_SHARD = 3, MICROBATCHES = SHARDS * PER_SHARD,
	BATCH = 2, SEQUENCE = 8, ITERATIONS = 4
};

static const uint8_t stage_of[NODES] = { 0, 1, 2, 0, 2, 1, 2 };
static const struct model_config shape = { .vocab = 256, .dim = 16, .n_layers = 3, .n_heads = 2,
					   .n_kv_heads = 1, .ffn_dim = 24, .context = SEQUENCE,
					   .n_stages = STAGES, .rope_theta = 10000,
					   .norm_eps = 1e-5f, .init_std = 0.02f };
static const struct adamw adamw = { 3e-3f, 0.9f, 0.95f, 1e-8f, 0.1f };

struct cluster {
	char folder[64], text[128];
	struct store *store;
	struct corpus *corpus;
	struct stage *nodes[NODES];
	struct rng rng;
	bool bf16; /* it rounds what goes from node to node */
};

/* One microbatch on its way; step: position in F.. L B.. */
struct journey {
	struct store_route route;
	uint16_t nodes[STAGES];
	uint8_t stages[STAGES];
	uint32_t step;
	int32_t tokens[BATCH * SEQUENCE], targets[BATCH * SEQUENCE];
	float *x, *y; /* activation or gradient under way; the next */
	float *kept[2 * STAGES + 2]; /* what step t took in, once set aside */
	float loss;
};

struct record {
	struct journey journeys[MICROBATCHES];
	struct store_route routes[MICROBATCHES];
	struct store_counted counted[NODES][2 * MICROBATCHES];
	struct store_order orders[NODES];
	uint16_t replicas[STAGES][NODES];
	struct store_reduction reductions[STAGES];
	struct store_commit commit;
};

static void make_text(struct cluster *c)
{
	enum { SIZE = 120000 };
	char *text = malloc(SIZE);

	for (size_t i = 0; i < SIZE; i++)
		text[i] = (char)('a' + rng_below(&c->rng, 26));
	snprintf(c->text, sizeof(c->text), "%s/text", c->folder);
	assert_int_equal(file_write(c->text, text, SIZE, 0600, NULL), 0);
	free(text);
}

static void make_run(struct cluster *c, const char *folder, bool bf16)
{
	char *model = model_config_print(&shape, NULL);
	const char *corpus[] = { c->text };
	struct store_run run = { .name = "t", .version = "t", .model = model, .cluster = "{}",
				 .optimizer = "{}", .seed = 11, .batch = BATCH,
				 .sequence = SEQUENCE, .n_shards = SHARDS, .per_shard = PER_SHARD,
				 .threads = 1, .bf16 = bf16, .n_corpus = 1, .corpus = corpus,
				 .hash = HASH_NAME, .corpus_hash = corpus_hash(c->corpus) };

	assert_non_null(model);
	assert_int_equal(store_create(&c->store, folder, &run, NULL), 0);
	free(model);
}

/* Some route of 1 to 3 stages, now and then exchanged, over nodes that hold them. */
static void make_route(struct cluster *c, struct journey *j, uint32_t m)
{
	static const uint8_t ways[][STAGES] = { { 0, 1, 2 }, { 0, 2, 1 }, { 0, 1, 9 }, { 0, 2, 9 },
					      { 0, 9, 9 } };
	const uint8_t *way = ways[rng_below(&c->rng, 5)];

	j->route = (struct store_route){ .microbatch = 10 + m, .shard = m % SHARDS,
					 .wave = m / SHARDS, .nodes = j->nodes,
					 .stages = j->stages };
	for (uint32_t h = 0; h < STAGES && way[h] != 9; h++) {
		uint16_t node;

		do
			node = (uint16_t)rng_below(&c->rng, NODES);
		while (stage_of[node] != way[h]);
		j->nodes[h] = node;
		j->stages[h] = way[h];
		j->route.n_hops++;
	}
}

static void note_counted(struct record *r, uint16_t node, uint32_t microbatch, char kind)
{
	struct store_order *o = &r->orders[node];

	r->counted[node][o->n_counted++] = (struct store_counted){ microbatch, kind };
}

static void swap(struct journey *j)
{
	float *x = j->x;

	j->x = j->y;
	j->y = x;
}

static uint16_t node_at(const struct journey *j, uint32_t t)
{
	uint32_t n = j->route.n_hops;

	return j->nodes[t < n ? t : t == n ? 0 : 2 * n - t];
}

/* The microbatch's task t on its node; its slot is its number. */
static void run_task(struct cluster *c, struct record *r, struct journey *j, uint32_t slot, uint32_t t,
		     bool count)
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
	if (c->bf16 && t < 2 * n && node_at(j, t + 1) != node)
		bf16_round(j->y, stage_activation(s));
	if (count && t >= n)
		note_counted(r, node, j->route.microbatch, t == n ? 'L' : 'B');
	swap(j);
}

static uint32_t begin_journeys(struct cluster *c, struct record *r, uint64_t iteration)
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
			     (iteration - 1) * PER_SHARD + j->route.wave, BATCH, j->tokens, j->targets);
		tasks += 2 * j->route.n_hops + 1;
	}
	return tasks;
}

static void run_tasks(struct cluster *c, struct record *r, uint64_t iteration)
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

/* As if every microbatch had run again and again: what a node counts comes in any order at all, one
 * that no single attempt could give. */
static void run_tasks_again(struct cluster *c, struct record *r, uint64_t iteration)
{
	size_t bytes = stage_activation(c->nodes[0]) * sizeof(float);
	uint32_t left = begin_journeys(c, r, iteration), counting = 0;

	for (uint32_t m = 0; m < MICROBATCHES; m++) {
		struct journey *j = &r->journeys[m];

		for (uint32_t t = 0; t <= 2 * j->route.n_hops; t++) {
			j->kept[t] = malloc(bytes);
			memcpy(j->kept[t], j->x, bytes);
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
		if (!j->kept[t])
			continue;
		memcpy(j->x, j->kept[t], bytes);
		free(j->kept[t]);
		j->kept[t] = NULL;
		run_task(c, r, j, m, t, true);
		counting--;
	}
	for (uint32_t m = 0; m < MICROBATCHES; m++)
		for (uint32_t t = 0; t < r->journeys[m].route.n_hops; t++)
			free(r->journeys[m].kept[t]);
}

/* Sums a stage's gradient by slices, as replicas do, then steps every replica. */
static double reduce_and_step(struct cluster *c, struct store_reduction *red, uint64_t t, float scale)
{
	size_t p = stage_parameters(c->nodes[red->nodes[0]]);
	float *sum = malloc(p * sizeof(*sum));
	double squares;

	for (uint32_t slice = 0; slice < red->n_nodes; slice++) {
		size_t from = p * slice / red->n_nodes, to = p * (slice + 1) / red->n_nodes;

		for (size_t i = from; i < to; i++) {
			float x = stage_gradient(c->nodes[red->nodes[0]])[i];

			for (uint32_t k = 1; k < red->n_nodes; k++)
				x += stage_gradient(c->nodes[red->nodes[k]])[i];
			sum[i] = x;
		}
	}
	squares = stage_sum_squares(sum, p);
	for (uint32_t k = 0; k < red->n_nodes; k++)
		assert_int_equal(stage_step(c->nodes[red->nodes[k]], sum, scale, &adamw, t), 0);
	free(sum);
	return squares;
}

static void make_commit(struct cluster *c, struct record *r, uint64_t iteration)
{
	double loss = 0, squares = 0;

	for (uint32_t m = 0; m < MICROBATCHES; m++)
		loss += (double)r->journeys[m].loss;
	for (uint16_t n = 0; n < NODES; n++) {
		struct store_reduction *red = &r->reductions[stage_of[n]];

		red->stage = stage_of[n];
		red->nodes = r->replicas[stage_of[n]];
		r->replicas[stage_of[n]][red->n_nodes++] = n;
	}
	r->commit = (struct store_commit){
		.iteration = iteration, .scale = 1.0f / MICROBATCHES / (float)iteration,
		.lr = adamw.lr, .beta1 = adamw.beta1, .beta2 = adamw.beta2, .eps = adamw.eps,
		.weight_decay = adamw.weight_decay, .loss = (float)(loss / MICROBATCHES),
		.n_routes = MICROBATCHES, .n_orders = NODES, .n_reductions = STAGES,
		.routes = r->routes, .orders = r->orders, .reductions = r->reductions,
	};
	for (uint32_t s = 0; s < STAGES; s++)
		squares += reduce_and_step(c, &r->reductions[s], iteration, r->commit.scale);
	r->commit.gradient_norm = sqrt(squares) / MICROBATCHES;
}

/* One iteration of the played cluster; tamper may change the record, not what happened. */
static void play_telling(struct cluster *c, uint64_t iteration, bool again,
			 void (*tamper)(struct record *r))
{
	struct record *r = calloc(1, sizeof(*r));
	struct store_hash hashes[NODES];

	for (uint16_t n = 0; n < NODES; n++) {
		stage_zero_gradient(c->nodes[n]);
		r->orders[n] = (struct store_order){ n, stage_of[n], 0, r->counted[n], NULL };
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
		hashes[n] = (struct store_hash){ iteration, stage_hash(c->nodes[n]), n, stage_of[n] };
	assert_int_equal(store_hashes(c->store, hashes, NODES, NULL), 0);
	for (uint32_t m = 0; m < MICROBATCHES; m++) {
		free(r->journeys[m].x);
		free(r->journeys[m].y);
	}
	free(r);
}

static void play(struct cluster *c, uint64_t iteration, bool again, void (*tamper)(struct record *r))
{
	play_telling(c, iteration, again, iteration == 2 ? tamper : NULL);
}

static int set_up_run(void **state, bool bf16)
{
	struct cluster *c = calloc(1, sizeof(*c));
	struct stage_options o = { .slots = MICROBATCHES, .batch = BATCH, .sequence = SEQUENCE,
				   .threads = 1, .seed = 11 };
	char *paths[] = { c->text };

	rng_init(&c->rng, 5);
	strcpy(c->folder, "/tmp/skippipe-verify-XXXXXX");
	assert_non_null(mkdtemp(c->folder));
	make_text(c);
	assert_int_equal(corpus_new(&c->corpus, paths, 1, SEQUENCE, 11, NULL), 0);
	for (uint32_t n = 0; n < NODES; n++)
		assert_int_equal(stage_new(&c->nodes[n], &shape, stage_of[n], &o, NULL), 0);
	make_run(c, c->folder, bf16);
	c->bf16 = bf16;
	*state = c;
	return 0;
}

static int set_up(void **state)
{
	return set_up_run(state, false);
}

static int set_up_bf16(void **state)
{
	return set_up_run(state, true);
}

static int tear_down(void **state)
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

static struct compare_result compared(struct cluster *c)
{
	struct compare_options o = { .from = 1, .workers = 4 };
	struct compare_result result;
	struct error err = { "" };

	if (compare_run(c->store, &o, &result, &err) != 0)
		fail_msg("%s", err.text);
	return result;
}

static struct compare_result played_how(struct cluster *c, bool again, void (*tamper)(struct record *r))
{
	for (uint64_t i = 1; i <= ITERATIONS; i++)
		play(c, i, again, tamper);
	return compared(c);
}

static struct compare_result played(struct cluster *c, void (*tamper)(struct record *r))
{
	return played_how(c, false, tamper);
}

static void what_happened_replays_bit_for_bit(void **state)
{
	struct compare_result r = played(*state, NULL);

	assert_string_equal(r.broken.text, "");
	assert_true(compare_equal(&r));
	assert_int_equal(r.replayed, ITERATIONS);
	assert_int_equal(r.announced, ITERATIONS * NODES);
	assert_int_equal(r.unannounced, 0);
	assert_int_equal(r.nodes, NODES);
	assert_int_equal(r.losses_equal, ITERATIONS);
}

static void what_ran_again_replays_bit_for_bit(void **state)
{
	struct compare_result r = played_how(*state, true, NULL);

	assert_string_equal(r.broken.text, "");
	assert_true(compare_equal(&r));
	assert_int_equal(r.replayed, ITERATIONS);
	assert_int_equal(r.announced, ITERATIONS * NODES);
}

/* Both ways: what was rounded and should not have been, and the reverse. */
static void another_rounding_than_recorded_is_found(void **state)
{
	struct cluster *c = *state;
	struct compare_result r;

	c->bf16 = !c->bf16;
	r = played(c, NULL);
	assert_string_equal(r.broken.text, "");
	assert_false(compare_equal(&r));
	assert_int_equal(r.first.iteration, 1);
}

/* The same sums in another order: floats notice. On a data node every L comes before its own B;
 * all L from the last to the first, then all B likewise, is an order that could have been. */
static void reverse_an_order(struct record *r)
{
	struct store_order *o = r->orders[3].n_counted > r->orders[0].n_counted ? &r->orders[3]
										 : &r->orders[0];
	struct store_counted was[2 * MICROBATCHES];
	uint32_t n = o->n_counted, at = 0;

	memcpy(was, o->counted, n * sizeof(*was));
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t k = n; k-- > 0;)
			if (was[k].kind == (pass ? 'B' : 'L'))
				r->counted[o->node][at++] = was[k];
}

static void another_order_is_found(void **state)
{
	struct compare_result r = played(*state, reverse_an_order);

	assert_string_equal(r.broken.text, "");
	assert_false(compare_equal(&r));
	assert_int_equal(r.first.iteration, 2);
	assert_int_equal(r.first.stage, 0);
}

static void move_data(struct record *r)
{
	uint32_t wave = r->routes[0].wave;

	r->routes[0].wave = r->routes[2].wave;
	r->routes[2].wave = wave;
}

static void other_data_is_found(void **state)
{
	struct compare_result r = played(*state, move_data);

	assert_false(compare_equal(&r));
	assert_int_equal(r.first.iteration, 2);
}

static void change_lr(struct record *r)
{
	r->commit.lr = nextafterf(r->commit.lr, 1.0f);
}

static void one_bit_of_the_learning_rate_is_found(void **state)
{
	struct compare_result r = played(*state, change_lr);

	assert_false(compare_equal(&r));
	assert_int_equal(r.first.iteration, 2);
}

static void change_loss(struct record *r)
{
	r->commit.loss *= 1.0001f;
}

static void another_loss_is_found(void **state)
{
	struct compare_result r = played(*state, change_loss);

	assert_false(compare_equal(&r));
	assert_int_equal(r.differing, 0);
	assert_int_equal(r.losses_off, 1);
	assert_int_equal(r.first_loss_iteration, 2);
}

/* ---- what computed it ---- */

static struct stage_device here; /* this machine's CPU */

static void say_here(struct record *r)
{
	for (uint32_t n = 0; n < NODES; n++)
		r->orders[n].device = here.text;
}

/* Two of a stage's nodes on GPUs of one kind, which this machine has not. */
static void say_gpus(struct record *r)
{
	say_here(r);
	r->orders[2].device = "cuda:0:bf16 sm_90 H100 cuBLAS 13.1";
	r->orders[4].device = "cuda:3:bf16 sm_90 H100 cuBLAS 13.1";
}

static void say_gpus_and_change_loss(struct record *r)
{
	say_gpus(r);
	r->commit.loss *= 1.02f;
}

static void say_gpus_and_change_norm(struct record *r)
{
	say_gpus(r);
	r->commit.gradient_norm *= 0.85;
}

/* In every iteration, unlike other tampering. */
static struct compare_result said(struct cluster *c, void (*say)(struct record *r),
				  void (*tamper)(struct record *r))
{
	struct error err;

	assert_int_equal(stage_device(&here, "cpu", &err), 0);
	for (uint64_t i = 1; i <= ITERATIONS; i++)
		play_telling(c, i, false, i == 2 && tamper ? tamper : say);
	return compared(c);
}

static void this_machines_kind_replays_bit_for_bit(void **state)
{
	struct compare_result r = said(*state, say_here, NULL);

	assert_true(compare_equal(&r));
	assert_int_equal(r.unlike_from, 0);
	assert_int_equal(r.n_kinds, 1);
	assert_string_equal(r.kinds[0].device, here.text);
	assert_int_equal(r.kinds[0].nodes, NODES);
	assert_true(r.kinds[0].exact);
}

static void another_kind_is_held_to_limits(void **state)
{
	struct compare_result r = said(*state, say_gpus, NULL);

	assert_true(compare_equal(&r));
	assert_int_equal(r.unlike_from, 1);
	assert_true(r.unlike_limit == COMPARE_UNLIKE_BF16_LIMIT);
	assert_int_equal(r.n_kinds, 2);
	assert_true(r.kinds[0].exact && !r.kinds[1].exact);
	assert_int_equal(r.kinds[1].nodes, 2);
	assert_string_equal(r.kinds[1].here, here.text);
	assert_int_equal(r.announced, ITERATIONS * NODES);
	assert_true(r.worst_norm < 1e-6); /* it was this machine that computed */
}

static void beyond_the_limits_is_found(void **state)
{
	struct compare_result r = said(*state, say_gpus, say_gpus_and_change_loss);

	assert_false(compare_equal(&r));
	assert_int_equal(r.first_loss_iteration, 2);
	assert_int_equal(r.norms_off, 0);
	tear_down(state);
	set_up(state);
	r = said(*state, say_gpus, say_gpus_and_change_norm);
	assert_false(compare_equal(&r));
	assert_int_equal(r.losses_off, 0);
	assert_int_equal(r.first_norm_iteration, 2);
}

/* Whatever computed the gradients, replicas must agree. */
static void replicas_that_differ_are_found(void **state)
{
	struct cluster *c = *state;
	struct store_hash h = { .iteration = 1, .node = 9, .stage = 2, .hash = 5 };
	struct compare_result r;

	assert_int_equal(store_hashes(c->store, &h, 1, NULL), 0);
	r = said(c, say_gpus, NULL);
	assert_false(compare_equal(&r));
	assert_int_equal(r.differing, 1);
	assert_int_equal(r.first.node, 9);
}

/* The audit's rules, each broken alone. */
static void forget_one(struct record *r)
{
	struct store_order *o = &r->orders[0];

	o = o->n_counted ? o : &r->orders[3];
	o->n_counted--;
}
static void count_twice(struct record *r)
{
	struct store_order *o = r->orders[0].n_counted ? &r->orders[0] : &r->orders[3];

	r->counted[o->node][o->n_counted] = o->counted[0];
	o->n_counted++;
}
static void leave_out_of_the_sum(struct record *r)
{
	uint16_t node = r->orders[0].n_counted ? 0 : 3;

	r->replicas[0][0] = node == 0 ? 3 : 0;
	r->reductions[0].n_nodes = 1;
}
static void sum_out_of_order(struct record *r)
{
	r->replicas[2][0] = 6;
	r->replicas[2][2] = 2;
}
static void read_data_twice(struct record *r)
{
	r->routes[1].wave = r->routes[3].wave;
	r->routes[1].shard = r->routes[3].shard;
}
static void start_elsewhere(struct record *r)
{
	r->journeys[4].stages[0] = 1;
}
static void invent_a_microbatch(struct record *r)
{
	struct store_order *o = r->orders[0].n_counted ? &r->orders[0] : &r->orders[3];

	r->counted[o->node][0].microbatch = 999;
}

static void every_broken_rule_is_found(void **state)
{
	static const struct {
		void (*tamper)(struct record *r);
		const char *words;
	} cases[] = {
		{ forget_one, "counted nowhere" },
		{ count_twice, "counted twice" },
		{ leave_out_of_the_sum, "took no part in its sum" },
		{ sum_out_of_order, "do not ascend" },
		{ read_data_twice, "which another one has read" },
		{ start_elsewhere, "does not start in stage 0" },
		{ invent_a_microbatch, "which has no route" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct compare_result r;

		r = played(*state, cases[i].tamper);
		assert_false(compare_equal(&r));
		assert_int_equal(r.replayed, 1);
		if (!strstr(r.broken.text, cases[i].words) || !strstr(r.broken.text, "iteration 2"))
			fail_msg("%s", r.broken.text);
		if (i + 1 < sizeof(cases) / sizeof(cases[0])) {
			tear_down(state);
			set_up(state);
		}
	}
}

/* ---- stages that were put back ---- */

static uint32_t node_of(uint8_t stage)
{
	for (uint32_t n = 0; n < NODES; n++)
		if (stage_of[n] == stage)
			return n;
	fail_msg("no node of stage %u", stage);
	return 0;
}

struct state {
	float *arrays[NODES][3];
};

static void arrays_of(struct stage *s, float *to[3])
{
	to[0] = stage_weights(s);
	to[1] = stage_moment1(s);
	to[2] = stage_moment2(s);
}

/* What every node holds, kept aside; or put back. */
static void copy_states(struct cluster *c, struct state *s, bool back)
{
	for (uint32_t n = 0; n < NODES; n++) {
		size_t bytes = stage_parameters(c->nodes[n]) * sizeof(float);
		float *now[3];

		arrays_of(c->nodes[n], now);
		for (int k = 0; k < 3; k++) {
			if (!back)
				s->arrays[n][k] = malloc(bytes);
			memcpy(back ? now[k] : s->arrays[n][k], back ? s->arrays[n][k] : now[k],
			       bytes);
			if (back)
				free(s->arrays[n][k]);
		}
		stage_changed(c->nodes[n]);
	}
}

/* Two iterations, a third that is lost with everything after the second, and a third again. */
static struct compare_result gone_back(struct cluster *c, bool wrong)
{
	struct store_restore rows[STAGES] = { { .iteration = 0 } };
	struct state states;
	struct error err = { "" };

	play(c, 1, false, NULL);
	play(c, 2, false, NULL);
	copy_states(c, &states, false);
	play(c, 3, false, NULL);
	copy_states(c, &states, true);
	if (wrong)
		stage_weights(c->nodes[node_of(1)])[7] += 1e-6f;
	for (uint8_t s = 0; s < STAGES; s++)
		rows[s] = (struct store_restore){ .iteration = 2,
						  .last = 3,
						  .stage = s,
						  .node = (uint16_t)node_of(s),
						  .hash = stage_hash(c->nodes[node_of(s)]) };
	if (store_restore(c->store, rows, STAGES, &err) != 0)
		fail_msg("%s", err.text);
	play(c, 3, false, NULL);
	return compared(c);
}

static void going_back_to_a_checkpoint_replays_bit_for_bit(void **state)
{
	struct compare_result r = gone_back(*state, false);

	assert_true(compare_equal(&r));
	assert_int_equal(r.replayed, 3);
	assert_int_equal(r.restored, STAGES);
	assert_int_equal(r.announced, 3 * NODES + STAGES);
}

static void another_checkpoint_is_found(void **state)
{
	struct compare_result r = gone_back(*state, true);

	assert_false(compare_equal(&r));
	assert_int_equal(r.first.iteration, 2);
	assert_int_equal(r.first.stage, 1);
}

/* Stage 2 is lost after the second iteration and made of three quarters of stage 1, by a plain
 * restatement. */
static struct compare_result averaged(struct cluster *c, float recorded)
{
	struct store_restore row = { .iteration = 2,
				     .last = 2,
				     .stage = 2,
				     .n_from = 1,
				     .from = { 1 },
				     .weight = { recorded } };
	float *to[3], *from[3];
	struct error err = { "" };

	play(c, 1, false, NULL);
	play(c, 2, false, NULL);
	arrays_of(c->nodes[node_of(1)], from);
	for (uint32_t n = 0; n < NODES; n++) {
		if (stage_of[n] != 2)
			continue;
		arrays_of(c->nodes[n], to);
		for (int k = 0; k < 3; k++)
			for (size_t i = 0; i < stage_parameters(c->nodes[n]); i++)
				to[k][i] = 0.75f * from[k][i];
		stage_changed(c->nodes[n]);
		row.node = (uint16_t)n;
		row.hash = stage_hash(c->nodes[n]);
	}
	if (store_restore(c->store, &row, 1, &err) != 0)
		fail_msg("%s", err.text);
	play(c, 3, false, NULL);
	return compared(c);
}

static void a_stage_made_of_its_neighbours_replays_bit_for_bit(void **state)
{
	struct compare_result r = averaged(*state, 0.75f);

	assert_true(compare_equal(&r));
	assert_int_equal(r.averaged, 1);
	assert_int_equal(r.announced, 3 * NODES + 1);
}

static void another_average_is_found(void **state)
{
	struct compare_result r = averaged(*state, 0.7500001f);

	assert_false(compare_equal(&r));
	assert_int_equal(r.first.iteration, 2);
	assert_int_equal(r.first.stage, 2);
}

static void another_corpus_is_refused(void **state)
{
	struct cluster *c = *state;
	struct compare_options o = { .from = 1 };
	struct compare_result result;
	struct error err = { "" };

	assert_int_equal(compare_run(c->store, &o, &result, &err), -ENODATA);
	play(c, 1, false, NULL);
	make_text(c);
	assert_int_equal(compare_run(c->store, &o, &result, &err), -ESTALE);
	assert_non_null(strstr(err.text, "has changed"));
	unlink(c->text);
	assert_int_equal(compare_run(c->store, &o, &result, &err), -ENOENT);
	assert_non_null(strstr(err.text, c->text));
}

/* Of a record from before hashes were named nothing can be compared: that is said, and not that it differs. */
static void hashes_of_an_earlier_build_are_no_difference(void **state)
{
	struct cluster *c = *state;
	struct compare_options o = { .from = 1 };
	struct compare_result result;
	struct error err = { "" };

	play(c, 1, false, NULL);
	assert_int_equal(store_set(c->store, "hash", NULL, NULL), 0);
	store_close(c->store);
	assert_int_equal(store_open(&c->store, c->folder, NULL), 0);
	assert_int_equal(compare_run(c->store, &o, &result, &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "hashes are an earlier build's"));
	assert_non_null(strstr(err.text, "version t"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_BF16(name) { "bf16: " #name, name, set_up_bf16, tear_down, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_happened_replays_bit_for_bit),
		TEST(what_ran_again_replays_bit_for_bit),
		TEST_BF16(what_happened_replays_bit_for_bit),
		TEST_BF16(what_ran_again_replays_bit_for_bit),
		TEST(another_rounding_than_recorded_is_found),
		TEST_BF16(another_rounding_than_recorded_is_found),
		TEST(another_order_is_found),
		TEST(other_data_is_found),
		TEST(one_bit_of_the_learning_rate_is_found),
		TEST(another_loss_is_found),
		TEST(this_machines_kind_replays_bit_for_bit),
		TEST(another_kind_is_held_to_limits),
		TEST(beyond_the_limits_is_found),
		TEST(replicas_that_differ_are_found),
		TEST(every_broken_rule_is_found),
		TEST(going_back_to_a_checkpoint_replays_bit_for_bit),
		TEST(another_checkpoint_is_found),
		TEST(a_stage_made_of_its_neighbours_replays_bit_for_bit),
		TEST(another_average_is_found),
		TEST(another_corpus_is_refused),
		TEST(hashes_of_an_earlier_build_are_no_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
