/* Compares the sum of a stage's gradient on an emulated GPU with the same sum on the CPU. Parts,
 * sums, hashes, squares and the step must have the same bits, in all formats and for numbers that
 * are not finite. Only encoded numbers and digests may cross the bus. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sums/slices.h"
#include "base/rng.h"
#include "base/tests/test.h"
#include "model/hash.h"
#include "model/squares.h"
#include "model/stage.h"
#include "model/tests/emulated_device.h"

enum { REPLICAS_MOST = 3 };

static const struct adamw adamw = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f };

/* A sum of a stage over n replicas. Replica `on_gpu` computes on the GPU; -1: no replica does. */
struct sum {
	struct model_config config;
	struct sum_codec codec;
	uint16_t n;
	int on_gpu;
	size_t floats;
	float *gradients[REPLICAS_MOST];
	struct slices *slices[REPLICAS_MOST];
	struct slices *of_copy; /* the slices that a standby copy of the stage receives */
	struct stage *gpu;
};

struct result {
	uint64_t hashes[REPLICAS_MOST], weights;
	double squares;
};

static struct stage *make_stage(const struct sum *x, const char *device, bool only_steps)
{
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 1, .seed = 3,
				   .device = device, .only_steps = only_steps, .sums = true };
	struct stage *s = NULL;
	struct error err = { "" };

	assert_int_equal(stage_new(&s, &x->config, 0, &o, &err), 0);
	return s;
}

static struct stage *stage_of(const struct sum *x, const char *device)
{
	return make_stage(x, device, false);
}

static void send_part(struct sum *x, uint16_t from, uint32_t to)
{
	struct slices *r = x->slices[from];
	void *bytes = malloc(slices_bytes(r, to));

	assert_non_null(bytes);
	if (from == to) {
		if (x->on_gpu != from)
			slices_encode(r, to, slices_own_part(r), x->gradients[from], NULL);
		assert_int_equal(slices_own_part_in(r), 0);
	} else {
		if (x->on_gpu == from)
			assert_int_equal(slices_encode_on(r, to, bytes, x->gpu), 0);
		else
			slices_encode(r, to, bytes, x->gradients[from], NULL);
		assert_int_equal(slices_put_part(x->slices[to], from, to, 0, bytes,
						 slices_bytes(r, to)),
				 0);
	}
	free(bytes);
}

static void add_slice(struct sum *x, uint16_t k)
{
	struct slices *r = x->slices[k];

	if (x->on_gpu == k)
		assert_int_equal(slices_sum_on(r, x->gpu), 0);
	else
		slices_sum(r, NULL);
	slices_summed(r);
	assert_int_equal(slices_put_sum(x->of_copy, k, k, 0, slices_own_sum(r), slices_bytes(r, k)),
			 0);
	for (uint16_t i = 0; i < x->n; i++)
		if (i != k)
			assert_int_equal(slices_put_sum(x->slices[i], k, k, 0, slices_own_sum(r),
							slices_bytes(r, k)),
					 0);
}

static void keep_hashes(const struct sum *x, const struct slices *r, struct result *out)
{
	for (uint32_t j = 0; j < x->n; j++)
		out->hashes[j] = slices_hashes(r)[j];
}

/* Hashes the sum of replica k and makes the replica's step, on the GPU or on the CPU. */
static struct result finish(struct sum *x, uint16_t k)
{
	struct slices *r = x->slices[k];
	struct stage *s = x->on_gpu == k ? x->gpu : stage_of(x, "cpu");
	struct result out = { .squares = -1 };
	const float *sum;

	if (x->on_gpu == k) {
		assert_int_equal(slices_check_on(r, s, &out.squares), 0);
		sum = stage_summed(s);
	} else {
		slices_decode(r, NULL);
		out.squares = slices_hash(r, NULL);
		sum = slices_staging(r);
	}
	keep_hashes(x, r, &out);
	assert_int_equal(stage_step(s, sum, 0.5f, &adamw, 1), 0);
	out.weights = stage_hash(s);
	if (x->on_gpu != k)
		stage_free(s);
	return out;
}

static bool same_squares(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void compare(const struct sum *x, const struct result *a, const struct result *b)
{
	for (uint32_t j = 0; j < x->n; j++)
		assert_true(a->hashes[j] == b->hashes[j]);
	assert_true(same_squares(a->squares, b->squares));
	assert_true(a->weights == b->weights);
}

/* To hash the sum, the host gets digests and sums of squares from the device. Returns the number
 * of their bytes. */
static size_t digests_of(const struct sum *x)
{
	size_t bytes = squares_blocks(x->floats) * sizeof(double), from, n;

	for (uint32_t j = 0; j < x->n; j++) {
		slices_range(x->slices[0], j, &from, &n);
		bytes += hash_leaves(n * sizeof(float)) * HASH_DIGEST;
	}
	return bytes;
}

/* Checks the bytes that crossed the bus. To the device: the sums of the other replicas' slices,
 * and the other replicas' parts of this replica's slice. From the device: the parts for the other
 * replicas, the sum of this replica's slice, and digests. */
static void check_bytes(const struct sum *x, uint16_t k, size_t put, size_t got)
{
	struct slices *r = x->slices[k];
	size_t others = 0;

	for (uint32_t j = 0; j < x->n; j++)
		others += j != k ? slices_bytes(r, j) : 0;
	assert_int_equal(put, others + (x->n - 1u) * slices_bytes(r, k));
	assert_int_equal(got, others + slices_bytes(r, k) + digests_of(x));
}

/* Checks a standby copy on a GPU. The copy must have the replicas' result, and each slice must
 * cross the bus once, encoded. */
static void check_copy(const struct sum *x, const struct result *expected)
{
	struct stage *copy = make_stage(x, "cuda", true);
	size_t put = bytes_put, got = bytes_got, bytes = 0;
	struct result out;

	for (uint32_t j = 0; j < x->n; j++)
		bytes += slices_bytes(x->of_copy, j);
	assert_int_equal(slices_check_on(x->of_copy, copy, &out.squares), 0);
	assert_int_equal(stage_step(copy, stage_summed(copy), 0.5f, &adamw, 1), 0);
	assert_int_equal(bytes_put - put, bytes);
	assert_int_equal(bytes_got - got, digests_of(x));
	keep_hashes(x, x->of_copy, &out);
	out.weights = stage_hash(copy);
	compare(x, &out, expected);
	stage_free(copy);
}

/* Makes the sum with replica `on_gpu` on a GPU. Checks that all replicas and a standby copy have
 * the same result, and returns this result. */
static struct result make_sum(struct sum *x, int on_gpu)
{
	static const uint16_t nodes[] = { 0, 1, 2 };
	struct result first, other;
	size_t put, got;

	x->on_gpu = on_gpu;
	x->gpu = on_gpu < 0 ? NULL : stage_of(x, "cuda");
	if (x->gpu) {
		assert_true(stage_sums_on_device(x->gpu));
		memcpy(stage_gradient(x->gpu), x->gradients[on_gpu], x->floats * sizeof(float));
		stage_changed(x->gpu);
	}
	for (uint16_t i = 0; i < x->n; i++)
		assert_int_equal(slices_new(&x->slices[i], 1, 0, nodes, x->n, i, x->floats,
					    &x->codec),
				 0);
	assert_int_equal(slices_watch(&x->of_copy, 1, 0, nodes, x->n, x->floats, &x->codec), 0);
	put = bytes_put;
	got = bytes_got;
	for (uint16_t i = 0; i < x->n; i++)
		for (uint32_t j = 0; j < x->n; j++)
			send_part(x, i, j);
	for (uint16_t i = 0; i < x->n; i++)
		add_slice(x, i);
	/* The GPU's replica is checked first, because finish() also hashes weights, which moves
	 * more bytes over the bus. */
	if (x->gpu) {
		double squares;

		assert_int_equal(slices_check_on(x->slices[on_gpu], x->gpu, &squares), 0);
		check_bytes(x, (uint16_t)on_gpu, bytes_put - put, bytes_got - got);
		/* The gradient stays, so that the sum can restart. */
		assert_memory_equal(stage_gradient(x->gpu), x->gradients[on_gpu],
				    x->floats * sizeof(float));
	}
	first = finish(x, 0);
	for (uint16_t i = 1; i < x->n; i++) {
		other = finish(x, i);
		compare(x, &other, &first);
	}
	if (!x->gpu)
		check_copy(x, &first);
	for (uint16_t i = 0; i < x->n; i++)
		slices_free(x->slices[i]);
	slices_free(x->of_copy);
	stage_free(x->gpu);
	return first;
}

static void fill(struct sum *x, bool finite)
{
	static const float odd[] = { NAN,   INFINITY, -INFINITY, 1e-40f,
				     -0.0f, 1e38f,    3e38f,     -1e-30f };
	struct rng rng;

	rng_init(&rng, 21);
	for (int i = 0; i < REPLICAS_MOST; i++)
		for (size_t k = 0; k < x->floats; k++) {
			bool is_odd = !finite && k % 101 == 5;

			/* Some sums add infinities of both signs. The result is NaN, and must
			 * have the same sign bit as on the CPU. */
			x->gradients[i][k] = is_odd ? odd[(k / 101 + (size_t)i) % 8]
						    : (float)rng_normal(&rng);
		}
}

static void check_sums(uint32_t vocab, uint16_t n, enum tensor_format format, bool finite)
{
	struct sum x = { .n = n,
			 .config = { .vocab = vocab, .dim = 24, .n_layers = 2, .n_heads = 4,
				     .n_kv_heads = 2, .ffn_dim = 20, .context = 8,
				     .n_stages = 2, .rope_theta = 10000, .norm_eps = 1e-5f,
				     .init_std = 0.1f } };
	struct sum_codec *codecs;
	struct stage *s = stage_of(&x, "cpu");
	struct result here, there;

	x.floats = stage_parameters(s);
	stage_free(s);
	assert_int_equal(sum_codecs_new(&codecs, &x.config, format, NULL), 0);
	x.codec = codecs[0];
	for (int i = 0; i < REPLICAS_MOST; i++)
		x.gradients[i] = malloc(x.floats * sizeof(float));
	fill(&x, finite);
	here = make_sum(&x, -1);
	assert_true(isfinite(here.squares) == finite);
	for (int k = 0; k < n; k++) {
		there = make_sum(&x, k);
		compare(&x, &there, &here);
	}
	for (int i = 0; i < REPLICAS_MOST; i++)
		free(x.gradients[i]);
	sum_codecs_free(codecs);
}

static const enum tensor_format formats[] = { FORMAT_FP32, FORMAT_BF16, FORMAT_Q8, FORMAT_Q6,
					      FORMAT_Q4 };

TEST(test_sums_have_the_cpus_bits)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		for (uint16_t n = 1; n <= REPLICAS_MOST; n++)
			check_sums(41, n, formats[i], true);
}

/* With several replicas, encoded parts that are not finite are refused. Other formats than fp32 are
 * therefore tested with one replica. */
TEST(test_numbers_that_are_not_finite_have_the_cpus_bits)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		check_sums(41, 1, formats[i], false);
	check_sums(41, 3, FORMAT_FP32, false);
}

/* Tensors longer than a piece of pinned memory are cut into blocks. */
TEST(test_long_tensors_have_the_cpus_bits)
{
	check_sums(100003, 2, FORMAT_Q6, true);
}
