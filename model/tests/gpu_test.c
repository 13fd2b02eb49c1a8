/* A real GPU against the CPU: every gradient, the step, and the same bits twice. Skipped,
 * aloud, where there is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "model/trainer.h"

enum { B = 2, T = 96, ROWS = B * T };

static const struct model_config configs[] = {
	{ 300, 192, 4, 3, 1, 160, 128, 2, 10000, 1e-5f, 0.08f, false },
	{ 500, 256, 2, 2, 2, 320, 128, 2, 10000, 1e-5f, 0.08f, true },
};

static const uint32_t path[] = { 1 };

static void fill(const struct model_config *c, int32_t *tokens, int32_t *targets)
{
	struct rng r;

	rng_init(&r, 2);
	for (int i = 0; i < ROWS; i++) {
		tokens[i] = (int32_t)rng_below(&r, c->vocab);
		targets[i] = (int32_t)rng_below(&r, c->vocab);
	}
	targets[5] = -1;
}

/* NULL where there is no GPU. */
static struct trainer *trainer_on(const char *device, const struct model_config *c)
{
	struct recipe recipe = { .adamw = { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f }, .clip = 1 };
	struct stage_options o = {
		.batch = B, .sequence = T, .threads = 2, .seed = 3, .device = device
	};
	struct trainer *t = NULL;
	struct error err = { "" };
	int rc = trainer_new(&t, c, &recipe, &o, &err);

	if (rc == -ENODEV) {
		printf("no GPU test: %s\n", err.text);
		return NULL;
	}
	if (rc)
		fail_msg("%s", err.text);
	return t;
}

static void close_to(const char *name, const float *gpu, const float *cpu, size_t n)
{
	double difference = 0, size = 0;

	for (size_t i = 0; i < n; i++) {
		double d = (double)gpu[i] - (double)cpu[i];

		difference += d * d;
		size += (double)cpu[i] * (double)cpu[i];
	}
	if (!(sqrt(difference) <= 1e-4 * sqrt(size)))
		fail_msg("%s: relative error %.3g", name, sqrt(difference / size));
}

static void compare(struct trainer *gpu, struct trainer *cpu, uint32_t stages,
		    float *(*array)(struct stage *))
{
	for (uint32_t s = 0; s < stages; s++) {
		size_t n;
		const struct tensor *t = stage_tensors(trainer_stages(cpu)[s], &n);
		const float *g = array(trainer_stages(gpu)[s]);
		const float *c = array(trainer_stages(cpu)[s]);

		for (size_t i = 0; i < n; i++)
			close_to(t[i].name, g + t[i].offset, c + t[i].offset, t[i].count);
	}
}

static void the_gpu_agrees_with_the_cpu(void **state)
{
	int32_t tokens[ROWS], targets[ROWS];

	(void)state;
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		const struct model_config *c = &configs[i];
		struct trainer *gpu = trainer_on("cuda", c), *cpu;
		float loss[2];
		double norm;

		if (!gpu)
			skip();
		cpu = trainer_on("cpu", c);
		fill(c, tokens, targets);
		trainer_microbatch(gpu, path, 1, tokens, targets, &loss[0]);
		trainer_microbatch(cpu, path, 1, tokens, targets, &loss[1]);
		assert_true(fabsf(loss[0] - loss[1]) < 1e-5f * loss[1]);
		compare(gpu, cpu, c->n_stages, stage_gradient);
		trainer_step(gpu, 1, GRAD_NORM_MICROBATCHES, &norm);
		trainer_step(cpu, 1, GRAD_NORM_MICROBATCHES, &norm);
		compare(gpu, cpu, c->n_stages, stage_moment1);
		trainer_free(gpu);
		trainer_free(cpu);
	}
}

static void the_gpu_repeats_itself(void **state)
{
	int32_t tokens[ROWS], targets[ROWS];
	uint64_t hash[2][2];

	(void)state;
	fill(&configs[0], tokens, targets);
	for (int i = 0; i < 2; i++) {
		struct trainer *t = trainer_on("cuda", &configs[0]);
		double norm;
		float loss;

		if (!t)
			skip();
		for (uint64_t step = 1; step <= 3; step++) {
			trainer_microbatch(t, path, 1, tokens, targets, &loss);
			trainer_step(t, step, GRAD_NORM_MICROBATCHES, &norm);
		}
		for (int s = 0; s < 2; s++)
			hash[i][s] = stage_hash(trainer_stages(t)[s]);
		trainer_free(t);
	}
	assert_true(hash[0][0] == hash[1][0] && hash[0][1] == hash[1][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_gpu_agrees_with_the_cpu),
		cmocka_unit_test(the_gpu_repeats_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
