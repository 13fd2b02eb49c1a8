/* Executors against stages: the same calls give the same bits here and in another process, by
 * every instruction set of this machine, each of which only a process of its own can have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "verify/executor.h"

enum { BATCH = 2, SEQUENCE = 24, ROWS = BATCH * SEQUENCE, DIM = 32, SETS = 3 };

static const struct executor_setup setup = {
	.config = { .vocab = 256, .dim = DIM, .n_layers = 2, .n_heads = 2, .n_kv_heads = 1,
		    .ffn_dim = 40, .context = SEQUENCE, .n_stages = 2, .rope_theta = 10000,
		    .norm_eps = 1e-5f, .init_std = 0.05f },
	.batch = BATCH, .sequence = SEQUENCE, .threads = 1, .seed = 3
};

struct outcome {
	float out[2][ROWS * DIM], grad[ROWS * DIM], up[ROWS * DIM], loss;
	float *sums[3]; /* of stage 0, of stage 1 twice */
};

static void fill(int32_t *tokens, int32_t *targets)
{
	struct rng r;

	rng_init(&r, 1);
	for (int i = 0; i < ROWS; i++) {
		tokens[i] = (int32_t)rng_below(&r, 256);
		targets[i] = (int32_t)rng_below(&r, 256);
	}
}

static float *room(void)
{
	return calloc(100000, sizeof(float));
}

/* A microbatch twice through both stages, counted by one node in stage 0 and two in stage 1, in
 * turns, so that sums change places in the stage. */
static struct outcome *run(struct executor *e)
{
	struct outcome *o = calloc(1, sizeof(*o));
	int32_t tokens[ROWS], targets[ROWS];

	fill(tokens, targets);
	assert_int_equal(executor_begin(e, 3), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(executor_forward(e, 0, tokens, NULL, o->out[0]), 0);
		assert_int_equal(executor_forward(e, 1, NULL, o->out[0], o->out[1]), 0);
		assert_int_equal(executor_loss(e, 0, o->out[1], targets, &o->loss, o->grad), 0);
		assert_int_equal(executor_backward(e, 1, 1 + i % 2, NULL, o->out[0], o->grad, o->up),
				 0);
		assert_int_equal(executor_backward(e, 0, i ? 0 : EXECUTOR_NO_SUM, tokens, NULL, o->up,
						   NULL),
				 0);
	}
	for (uint32_t i = 0; i < 3; i++) {
		o->sums[i] = room();
		assert_int_equal(executor_sum(e, i > 0, i, o->sums[i]), 0);
	}
	return o;
}

static void outcome_free(struct outcome *o)
{
	for (int i = 0; i < 3; i++)
		free(o->sums[i]);
	free(o);
}

static double distance(const float *a, const float *b, size_t n)
{
	double difference = 0, size = 0;

	for (size_t i = 0; i < n; i++) {
		difference += pow((double)a[i] - (double)b[i], 2);
		size += pow((double)b[i], 2);
	}
	return sqrt(difference / size);
}

static void same_or_near(const struct outcome *a, const struct outcome *b, bool same)
{
	if (same) {
		assert_memory_equal(a, b, offsetof(struct outcome, sums));
		for (int i = 0; i < 3; i++)
			assert_memory_equal(a->sums[i], b->sums[i], 100000 * sizeof(float));
	}
	assert_true(distance(a->out[1], b->out[1], ROWS * DIM) < 1e-5);
	for (int i = 0; i < 3; i++)
		assert_true(distance(a->sums[i], b->sums[i], 100000) < 1e-4);
}

static void processes_and_stages_agree(void **state)
{
	static const char *const names[SETS] = { "cpu:plain", "cpu:v3", "cpu:v4" };
	struct executor *others[SETS] = { NULL }, *own;
	struct outcome *mine, *other;
	struct error err;
	float *w;

	(void)state;
	/* Before anything is computed here. */
	for (int i = 0; i < SETS; i++) {
		int rc = executor_new_process(&others[i], &setup, names[i], &err);

		assert_true(rc == 0 || rc == -ENOTSUP);
		assert_null(rc ? NULL : executor_stages(others[i]));
	}
	assert_int_equal(executor_new(&own, &setup, "cpu", &err), 0);
	mine = run(own);
	for (int i = 0; i < SETS; i++) {
		if (!others[i])
			continue;
		other = run(others[i]);
		same_or_near(other, mine,
			     strcmp(executor_text(others[i]), executor_text(own)) == 0);
		outcome_free(other);
	}
	/* Other weights, other results: the same in both again. */
	w = stage_weights(executor_stages(own)[1]);
	w[5] += 1;
	for (int i = 0; i < SETS; i++)
		if (others[i])
			assert_int_equal(executor_set_weights(others[i], 1, w), 0);
	outcome_free(mine);
	mine = run(own);
	for (int i = 0; i < SETS; i++) {
		if (!others[i])
			continue;
		other = run(others[i]);
		same_or_near(other, mine,
			     strcmp(executor_text(others[i]), executor_text(own)) == 0);
		outcome_free(other);
		executor_free(others[i]);
	}
	outcome_free(mine);
	executor_free(own);
}

static void what_cannot_be_is_said(void **state)
{
	struct executor *e = NULL;
	struct error err = { "" };

	(void)state;
	assert_int_equal(executor_new_process(&e, &setup, "cpu:v9", &err), -EINVAL);
	assert_non_null(strstr(err.text, "cpu:v9"));
	assert_null(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_and_stages_agree),
		cmocka_unit_test(what_cannot_be_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
