/* Tests the operations that replicas make between a gradient's sum and the next weights. Every
 * instruction set of this machine and the GPU's kernels must give the same bits. The expected bits
 * are those of single operations, each rounded correctly. Any 32 bits may be an input. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/vector/vector.h"

#include "base/tests/test.h"
#include "model/tests/emulated_device.h"

enum { N = 1 << 20 };

static const float specials[] = { 0,      -0.0f,      1,           -1,           0x1p-149f,
				  -0x1p-149f, 0x1p-126f,  0x1.fffffep-127f, 0x1.fffffep127f,
				  INFINITY,   -INFINITY, NAN,         1e-30f,       -3e38f };

/* Returns a random value. A quarter of the values have any pattern of bits, an eighth are special
 * values, the rest are as in training. */
static float draw(struct rng *r, double spread)
{
	uint64_t bits = rng_next(r);

	switch (bits >> 62) {
	case 0:
		return float_of((uint32_t)bits);
	case 1:
		if (bits & 1)
			return specials[(bits >> 1) % (sizeof(specials) / sizeof(*specials))];
		/* fall through */
	default:
		return (float)(spread * rng_normal(r));
	}
}

static float *drawn(uint64_t seed, double spread)
{
	float *x = malloc(N * sizeof(*x));
	struct rng r;

	rng_init(&r, seed);
	for (size_t i = 0; i < N; i++)
		x[i] = draw(&r, spread);
	return x;
}

static float *copy_of(const float *x)
{
	float *to = malloc(N * sizeof(*to));

	memcpy(to, x, N * sizeof(*to));
	return to;
}

static void same_bits(const char *what, const char *set, const float *got, const float *want)
{
	for (size_t i = 0; i < N; i++)
		if (bits_of(got[i]) != bits_of(want[i]))
			fail_msg("%s by %s: number %zu is %a (%08x), expected %a (%08x)", what, set,
				 i, (double)got[i], bits_of(got[i]), (double)want[i],
				 bits_of(want[i]));
}

/* The reference computes each operation in double and rounds it to float. A product of two floats
 * is exact in double, and for sums, quotients and roots the second rounding changes nothing (53
 * bits are more than twice 24 plus 2; Figueroa, 1995). */
static float tidy(float x)
{
	return isnan(x) ? float_of(0x7fc00000) : x;
}

static void reference_step(const struct adamw_factors *f, float *w, float *m, float *v, float g)
{
	float s = (float)((double)g * (double)f->scale), a, b, c, root;

	a = (float)((double)f->beta1 * (double)*m);
	b = (float)((double)f->rest1 * (double)s);
	*m = (float)((double)a + (double)b);
	a = (float)((double)f->beta2 * (double)*v);
	b = (float)((double)f->rest2 * (double)s);
	b = (float)((double)b * (double)s);
	*v = (float)((double)a + (double)b);
	a = (float)((double)*m * (double)f->unbias1);
	a = (float)((double)f->lr * (double)a);
	b = (float)((double)*v * (double)f->unbias2);
	root = (float)sqrt((double)b);
	b = (float)((double)root + (double)f->eps);
	a = (float)((double)a / (double)b);
	c = (float)((double)*w * (double)f->keep);
	*w = tidy((float)((double)c - (double)a));
	*m = tidy(*m);
	*v = tidy(*v);
}

struct state {
	float *w, *m, *v;
};

static struct state begin(void)
{
	return (struct state){ drawn(1, 0.1), drawn(2, 1e-3), drawn(3, 1e-6) };
}

static void end(struct state *s)
{
	free(s->w);
	free(s->m);
	free(s->v);
}

static void same_state(const char *set, const struct state *got, const struct state *want)
{
	same_bits("first moments", set, got->m, want->m);
	same_bits("second moments", set, got->v, want->v);
	same_bits("weights", set, got->w, want->w);
}

/* Makes two steps, so that the second step starts from the state after the first. The CPU's steps
 * are computed in pieces of odd lengths, as threads and tensors divide them. */
TEST(steps_of_adamw)
{
	struct adamw h = { 5e-3f, 0.9f, 0.95f, 1e-8f, 0.1f };
	struct adamw_factors f[2] = { adamw_factors(&h, 0.37f, 0.1f, 1),
				      adamw_factors(&h, 1e-4f, 0, 1000) };
	float *g = drawn(4, 1e-2);
	struct state want = begin();

	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < N; i++)
			reference_step(&f[t], &want.w[i], &want.m[i], &want.v[i], g[i]);
	for (size_t set = 0; vector_ops_at(set); set++) {
		struct state s = begin();

		for (int t = 0; t < 2; t++)
			for (size_t i = 0, n; i < N; i += n) {
				n = N - i < 1009 ? N - i : 1009 - i % 31;
				vector_ops_at(set)->adamw(s.w + i, s.m + i, s.v + i, g + i, n,
							  &f[t]);
			}
		same_state(vector_ops_at(set)->name, &s, &want);
		end(&s);
	}
	{
		struct state s = begin();

		block.threads = ROW_THREADS;
		for (int t = 0; t < 2; t++) {
			struct adamw_args a = { s.w, s.m, s.v, g, N, f[t] };

			/* The kernel has no barrier, so its threads can run one after another. */
			for (block.block_x = 0; block.block_x * ROW_THREADS < N; block.block_x++)
				for (block.thread = 0; block.thread < ROW_THREADS; block.thread++)
					kernels[KERNEL_ADAMW].entry[0](&a);
		}
		same_state("the GPU's kernel", &s, &want);
		end(&s);
	}
	end(&want);
	free(g);
}

TEST(sums_of_slices)
{
	float *a = drawn(5, 1), *b = drawn(6, 1), *want = copy_of(a);

	for (size_t i = 0; i < N; i++)
		want[i] = tidy((float)((double)a[i] + (double)b[i]));
	for (size_t set = 0; vector_ops_at(set); set++) {
		float *sum = copy_of(a);

		for (size_t i = 0, n; i < N; i += n) {
			n = N - i < 777 ? N - i : 777 - i % 13;
			vector_ops_at(set)->add(sum + i, b + i, n);
		}
		same_bits("sum", vector_ops_at(set)->name, sum, want);
		free(sum);
	}
	free(a);
	free(b);
	free(want);
}

/* Returns the nearest float whose lower half is zero. If two are equally near, returns the even
 * number. */
static uint16_t reference_bf16(float x)
{
	uint32_t low = bits_of(x) & 0xffff0000, high = low + 0x10000;
	double below, above;

	if (isnan(x))
		return 0x7fc0;
	below = fabs((double)x - (double)float_of(low));
	/* The neighbour above the largest bf16 number is infinity, which counts as 2^128 here. */
	above = (high & 0x7f800000) == 0x7f800000 ? 0x1p128 - fabs((double)x)
						  : fabs((double)float_of(high) - (double)x);
	if (isinf(x) || below < above || (below == above && !(low & 0x10000)))
		return (uint16_t)(low >> 16);
	return (uint16_t)(high >> 16);
}

TEST(rounding_to_bf16)
{
	float *x = drawn(7, 1);
	uint16_t *got = malloc(N * sizeof(*got));

	for (size_t set = 0; vector_ops_at(set); set++) {
		vector_ops_at(set)->to_bf16(got, x, 1024, N / 1024, 1024);
		for (size_t i = 0; i < N; i++)
			if (got[i] != reference_bf16(x[i]))
				fail_msg("%s: %08x became %04x, expected %04x",
					 vector_ops_at(set)->name, bits_of(x[i]), got[i],
					 reference_bf16(x[i]));
	}
	for (size_t i = 0; i < N; i++)
		assert_int_equal(to_bf16(x[i]), reference_bf16(x[i]));
	free(x);
	free(got);
}

/* Compares the factors with the C library's results, which are correct to about the last bit. */
TEST(factors)
{
	struct adamw h = { 5e-3f, 0.9f, 0.999f, 1e-8f, 0.1f };

	for (uint64_t t = 1; t < 100000; t = t * 3 / 2 + 1) {
		struct adamw_factors f = adamw_factors(&h, 2, 0.1f, t);
		double u1 = 1 / (1 - pow((double)0.9f, (double)t));
		double u2 = 1 / (1 - pow((double)0.999f, (double)t));

		assert_true(fabs((double)f.unbias1 - u1) <= 1e-7 * u1);
		assert_true(fabs((double)f.unbias2 - u2) <= 1e-7 * u2);
		assert_true(f.keep == 1 - 5e-3f * 0.1f && f.rest2 == 1 - 0.999f && f.scale == 2);
	}
}
