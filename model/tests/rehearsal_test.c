/* Tests rehearsals. The model has 1/divisor of the bytes, the results of the device "pretend"
 * depend on all inputs, and a rehearsal's model is refused for training. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/files/checkpoint.h"
#include "model/rehearsal/rehearsal.h"
#include "model/stage.h"
#include "model/tensor.h"

enum { B = 2, T = 5 };

static bool near(double a, double b, double part)
{
	return fabs(a - b) <= part * b;
}

static size_t *count_parameters(const struct model_config *c)
{
	size_t *n = calloc(c->n_stages, sizeof(*n));
	struct tensor_table t;

	assert_int_equal(tensor_table_new(&t, c, NULL), 0);
	for (uint32_t s = 0; s < c->n_stages; s++)
		n[s] = tensor_table_parameters(&t, s);
	tensor_table_free(&t);
	return n;
}

TEST(the_model_of_a_rehearsal_has_its_part_of_the_bytes)
{
	static const char *const presets[] = { "500m", "1.5b", "7b" };
	static const uint32_t divisors[] = { 1, 10, 100, 300, 1000 };

	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 5; k++) {
			struct model_config real, c;
			struct hyperparameters real_hyper, r;
			size_t *a, *b;
			struct error err;

			model_preset(presets[i], &real, &real_hyper, NULL);
			c = real;
			r = real_hyper;
			rehearsal_shrink(&c, &r, divisors[k]);
			assert_int_equal(model_config_check(&c, &err), 0);
			assert_int_equal(hyper_check(&r, &c, &err), 0);
			assert_int_equal(c.rehearsal, divisors[k]);
			assert_int_equal(c.dim % 32, 0);
			a = count_parameters(&real);
			b = count_parameters(&c);
			for (uint32_t s = 0; s < c.n_stages; s++)
				assert_true(near((double)b[s] * divisors[k], (double)a[s], 0.05));
			assert_true(near((double)r.batch * r.sequence * c.dim * divisors[k],
					 (double)real_hyper.batch * real_hyper.sequence * real.dim,
					 0.05));
			free(a);
			free(b);
		}
}

TEST(the_smallest_model_stays_valid)
{
	struct model_config c;
	struct hyperparameters r;
	struct error err;

	model_preset("tiny", &c, &r, NULL);
	rehearsal_shrink(&c, &r, REHEARSAL_MOST);
	assert_int_equal(model_config_check(&c, &err), 0);
	assert_int_equal(hyper_check(&r, &c, &err), 0);
}

static struct model_config small_model(void)
{
	struct model_config c;

	model_preset("tiny", &c, NULL, NULL);
	c.n_layers = c.n_stages = 2;
	c.rehearsal = 7;
	return c;
}

static struct stage *pretending(uint32_t index)
{
	struct model_config c = small_model();
	struct stage_options o = { .slots = 2, .batch = B, .sequence = T, .seed = 3,
				   .device = "pretend" };
	struct stage *s;
	struct error err;

	assert_int_equal(stage_new(&s, &c, index, &o, &err), 0);
	return s;
}

TEST(only_rehearsals_pretend)
{
	struct model_config c = small_model();
	struct stage_options o = { .batch = 1, .sequence = 1, .device = "cpu" };
	struct stage *s;
	struct error err;

	assert_int_equal(stage_new(&s, &c, 0, &o, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rehearsal"));
	o.device = "pretend";
	c.rehearsal = 0;
	assert_int_equal(stage_new(&s, &c, 0, &o, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rehearsal"));
}

/* Runs one microbatch through both stages, adds its gradient `times` times, makes a step, and gives
 * the hashes. */
static void train_once(uint64_t hashes[2], int32_t token, float input_error, int times)
{
	struct stage *a = pretending(0), *b = pretending(1);
	size_t n = stage_activation(a);
	float *x = calloc(n, sizeof(*x)), *y = calloc(n, sizeof(*y)), *z = calloc(n, sizeof(*z));
	struct adamw h = { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f };
	int32_t tokens[B * T];
	float loss = 1;

	for (int i = 0; i < B * T; i++)
		tokens[i] = token + i;
	for (int k = 0; k < times; k++) {
		assert_int_equal(stage_forward(a, 0, tokens, NULL, x, true), 0);
		x[n / 2] += input_error;
		assert_int_equal(stage_forward(b, 1, NULL, x, y, true), 0);
		assert_int_equal(stage_loss(a, 0, y, tokens, &loss, z, true), 0);
		assert_true(loss == 0);
		assert_int_equal(stage_backward(b, 1, z, x, true), 0);
		assert_int_equal(stage_backward(a, 0, x, NULL, true), 0);
	}
	for (size_t i = 0; i < stage_parameters(b); i++)
		assert_true(isfinite(stage_gradient(b)[i]));
	assert_int_equal(stage_step(a, NULL, 1, &h, 1), 0);
	assert_int_equal(stage_step(b, NULL, 1, &h, 1), 0);
	hashes[0] = stage_hash(a);
	hashes[1] = stage_hash(b);
	free(x);
	free(y);
	free(z);
	stage_free(a);
	stage_free(b);
}

TEST(reading_a_gradient_between_microbatches_changes_no_bit)
{
	struct stage *read = pretending(1), *unread = pretending(1);
	size_t n = stage_activation(read), p = stage_parameters(read);
	float *x = calloc(n, sizeof(*x)), *out = calloc(n, sizeof(*out));

	assert_true(p > n);
	for (int pass = 0; pass < 2; pass++) {
		for (int k = 0; k < 3; k++) {
			for (size_t i = 0; i < n; i++)
				x[i] = (float)(i + 1) * 0.3f - (float)k;
			assert_int_equal(stage_forward(read, 0, NULL, x, out, true), 0);
			assert_int_equal(stage_forward(unread, 0, NULL, x, out, true), 0);
			assert_int_equal(stage_backward(read, 0, x, out, true), 0);
			assert_int_equal(stage_backward(unread, 0, x, out, true), 0);
			assert_true(stage_gradient(read)[p - 1] != 0);
		}
		assert_memory_equal(stage_gradient(read), stage_gradient(unread), p * sizeof(*x));
		assert_int_equal(stage_zero_gradient(read), 0);
		assert_int_equal(stage_zero_gradient(unread), 0);
		if (pass)
			assert_true(stage_gradient(read)[p - 1] == 0);
	}
	free(x);
	free(out);
	stage_free(read);
	stage_free(unread);
}

TEST(weights_show_a_lost_repeated_or_damaged_tensor)
{
	uint64_t right[2], again[2], other[2];

	train_once(right, 10, 0, 2);
	train_once(again, 10, 0, 2);
	assert_memory_equal(right, again, sizeof(right));
	train_once(other, 11, 0, 2); /* trains on other data */
	assert_true(other[0] != right[0] && other[1] != right[1]);
	train_once(other, 10, 1e-3f, 2); /* damages an activation */
	assert_true(other[0] != right[0] && other[1] != right[1]);
	train_once(other, 10, 0, 3); /* adds a gradient once too often */
	assert_true(other[0] != right[0] && other[1] != right[1]);
}

TEST(memory_does_not_depend_on_the_microbatches)
{
	struct stage *s = pretending(1);

	assert_int_equal(stage_host_bytes(s), 4 * sizeof(float) * stage_parameters(s));
	stage_free(s);
}

TEST(nothing_reads_a_checkpoint_as_a_model)
{
	struct stage *stages[2] = { pretending(0), pretending(1) };
	struct checkpoint c = { .config = small_model() }, back;
	char folder[] = "/tmp/rehearsal_test.XXXXXX", command[64];
	struct error err;

	model_preset("tiny", NULL, &c.hyper, NULL);
	assert_non_null(mkdtemp(folder));
	assert_int_equal(checkpoint_write(folder, &c, stages, &err), 0);
	assert_int_equal(checkpoint_read(folder, &back, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rehearsal"));
	assert_int_equal(checkpoint_read_stage(folder, stages[0], &err), -EINVAL);
	assert_non_null(strstr(err.text, "rehearsal"));
	stage_free(stages[0]);
	stage_free(stages[1]);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}
