/* Compares an executor with separate stages, each of which holds a single sum. The results of
 * passes, and the sums, must be equal. */

#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "verify/executor.h"

enum {
	BATCH = 2, SEQUENCE = 24, ROWS = BATCH * SEQUENCE, DIM = 32, SUMS = 3,
	MAX_PARAMETERS = 100000
};

static const struct executor_setup setup = {
	.config = { .vocab = 256, .dim = DIM, .n_layers = 2, .n_heads = 2, .n_kv_heads = 1,
		    .ffn_dim = 40, .context = SEQUENCE, .n_stages = 2, .rope_theta = 10000,
		    .norm_eps = 1e-5f, .init_std = 0.05f },
	.batch = BATCH, .sequence = SEQUENCE, .threads = 1, .seed = 3, .device = "cpu"
};

/* The stage to which each sum belongs: one node holds stage 0, and two nodes hold stage 1. */
static const uint32_t stage_of_sum[SUMS] = { 0, 1, 1 };

struct microbatch {
	int32_t tokens[ROWS], targets[ROWS];
	float between[ROWS * DIM], out[ROWS * DIM];      /* outputs of stages 0 and 1 */
	float out_grad[ROWS * DIM], between_grad[ROWS * DIM];
	float loss;
};

static void fill(struct microbatch *m, uint64_t seed)
{
	struct rng r;

	rng_init(&r, seed);
	for (int i = 0; i < ROWS; i++) {
		m->tokens[i] = (int32_t)rng_below(&r, 256);
		m->targets[i] = (int32_t)rng_below(&r, 256);
	}
}

/* Runs passes with an executor. The passes alternate between sums 1 and 2 of stage 1, so the
 * executor must save and restore both sums. */
static void run_executor(struct executor *e, struct microbatch *m, uint32_t turn)
{
	assert_int_equal(executor_forward(e, 0, m->tokens, NULL, m->between), 0);
	assert_int_equal(executor_forward(e, 1, NULL, m->between, m->out), 0);
	assert_int_equal(executor_loss(e, 0, m->out, m->targets, &m->loss, m->out_grad), 0);
	assert_int_equal(executor_backward(e, 1, 1 + turn % 2, NULL, m->between, m->out_grad,
					   m->between_grad), 0);
	assert_int_equal(executor_backward(e, 0, turn ? 0 : EXECUTOR_NO_SUM, m->tokens, NULL,
					   m->between_grad, NULL), 0);
}

/* Runs the same passes without an executor. Sum i is the gradient buffer of stages[i]. */
static void run_stages(struct stage *stages[SUMS], struct microbatch *m, uint32_t turn)
{
	struct stage *second = stages[1 + turn % 2];

	assert_int_equal(stage_forward(stages[0], 0, m->tokens, NULL, m->between, true), 0);
	assert_int_equal(stage_forward(second, 0, NULL, m->between, m->out, true), 0);
	assert_int_equal(stage_loss(stages[0], 0, m->out, m->targets, &m->loss, m->out_grad, true),
			 0);
	assert_int_equal(stage_backward(second, 0, m->out_grad, m->between_grad, true), 0);
	assert_int_equal(stage_backward(stages[0], 0, m->between_grad, NULL, turn != 0), 0);
}

static void make_stages(struct stage *stages[SUMS])
{
	const struct stage_options o = { .slots = 1, .batch = BATCH, .sequence = SEQUENCE,
					 .threads = 1, .seed = setup.seed, .device = "cpu" };

	for (int i = 0; i < SUMS; i++) {
		assert_int_equal(stage_new(&stages[i], &setup.config, stage_of_sum[i], &o, NULL),
				 0);
		stage_zero_gradient(stages[i]);
	}
}

TEST(sums_and_outputs_equal_those_of_stages)
{
	static struct microbatch here, expected;
	static float sum[MAX_PARAMETERS];
	struct stage *stages[SUMS];
	struct executor *e;

	assert_int_equal(executor_new(&e, &setup, NULL), 0);
	make_stages(stages);
	executor_begin(e, SUMS);
	for (uint32_t turn = 0; turn < 5; turn++) {
		fill(&here, turn);
		fill(&expected, turn);
		run_executor(e, &here, turn);
		run_stages(stages, &expected, turn);
		assert_memory_equal(&here, &expected, sizeof(here));
	}
	for (uint32_t i = 0; i < SUMS; i++) {
		size_t n = stage_parameters(stages[i]);

		assert_true(n > 0 && n < MAX_PARAMETERS);
		executor_sum(e, stage_of_sum[i], i, sum);
		assert_memory_equal(sum, stage_gradient(stages[i]), n * sizeof(float));
	}
	for (int i = 0; i < SUMS; i++)
		stage_free(stages[i]);
	executor_free(e);
}

/* executor_begin drops all sums; nothing is added to the sums of the former iteration. */
TEST(new_sums_begin_at_zero)
{
	static struct microbatch m;
	static float sum[MAX_PARAMETERS];
	struct executor *e;

	assert_int_equal(executor_new(&e, &setup, NULL), 0);
	executor_begin(e, SUMS);
	fill(&m, 1);
	run_executor(e, &m, 1);
	executor_begin(e, SUMS);
	for (uint32_t i = 0; i < SUMS; i++) {
		size_t n = stage_parameters(executor_stages(e)[stage_of_sum[i]]);

		executor_sum(e, stage_of_sum[i], i, sum);
		for (size_t k = 0; k < n; k++)
			assert_true(sum[k] == 0);
	}
	executor_free(e);
}

TEST(unknown_devices_are_refused)
{
	struct executor_setup other = setup;
	struct executor *e = NULL;
	struct error err = { "" };

	other.device = "cpu:v9";
	assert_int_equal(executor_new(&e, &other, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cpu:v9"));
	assert_null(e);
}
