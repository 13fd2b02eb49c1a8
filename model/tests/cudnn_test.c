/* Tests the graphs that cuDNN's attention is made of, and the choice of code for them, with an
 * emulation of cuDNN. */
#include <errno.h>

#include "model/tests/emulated_cudnn.h"

enum { T = 7, SIZE = 16, HEADS = 4, BATCH = 3, KV_MOST = HEADS, ROWS = BATCH * T };

/* Attention's arrays. Numbers that are not written are NaN. */
struct room {
	int64_t kv, stride;
	uint16_t qkv[ROWS * (HEADS + 2 * KV_MOST) * SIZE];
	uint16_t dqkv[ROWS * (HEADS + 2 * KV_MOST) * SIZE];
	uint16_t out[ROWS * HEADS * SIZE], dout[ROWS * HEADS * SIZE];
	float lse[BATCH * HEADS * T], dot[BATCH * HEADS * T];
};

static const float scale = 0.25f;

static float random_number(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return (float)(*state >> 8) / (float)(1 << 23) - 1;
}

static void fill(uint16_t *to, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		to[i] = float_to_bf16(random_number(&seed));
}

static struct room *room_new(int64_t kv)
{
	struct room *r = malloc(sizeof(*r));

	memset(r, 0xff, sizeof(*r));
	r->kv = kv;
	r->stride = (HEADS + 2 * kv) * SIZE;
	fill(r->qkv, (size_t)(ROWS * r->stride), 1);
	fill(r->dout, (size_t)ROWS * HEADS * SIZE, 2);
	return r;
}

/* Returns an element of qkv or dqkv in row (b, t); column: index among the head's columns. */
static double at(const struct room *r, const uint16_t *x, int64_t b, int64_t t, int64_t head,
		 int64_t column)
{
	return (double)bf16_to_float(x[(b * T + t) * r->stride + head * SIZE + column]);
}

static double score(const struct room *r, int64_t b, int64_t h, int64_t i, int64_t j)
{
	double s = 0;

	for (int64_t c = 0; c < SIZE; c++)
		s += at(r, r->qkv, b, i, h, c) *
		     at(r, r->qkv, b, j, HEADS + h / (HEADS / r->kv), c);
	return s * (double)scale;
}

/* Computes a row of outputs and the log-sum-exp of its scores; p: the probabilities. */
static double row_of(const struct room *r, int64_t b, int64_t h, int64_t i, double out[SIZE],
		     double p[T])
{
	double sum = 0;

	for (int64_t j = 0; j <= i; j++)
		sum += p[j] = exp(score(r, b, h, i, j));
	for (int64_t c = 0; c < SIZE; c++)
		out[c] = 0;
	for (int64_t j = 0; j <= i; j++) {
		p[j] /= sum;
		for (int64_t c = 0; c < SIZE; c++)
			out[c] +=
				p[j] * at(r, r->qkv, b, j, HEADS + r->kv + h / (HEADS / r->kv), c);
	}
	return log(sum);
}

/* Computes the gradient of qkv with plain loops. */
static void gradient(const struct room *r, double *to)
{
	const int64_t share = HEADS / r->kv;

	memset(to, 0, sizeof(*to) * (size_t)(ROWS * r->stride));
	for (int64_t n = 0; n < BATCH * HEADS * T; n++) {
		int64_t b = n / T / HEADS, h = n / T % HEADS, i = n % T;
		double out[SIZE], p[T], dot = 0, dout[SIZE];

		row_of(r, b, h, i, out, p);
		for (int64_t c = 0; c < SIZE; c++) {
			dout[c] = (double)bf16_to_float(
				r->dout[((b * T + i) * HEADS + h) * SIZE + c]);
			dot += dout[c] * out[c];
		}
		for (int64_t j = 0; j <= i; j++) {
			double *row = to + (b * T + j) * r->stride, dp = 0, ds;
			double *dk = row + (HEADS + h / share) * SIZE;
			double *dv = row + (HEADS + r->kv + h / share) * SIZE;
			double *dq = to + (b * T + i) * r->stride + h * SIZE;

			for (int64_t c = 0; c < SIZE; c++)
				dp += dout[c] * at(r, r->qkv, b, j, HEADS + r->kv + h / share, c);
			ds = p[j] * (dp - dot) * (double)scale;
			for (int64_t c = 0; c < SIZE; c++) {
				dv[c] += p[j] * dout[c];
				dk[c] += ds * at(r, r->qkv, b, i, h, c);
				dq[c] += ds * at(r, r->qkv, b, j, HEADS + h / share, c);
			}
		}
	}
}

static struct cudnn_shape shape_of(int64_t kv)
{
	return (struct cudnn_shape){ BATCH, T, HEADS, kv, SIZE, (HEADS + 2 * kv) * SIZE };
}

static void run(struct cudnn *c, enum cudnn_pass pass, struct room *r)
{
	static char workspace[512];
	struct error err = { "" };
	const struct cudnn_arrays arrays = { r->qkv, r->dout, r->out,    r->lse,
					     r->dot, r->dqkv, workspace, scale };

	assert_true(cudnn_workspace(c) <= sizeof(workspace));
	assert_int_equal(cudnn_run(c, pass, &arrays, &err), 0);
}

/* A bf16 number has 8 bits, and a sum here has up to T * HEADS such numbers. */
static void near(double got, double wanted)
{
	if (!(fabs(got - wanted) < 0.02 * (1 + fabs(wanted))))
		fail_msg("got %g, expected %g", got, wanted);
}

static void check_passes(int64_t kv)
{
	struct room *r = room_new(kv);
	double *wanted = malloc(sizeof(*wanted) * (size_t)(ROWS * r->stride));
	const struct cudnn_shape shape = shape_of(kv);
	struct error err = { "" };
	int stream;
	struct cudnn *c;

	assert_int_equal(cudnn_open(&c, &fake_functions, &stream, &err), 0);
	assert_ptr_equal(fake.stream, &stream);
	assert_int_equal(cudnn_plan(c, &shape, &err), 0);
	run(c, CUDNN_FORWARD, r);
	for (int64_t n = 0; n < BATCH * HEADS * T; n++) {
		int64_t b = n / T / HEADS, h = n / T % HEADS, i = n % T;
		double out[SIZE], p[T];

		near((double)r->lse[n], row_of(r, b, h, i, out, p));
		for (int64_t k = 0; k < SIZE; k++)
			near((double)bf16_to_float(r->out[((b * T + i) * HEADS + h) * SIZE + k]),
			     out[k]);
	}
	run(c, CUDNN_BACKWARD, r);
	gradient(r, wanted);
	for (int64_t i = 0; i < ROWS * r->stride; i++)
		near((double)bf16_to_float(r->dqkv[i]), wanted[i]);
	cudnn_close(c);
	assert_int_equal(fake.alive, 0);
	free(wanted);
	free(r);
}

TEST(graphs_define_causal_attention)
{
	check_passes(HEADS);
}

TEST(heads_may_share_keys_and_values)
{
	check_passes(HEADS / 2);
	check_passes(1);
}

/* A backward pass stores the gradients of scores. Long sequences are computed one by one, so that
 * memory for the scores of one sequence suffices. */
TEST(long_sequences_are_computed_in_turn)
{
	const struct cudnn_shape shape = { 4, 4096, 16, 16, 128, 6144 };
	struct error err = { "" };
	/* The emulation does not use the arrays' contents here. */
	static _Alignas(16) uint16_t memory[8];
	const struct cudnn_arrays arrays = { memory, memory, memory, memory,
					     memory, memory, memory, 1 };
	const size_t sequence = 4096 * 16 * 128 * sizeof(uint16_t);
	struct cudnn *c;

	fake.idle = true;
	fake.executions = 0;
	assert_int_equal(cudnn_open(&c, &fake_functions, NULL, &err), 0);
	assert_int_equal(cudnn_plan(c, &shape, &err), 0);
	assert_int_equal(cudnn_run(c, CUDNN_FORWARD, &arrays, &err), 0);
	assert_int_equal(fake.executions, 1);
	assert_int_equal(fake.batch, 4);
	fake.executions = 0;
	assert_int_equal(cudnn_run(c, CUDNN_BACKWARD, &arrays, &err), 0);
	assert_int_equal(fake.executions, 4);
	assert_int_equal(fake.batch, 1);
	/* The first operation multiplies the outputs by their gradients. */
	for (size_t i = 0; i < 4; i++)
		assert_ptr_equal(fake.first[i], (const char *)arrays.dout + i * sequence);
	cudnn_close(c);
	fake.idle = false;
}

/* Code with different bits in each run is passed over, however fast it is. */
TEST(only_deterministic_code_is_chosen)
{
	const struct cudnn_shape shape = shape_of(HEADS);
	struct error err = { "" };
	struct cudnn *c;
	char text[64];

	fake.proposals = 3;
	fake.deterministic = 2;
	assert_int_equal(cudnn_open(&c, &fake_functions, NULL, &err), 0);
	assert_int_equal(cudnn_plan(c, &shape, &err), 0);
	cudnn_text(c, text, sizeof(text));
	assert_string_equal(text, "cuDNN 92800:102:102");
	assert_int_equal(cudnn_workspace(c), 258);
	fake.deterministic = 3;
	assert_int_equal(cudnn_plan(c, &shape, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "cuDNN proposes 3 kinds of code for attention"));
	cudnn_close(c);
	assert_int_equal(fake.alive, 0);
	fake.proposals = 1;
	fake.deterministic = 0;
}

/* Code can be chosen for a card that is not there, from cuDNN's description of the card. */
TEST(a_device_may_be_described)
{
	const struct cudnn_shape shape = shape_of(HEADS);
	struct error err = { "" };
	struct cudnn *c = NULL;
	char text[64];

	assert_int_equal(cudnn_open_described(&c, &fake_functions, "{}", &err), 0);
	assert_int_equal(cudnn_plan(c, &shape, &err), 0);
	cudnn_text(c, text, sizeof(text));
	assert_string_equal(text, "cuDNN 92800:100:100");
	cudnn_close(c);
	assert_int_equal(fake.alive, 0);
}

/* Earlier versions have known defects (cudnn.h). */
TEST(old_versions_are_refused)
{
	struct error err = { "" };
	struct cudnn *c = NULL;

	fake.version = 91800;
	assert_int_equal(cudnn_open(&c, &fake_functions, NULL, &err), -ENOTSUP);
	assert_string_equal(err.text, "cuDNN is version 9.18.0: attention needs 9.18.1 or later");
	assert_null(c);
	fake.version = 91801;
	assert_int_equal(cudnn_open(&c, &fake_functions, NULL, &err), 0);
	cudnn_close(c);
	fake.version = 92800;
}

/* Whichever call cuDNN refuses, the error has its reason and no descriptor is lost. */
TEST(refusals_are_reported)
{
	const struct cudnn_shape shape = shape_of(HEADS);
	int refused = 0;

	for (fake.fail_at = 1; refused < fake.fail_at; fake.fail_at++) {
		struct error err = { "" };
		struct cudnn *c = NULL;
		int rc;

		fake.calls = 0;
		rc = cudnn_open(&c, &fake_functions, NULL, &err);
		if (rc == 0)
			rc = cudnn_plan(c, &shape, &err);
		if (rc == 0) {
			cudnn_close(c);
			break;
		}
		refused++;
		assert_true(strstr(err.text, "because of the test") ||
			    strstr(err.text, "none of them is"));
		assert_null(strstr(err.text, "second line"));
		cudnn_close(c);
		assert_int_equal(fake.alive, 0);
	}
	assert_true(refused > 100);
	fake.fail_at = 0;
}
