/* Compares the trainer with stages that the test calls itself, and tests the paths that visits_draw
 * gives. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/tests/run.h"
#include "model/codec/codec.h"
#include "model/squares.h"
#include "model/trainer.h"
#include "model/program/visits.h"

static const struct model_config config = { .vocab = 23,
					    .dim = 16,
					    .n_layers = 4,
					    .n_heads = 2,
					    .n_kv_heads = 1,
					    .ffn_dim = 20,
					    .context = 8,
					    .n_stages = 4,
					    .rope_theta = 10000,
					    .norm_eps = 1e-5f,
					    .init_std = 0.2f };

static const uint32_t paths[3][3] = { { 1, 2, 3 }, { 3, 2 }, { 3 } };
static const size_t lengths[3] = { 3, 2, 1 };

/* Runs three microbatches and a step, with the trainer and with stages that the test calls itself.
 * divisors: for each stage, the divisor of its summed gradient.
 */
static void check_step(enum grad_norm by, const double divisors[4])
{
	struct hyperparameters hyper = { .adamw = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f },
					 .clip = 0.1f };
	struct stage_options o = { .batch = 1, .sequence = 6, .threads = 1, .seed = 3 };
	struct trainer *t;
	struct run r;
	double sum = 0, norm;
	float loss;

	run_init(&r, &config, 1, 6, 1, 3);
	assert_int_equal(trainer_new(&t, &config, &hyper, &o, NULL), 0);
	for (int i = 0; i < 3; i++) {
		float by_hand = run_microbatch(&r, paths[i], lengths[i], true, true);

		assert_int_equal(
			trainer_evaluate(t, paths[i], lengths[i], r.tokens, r.targets, &loss),
			0);
		assert_true(loss == by_hand);
		assert_int_equal(
			trainer_microbatch(t, paths[i], lengths[i], r.tokens, r.targets, &loss),
			0);
		assert_true(loss == by_hand);
	}
	for (int i = 0; i < 4; i++) {
		double ss = squares_sum(stage_gradient(r.stages[i]),
					stage_parameters(r.stages[i]));

		sum += ss / (divisors[i] * divisors[i]);
	}
	assert_true(sqrt(sum) > 0.1); /* large enough to be clipped */
	for (int i = 0; i < 4; i++)
		stage_step(r.stages[i], stage_gradient(r.stages[i]),
			   (float)(0.1 / sqrt(sum) / divisors[i]), &hyper.adamw, 1);
	assert_int_equal(trainer_step(t, 1, by, &norm), 0);
	assert_float_equal(norm, sqrt(sum), 1e-9);
	for (int i = 0; i < 4; i++) {
		const float *a = stage_weights(r.stages[i]);
		const float *b = stage_weights(trainer_stages(t)[i]);

		for (size_t k = 0; k < stage_parameters(r.stages[i]); k++)
			assert_true(fabsf(a[k] - b[k]) < 1e-6f);
	}
	/* All gradients are zero again. */
	assert_int_equal(trainer_step(t, 2, by, &norm), -EINVAL);
	assert_true(stage_gradient(trainer_stages(t)[3])[5] == 0);
	trainer_free(t);
	run_fini(&r);
}

TEST(a_step_is_that_of_its_stages)
{
	check_step(GRAD_NORM_MICROBATCHES, (double[]){ 3, 3, 3, 3 });
	check_step(GRAD_NORM_VISITS, (double[]){ 3, 1, 2, 3 });
}

/* Runs a microbatch on the stages of r, and rounds all activations and gradients that go to another
 * stage. */
static float by_hand(struct run *r, const uint32_t *path, size_t n)
{
	struct codec forward = codec_of_activation(FORMAT_Q6, config.dim);
	struct codec backward = codec_of_gradient(FORMAT_Q6);
	size_t floats = stage_activation(r->stages[0]);
	float *down = r->grad[0], *up = r->grad[1], *swap, loss;

	stage_forward(r->stages[0], 0, r->tokens, NULL, r->x[0], true);
	for (size_t i = 0; i < n; i++) {
		codec_round(&forward, r->x[i], floats);
		stage_forward(r->stages[path[i]], 0, NULL, r->x[i], r->x[i + 1], true);
	}
	if (n > 0)
		codec_round(&forward, r->x[n], floats);
	stage_loss(r->stages[0], 0, r->x[n], r->targets, &loss, down, true);
	for (size_t i = n; i-- > 0; swap = down, down = up, up = swap) {
		codec_round(&backward, down, floats);
		stage_backward(r->stages[path[i]], 0, down, up, true);
	}
	if (n > 0)
		codec_round(&backward, down, floats);
	stage_backward(r->stages[0], 0, down, NULL, true);
	return loss;
}

/* The trainer rounds what travels in a run over nodes, and nothing else: neither evaluations nor a
 * path that has only stage 0. */
TEST(training_rounds_as_a_run_does)
{
	struct hyperparameters hyper = { .adamw = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f } };
	struct stage_options o = { .batch = 1, .sequence = 6, .threads = 1, .seed = 3 };
	struct sum_codec *codecs;
	struct trainer *t;
	struct run r;
	double norm;
	float loss;

	run_init(&r, &config, 1, 6, 1, 3);
	assert_int_equal(trainer_new(&t, &config, &hyper, &o, NULL), 0);
	assert_int_equal(trainer_set_formats(t, FORMAT_Q6, FORMAT_Q4, NULL), 0);
	for (size_t i = 0; i < 4; i++) {
		size_t n = i < 3 ? lengths[i] : 0;
		const uint32_t *path = paths[i < 3 ? i : 0];
		float exact = run_microbatch(&r, path, n, false, false), rounded;

		assert_int_equal(trainer_evaluate(t, path, n, r.tokens, r.targets, &loss), 0);
		assert_true(loss == exact);
		rounded = by_hand(&r, path, n);
		assert_int_equal(trainer_microbatch(t, path, n, r.tokens, r.targets, &loss), 0);
		assert_true(loss == rounded);
		assert_true((loss == exact) == (n == 0));
	}
	assert_int_equal(sum_codecs_new(&codecs, &config, FORMAT_Q4, NULL), 0);
	for (int i = 0; i < 4; i++) {
		float *g = stage_gradient(r.stages[i]);

		assert_int_equal(
			sum_codec_round(&codecs[i], g, stage_parameters(r.stages[i]), 1), 0);
		stage_step(r.stages[i], g, 0.25f, &hyper.adamw, 1);
	}
	assert_int_equal(trainer_step(t, 1, GRAD_NORM_MICROBATCHES, &norm), 0);
	for (int i = 0; i < 4; i++)
		assert_memory_equal(stage_weights(r.stages[i]), stage_weights(trainer_stages(t)[i]),
				    stage_parameters(r.stages[i]) * sizeof(float));
	sum_codecs_free(codecs);
	trainer_free(t);
	run_fini(&r);
}

TEST(wrong_paths_are_refused)
{
	struct hyperparameters hyper = { .clip = 0 };
	struct stage_options o = { .batch = 1, .sequence = 6, .threads = 1 };
	int32_t tokens[6] = { 0 };
	struct trainer *t;
	float loss;

	assert_int_equal(trainer_new(&t, &config, &hyper, &o, NULL), 0);
	assert_int_equal(trainer_evaluate(t, (uint32_t[]){ 0 }, 1, tokens, tokens, &loss),
			 -EINVAL);
	assert_int_equal(trainer_evaluate(t, (uint32_t[]){ 4 }, 1, tokens, tokens, &loss),
			 -EINVAL);
	assert_int_equal(
		trainer_evaluate(t, (uint32_t[]){ 1, 2, 3, 1 }, 4, tokens, tokens, &loss),
		-EINVAL);
	trainer_free(t);
}

enum { S = 7, M = 30 };

/* Returns true if the path ascends, except for exchanges of neighbours that do not overlap. */
static bool neighbours_only(const uint32_t *path, uint32_t n)
{
	for (uint32_t i = 0; i + 1 < n; i++) {
		if (path[i] < path[i + 1])
			continue;
		if (path[i] != path[i + 1] + 1 || (i + 2 < n && path[i + 2] < path[i]))
			return false;
		i++;
	}
	return true;
}

TEST(drawn_paths_keep_the_rules)
{
	static const stage_set sets[] = { 0, 1 << 1, 1 << 0 | 1 << 3 | 1 << (S - 1) };
	struct visit_rules r = { .swap = 0.5f };
	uint32_t drawn[M * S], visits_of[M], swaps = 0;

	for (size_t at = 0; at < 3; at++)
		for (r.always = sets[at], r.skip = 0;
		     r.skip < visit_rules_droppable(r.always, S); r.skip++)
			for (uint64_t it = 0; it < 20; it++) {
				uint32_t visits[S] = { 0 }, low = M, high = 0, whole = 0;

				r.share = it % 2 ? 30 : 0;
				visits_draw(&r, S, M, 5, it, drawn, visits_of);
				for (uint32_t m = 0; m < M; m++) {
					const uint32_t *path = drawn + m * S, n = visits_of[m];

					whole += n == S - 1;
					assert_true(n == S - 1 || n == S - 1 - r.skip);
					assert_true(neighbours_only(path, n));
					for (uint32_t i = 0; i < n; i++) {
						assert_in_range(path[i], 1, S - 1);
						visits[path[i]]++;
						swaps += i > 0 && path[i] < path[i - 1];
						for (uint32_t k = 0; k < i; k++)
							assert_int_not_equal(path[i], path[k]);
					}
				}
				for (uint32_t s = 1; s < S; s++) {
					if (visit_rules_always(r.always, s)) {
						assert_int_equal(visits[s], M);
						continue;
					}
					low = visits[s] < low ? visits[s] : low;
					high = visits[s] > high ? visits[s] : high;
				}
				assert_true(high - low <= 1);
				assert_int_equal(whole, r.skip == 0    ? M
							: r.share == 0 ? 0
								       : M - (3 * M + 5) / 10);
			}
	assert_true(swaps > 100);
}

TEST(rules_are_broken_only_on_purpose)
{
	struct visit_rules r = { .skip = 2, .any_order = true };
	uint32_t drawn[M * S], visits_of[M], disorder = 0, first = 0, last = 0;
	struct error err;

	visits_draw(&r, S, M, 5, 0, drawn, visits_of);
	for (uint32_t m = 0; m < M; m++)
		disorder += !neighbours_only(drawn + m * S, 4);
	assert_true(disorder > M / 2);
	r = (struct visit_rules){ .skip = 2, .unequal = true };
	visits_draw(&r, S, M, 5, 0, drawn, visits_of);
	for (uint32_t m = 0; m < M; m++)
		for (uint32_t i = 0; i < 4; i++) {
			first += drawn[m * S + i] == 1;
			last += drawn[m * S + i] == S - 1;
		}
	assert_true(first > last + M / 4);
	assert_int_equal(visit_rules_check(&(struct visit_rules){ .skip = 6 }, S, &err), 0);
	assert_int_equal(visit_rules_check(&(struct visit_rules){ .skip = 7 }, S, &err),
			 -EINVAL);
	assert_int_equal(visit_rules_check(&(struct visit_rules){ .skip = 1 }, 1, &err),
			 -EINVAL);
}

/* A stacked stage computes the same as its source, and has the same moments. */
TEST(a_stacked_stage_is_its_neighbour)
{
	struct hyperparameters hyper = { .adamw = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f },
					 .clip = 0.1f };
	struct stage_options o = { .batch = 1, .sequence = 6, .threads = 1, .seed = 3 };
	struct trainer *t;
	struct stage *last, *middle, *first;
	size_t p;
	struct run r;
	float loss;
	double norm;

	run_init(&r, &config, 1, 6, 1, 3);
	assert_int_equal(trainer_new(&t, &config, &hyper, &o, NULL), 0);
	first = trainer_stages(t)[0];
	middle = trainer_stages(t)[2];
	last = trainer_stages(t)[3];
	p = stage_parameters(last);
	assert_int_equal(trainer_microbatch(t, paths[2], 1, r.tokens, r.targets, &loss), 0);
	assert_int_equal(trainer_step(t, 1, GRAD_NORM_MICROBATCHES, &norm), 0);
	assert_memory_not_equal(stage_weights(middle), stage_weights(last), p * sizeof(float));
	assert_int_equal(trainer_stack(t, 2, 3), 0);
	assert_memory_equal(stage_weights(middle), stage_weights(last), p * sizeof(float));
	assert_memory_equal(stage_moment1(middle), stage_moment1(last), p * sizeof(float));
	assert_memory_equal(stage_moment2(middle), stage_moment2(last), p * sizeof(float));
	/* In stage 0, the layer follows the embedding in the array. */
	assert_int_equal(trainer_stack(t, 1, 0), 0);
	assert_memory_equal(stage_weights(trainer_stages(t)[1]),
			    stage_weights(first) + (size_t)config.vocab * config.dim,
			    p * sizeof(float));
	assert_int_equal(trainer_stack(t, 4, 0), -EINVAL);
	trainer_free(t);
	run_fini(&r);
}

/* Stage 0 of a model with more stages than layers has no layer to copy. */
TEST(a_stage_without_layers_gives_none)
{
	struct model_config few = config;
	struct hyperparameters hyper = { .adamw = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f },
					 .clip = 0.1f };
	struct stage_options o = { .batch = 1, .sequence = 6, .threads = 1, .seed = 3 };
	struct trainer *t;
	struct stage *stage;
	float *before;
	size_t bytes;

	few.n_layers = few.n_stages - 1;
	assert_int_equal(trainer_new(&t, &few, &hyper, &o, NULL), 0);
	stage = trainer_stages(t)[1];
	bytes = stage_parameters(stage) * sizeof(*before);
	before = malloc(bytes);
	assert_non_null(before);
	memcpy(before, stage_weights(stage), bytes);
	assert_int_equal(trainer_stack(t, 1, 0), 0);
	assert_memory_equal(stage_weights(stage), before, bytes);
	assert_int_equal(trainer_stack(t, 1, 3), 0);
	assert_memory_not_equal(stage_weights(stage), before, bytes);
	free(before);
	trainer_free(t);
}

/* A stage with more layers than its source takes each layer from the same share of the depth. */
TEST(a_deeper_stage_takes_layers_of_the_same_depth)
{
	static const uint32_t source_of[] = { 0, 0, 0, 1, 1 };
	struct model_config c = config;
	struct hyperparameters hyper = { .adamw = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f },
					 .clip = 0.1f };
	struct stage_options o = { .batch = 1, .sequence = 6, .threads = 1, .seed = 3 };
	struct trainer *t;
	const float *to, *from;
	size_t layer;

	c.n_layers = 7;
	assert_int_equal(model_cut(&c, &(struct stage_layers){ 3, { 0, 5, 2 } }, "cut", NULL), 0);
	assert_int_equal(model_cut_check_stack(&c, &(struct error){ "" }), -EINVAL);
	assert_int_equal(trainer_new(&t, &c, &hyper, &o, NULL), 0);
	layer = stage_parameters(trainer_stages(t)[2]) / 2;
	assert_int_equal(trainer_stack(t, 1, 2), 0);
	to = stage_weights(trainer_stages(t)[1]);
	from = stage_weights(trainer_stages(t)[2]);
	for (size_t i = 0; i < 5; i++)
		assert_memory_equal(to + i * layer, from + source_of[i] * layer,
				    layer * sizeof(float));
	trainer_free(t);
}

TEST(the_ends_of_the_text_are_complete)
{
	struct visit_rules r = { .skip = 2, .whole_first = 3, .whole_last = 1 };
	uint32_t share;

	for (uint64_t it = 0; it < 10; it++)
		assert_int_equal(visits_skip(&r, it, 10, &share), it < 3 || it == 9 ? 0 : 2);
	assert_int_equal(share, 0);
	assert_int_equal(
		visits_skip(&(struct visit_rules){ .skip = 2, .share = 30 }, 9, 10, &share), 2);
	assert_int_equal(share, 30);
}

/* A gradient that is not finite causes no step: the weights stay, and the next step uses only the
 * next gradient. */
TEST(infinite_gradients_are_dropped)
{
	struct hyperparameters hyper = { .adamw = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f },
					 .clip = 0.1f };
	struct stage_options o = { .batch = 1, .sequence = 6, .threads = 1, .seed = 3 };
	struct trainer *t;
	struct stage *stage;
	struct run r;
	float loss, weight;
	double norm;

	run_init(&r, &config, 1, 6, 1, 3);
	assert_int_equal(trainer_new(&t, &config, &hyper, &o, NULL), 0);
	stage = trainer_stages(t)[2];
	weight = stage_weights(stage)[0];
	assert_int_equal(trainer_microbatch(t, paths[0], 3, r.tokens, r.targets, &loss), 0);
	stage_gradient(stage)[5] = INFINITY;
	assert_int_equal(trainer_step(t, 1, GRAD_NORM_MICROBATCHES, &norm), -ERANGE);
	assert_true(stage_weights(stage)[0] == weight);
	assert_int_equal(trainer_drop_gradient(t), 0);
	assert_int_equal(trainer_step(t, 1, GRAD_NORM_MICROBATCHES, &norm), -EINVAL);
	assert_int_equal(trainer_microbatch(t, paths[0], 3, r.tokens, r.targets, &loss), 0);
	assert_int_equal(trainer_step(t, 1, GRAD_NORM_MICROBATCHES, &norm), 0);
	assert_true(isfinite(norm) && stage_weights(stage)[0] != weight);
	trainer_free(t);
	run_fini(&r);
}

/* The memory suffices for each stage, but not for all stages together. */
TEST(a_model_that_is_too_large_is_refused_before_any_memory_is_filled)
{
	struct hyperparameters hyper = { .adamw = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f },
					 .clip = 0.1f };
	struct stage_options o = { .batch = 1, .sequence = 6, .threads = 1, .seed = 3 };
	struct error err = { "" };
	struct trainer *t = NULL;
	size_t all;

	assert_int_equal(trainer_new(&t, &config, &hyper, &o, &err), 0);
	all = 4 * sizeof(float) * trainer_parameters(t);
	trainer_free(t);
	o.memory_bytes = all;
	assert_int_equal(trainer_new(&t, &config, &hyper, &o, &err), 0);
	trainer_free(t);
	t = NULL;
	o.memory_bytes = all - 1;
	assert_int_equal(trainer_new(&t, &config, &hyper, &o, &err), -ENOMEM);
	assert_null(t);
	assert_non_null(strstr(err.text, "the model needs more than 0.1 MiB"));
}
