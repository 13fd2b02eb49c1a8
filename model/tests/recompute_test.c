/* Tests that the level of recomputation changes the memory of a stage but no bit of a result. Also
 * tests that a lack of memory is reported at the start. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/cgroup.h"
#include "base/tests/test.h"
#include "model/cpu/stage_cpu.h"
#include "model/stage.h"
#include "model/trainer.h"

enum { B = 2, T = 70, C = 24, ROWS = B * T * C };

static const struct model_config config = { .vocab = 37,
					    .dim = C,
					    .n_layers = 4,
					    .n_heads = 4,
					    .n_kv_heads = 2,
					    .ffn_dim = 20,
					    .context = 80,
					    .n_stages = 2,
					    .rope_theta = 10000,
					    .norm_eps = 1e-5f,
					    .init_std = 0.2f };

static const enum recompute levels[] = { RECOMPUTE_NORMS, RECOMPUTE_NONE, RECOMPUTE_BLOCK };

/* The results of two forward passes, an evaluation, and the backward passes in reverse order. */
struct result {
	float out[2][ROWS], up[2][ROWS];
	float *gradient;
	size_t bytes;
};

static struct stage *stage_at(enum recompute level, uint32_t threads, const char *device)
{
	struct stage_options o = { .slots = 2,
				   .batch = B,
				   .sequence = T,
				   .threads = threads,
				   .seed = 4,
				   .device = device,
				   .recompute = level };
	struct error err = { "" };
	struct stage *s = NULL;
	int rc = stage_new(&s, &config, 1, &o, &err);

	if (rc && rc != -ENOTSUP)
		fail_msg("%s", err.text);
	return s;
}

static struct result *run(enum recompute level, uint32_t threads, const char *device)
{
	static float in[2][ROWS], passing[ROWS];
	struct stage *s = stage_at(level, threads, device);
	struct result *r;

	if (!s)
		return NULL;
	r = calloc(1, sizeof(*r));
	for (int i = 0; i < ROWS; i++) {
		in[0][i] = sinf((float)i);
		in[1][i] = cosf(0.7f * (float)i);
	}
	for (uint32_t slot = 0; slot < 2; slot++) {
		assert_int_equal(stage_forward(s, slot, NULL, in[slot], r->out[slot], true), 0);
		assert_int_equal(stage_forward(s, 0, NULL, in[1], passing, false), 0);
	}
	for (uint32_t slot = 2; slot-- > 0;)
		assert_int_equal(stage_backward(s, slot, in[slot], r->up[slot], true), 0);
	/* Runs a backward pass once more, without adding to the stage's gradient. */
	assert_int_equal(stage_backward(s, 1, in[1], passing, false), 0);
	assert_memory_equal(passing, r->up[1], sizeof(passing));
	r->gradient = calloc(stage_parameters(s), sizeof(float));
	memcpy(r->gradient, stage_gradient(s), stage_parameters(s) * sizeof(float));
	r->bytes = stage_memory_bytes(s);
	stage_free(s);
	return r;
}

static void result_free(struct result *r)
{
	free(r->gradient);
	free(r);
}

static void check(uint32_t threads, const char *device)
{
	struct result *first = run(RECOMPUTE_NORMS, threads, device);
	struct tensor_table table;

	if (!first)
		skip();
	assert_int_equal(tensor_table_new(&table, &config, NULL), 0);
	for (size_t i = 1; i < sizeof(levels) / sizeof(levels[0]); i++) {
		struct result *r = run(levels[i], threads, device);

		assert_memory_equal(r->out, first->out, sizeof(r->out));
		assert_memory_equal(r->up, first->up, sizeof(r->up));
		assert_memory_equal(r->gradient, first->gradient,
				    tensor_table_parameters(&table, 1) * sizeof(float));
		if (levels[i] == RECOMPUTE_NONE)
			assert_true(r->bytes > first->bytes);
		else if (levels[i] == RECOMPUTE_BLOCK)
			assert_true(r->bytes < first->bytes);
		result_free(r);
	}
	tensor_table_free(&table);
	result_free(first);
}

TEST(every_level_gives_the_same_bits)
{
	check(1, "cpu");
	check(3, "cpu");
}

TEST(every_level_gives_the_same_bits_in_bf16)
{
	check(1, "cpu:bf16");
}

static const struct vector_ops *ops;
static int norms_again, activations;

static void count_norm(float *y, const float *rstd, const float *x, const float *w, size_t rows,
		       size_t n)
{
	norms_again++;
	ops->norm_again(y, rstd, x, w, rows, n);
}

static void count_activation(float *h, const float *gu, size_t rows, size_t f)
{
	activations++;
	ops->swiglu(h, gu, rows, f);
}

static void count_again(const struct stage *s, bool count, int norms)
{
	static float grad[ROWS], up[ROWS];
	const struct stage_layout *l = stage_layout(s);
	struct vector_ops counting;
	struct error err;
	void *self;

	assert_int_equal(backend_cpu.make(&self, l, &err), 0);
	ops = ((struct cpu_stage *)self)->v;
	counting = *ops;
	counting.norm_again = count_norm;
	counting.swiglu = count_activation;
	((struct cpu_stage *)self)->v = &counting;
	norms_again = activations = 0;
	assert_int_equal(backend_cpu.backward(self, 0, grad, up, count), 0);
	assert_int_equal(norms_again, norms * (int)l->n_layers);
	assert_int_equal(activations, 0); /* the gradient's kernel gives the activation, too */
	backend_cpu.free(self);
}

/* The gradients of weights need the outputs of both norms of a layer, so RECOMPUTE_NORMS applies
 * both norms again. RECOMPUTE_BLOCK has just run the layer's forward pass, in which the second norm
 * has overwritten the output of the first. Only the first norm is therefore applied again. */
TEST(nothing_else_is_computed_again)
{
	static const int norms[] = { [RECOMPUTE_NORMS] = 2, [RECOMPUTE_BLOCK] = 1 };

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		struct stage *s = stage_at(levels[i], 1, "cpu");

		count_again(s, true, norms[levels[i]]);
		count_again(s, false, 0);
		stage_free(s);
	}
}

TEST(memory_that_is_missing_is_missed_at_the_start)
{
	struct stage_options o = { .slots = 2, .batch = B, .sequence = T };
	struct stage *s = stage_at(RECOMPUTE_NORMS, 1, "cpu"), *none = NULL;
	struct error err = { "" };

	o.memory_bytes = stage_memory_bytes(s);
	stage_free(s);
	assert_int_equal(stage_new(&s, &config, 1, &o, &err), 0);
	stage_free(s);
	o.memory_bytes -= 100 << 10;
	assert_int_equal(stage_new(&none, &config, 1, &o, &err), -ENOMEM);
	assert_null(none);
	assert_non_null(strstr(err.text, "stage 1, 2 slots of 2 x 70 tokens, recompute norms"));
	assert_non_null(strstr(err.text, "but only "));
	o.recompute = RECOMPUTE_BLOCK;
	assert_int_equal(stage_new(&s, &config, 1, &o, &err), 0);
	stage_free(s);
}

/* The kernel may grant more memory than the machine has. Even so, a stage that needs more than
 * any machine has must be refused. */
TEST(memory_that_no_machine_has_is_missing)
{
	struct stage_options o = { .slots = 2, .batch = 1 << 25, .sequence = 80 };
	struct error err = { "" };
	struct stage *s = NULL;

	assert_true(memory_usable() > 0 && memory_usable() < (size_t)1 << 50);
	assert_int_equal(stage_new(&s, &config, 1, &o, &err), -ENOMEM);
	assert_non_null(strstr(err.text, "MiB are free"));
	assert_null(s);
}

/* A trainer with the level "auto" recomputes as little as the memory allows. */
TEST(a_trainer_fits_the_level_to_the_memory)
{
	static const enum recompute falling[] = { RECOMPUTE_NONE, RECOMPUTE_NORMS,
						  RECOMPUTE_BLOCK };
	struct hyperparameters hyper = { .adamw = { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f } };
	struct stage_options o = { .batch = B, .sequence = T };
	struct error err = { "" };
	struct trainer *t;

	for (size_t i = 0; i < 3; i++) {
		size_t largest = 0;

		o.recompute = falling[i];
		o.memory_bytes = 0;
		assert_int_equal(trainer_new(&t, &config, &hyper, &o, &err), 0);
		for (uint32_t s = 0; s < config.n_stages; s++)
			if (stage_memory_bytes(trainer_stages(t)[s]) > largest)
				largest = stage_memory_bytes(trainer_stages(t)[s]);
		trainer_free(t);
		o.recompute = RECOMPUTE_AUTO;
		o.memory_bytes = largest;
		assert_int_equal(trainer_new(&t, &config, &hyper, &o, &err), 0);
		assert_int_equal(trainer_recompute(t), falling[i]);
		trainer_free(t);
	}
	o.memory_bytes = 1000;
	assert_int_equal(trainer_new(&t, &config, &hyper, &o, &err), -ENOMEM);
}

/* Returns the bytes of this process that are in physical memory. */
static size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %zu", &pages), 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Nearly all of the stage's memory is for slots, to which no pass has written yet. Even so, the
 * system must have given this memory already. Otherwise a lack of memory could end the process
 * during a pass. */
TEST(memory_is_there_and_not_only_promised)
{
	struct stage_options o = { .slots = 64, .batch = 16, .sequence = 80 };
	struct error err = { "" };
	size_t before = resident();
	struct stage *s;

	assert_int_equal(stage_new(&s, &config, 1, &o, &err), 0);
	/* More than 64 MiB cannot come from memory that this process already had. */
	assert_true(stage_memory_bytes(s) > 64 << 20);
	assert_true(resident() - before > stage_memory_bytes(s) * 9 / 10);
	stage_free(s);
}

TEST(levels_have_names)
{
	enum recompute level;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		assert_int_equal(recompute_parse(recompute_name(levels[i]), &level), 0);
		assert_int_equal(level, levels[i]);
	}
	assert_int_equal(recompute_parse("auto", &level), 0);
	assert_int_equal(level, RECOMPUTE_AUTO);
	assert_int_equal(recompute_parse("all", &level), -EINVAL);
}
