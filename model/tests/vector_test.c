/* Compares every instruction set's operations with libm in double. stage_test.c checks gradients
 * with the best set; here all sets must agree, at lengths that are no multiple of their vectors.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "model/vector/vector.h"

enum { MOST = 200 };

static void fill(struct rng *r, float *x, size_t n, double spread)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (float)(spread * rng_normal(r));
}

static void near(double got, double want, double scale)
{
	if (!(fabs(got - want) <= 3e-6 * scale))
		fail_msg("%.9g, expected %.9g", got, want);
}

TEST(cross_entropy_and_its_gradient)
{
	struct rng r;

	rng_init(&r, 1);
	for (size_t set = 0; vector_ops_at(set); set++)
		for (size_t n = 1; n < MOST; n += 7) {
			float x[MOST], loss;
			double sum = 0, p[MOST];
			size_t target = n / 2;

			fill(&r, x, n, 10);
			for (size_t i = 0; i < n; i++)
				sum += exp((double)x[i]);
			for (size_t i = 0; i < n; i++)
				p[i] = exp((double)x[i]) / sum;
			loss = vector_ops_at(set)->cross_entropy(x, n, (int32_t)target, 0.25f);
			near((double)loss, -log(p[target]), 1 + fabs(log(p[target])));
			for (size_t i = 0; i < n; i++)
				near((double)x[i], 0.25 * (p[i] - (i == target)), 0.25);
			assert_true(vector_ops_at(set)->cross_entropy(x, n, -1, 1) == 0);
			assert_true(x[n - 1] == 0);
		}
}

TEST(activation_far_from_zero)
{
	static const float extremes[] = { 0, -0.0f, 1e-6f, -20, 20, -87, 87, -200, 200 };

	for (size_t set = 0; vector_ops_at(set); set++)
		for (size_t i = 0; i < sizeof(extremes) / sizeof(extremes[0]); i++) {
			float gu[2] = { extremes[i], 2 }, h, dgu[2], dh = 1;
			double g = (double)gu[0], sigma = 1 / (1 + exp(-g));

			vector_ops_at(set)->swiglu(&h, gu, 1, 1);
			near((double)h, 2 * g * sigma, 1 + fabs(2 * g * sigma));
			vector_ops_at(set)->swiglu_backward(dgu, &h, &dh, gu, 1, 1);
			if (fabs(g) <= 200) {
				near((double)dgu[0], 2 * (sigma + g * sigma * (1 - sigma)), 3);
				near((double)dgu[1], g * sigma, 1 + fabs(g * sigma));
			}
		}
}

TEST(norms)
{
	struct rng r;

	rng_init(&r, 2);
	for (size_t set = 0; vector_ops_at(set); set++)
		for (size_t n = 1; n < MOST; n += 13) {
			float x[2 * MOST], y[2 * MOST], again[2 * MOST], w[MOST], rstd[2];

			fill(&r, x, 2 * n, 3);
			fill(&r, w, n, 1);
			vector_ops_at(set)->norm(y, rstd, x, w, 2, n, 1e-5f);
			vector_ops_at(set)->norm_again(again, rstd, x, w, 2, n);
			assert_memory_equal(y, again, 2 * n * sizeof(*y));
			for (size_t row = 0; row < 2; row++) {
				double sum = 0;

				for (size_t i = 0; i < n; i++)
					sum += (double)x[row * n + i] * (double)x[row * n + i];
				for (size_t i = 0; i < n; i++) {
					double want = (double)x[row * n + i] * (double)w[i] /
						      sqrt(sum / (double)n + 1e-5);

					near((double)y[row * n + i], want, 1 + fabs(want));
				}
			}
		}
}

/* A softmax over two tiles equals the softmax over all columns, and columns beyond `seen` have no
 * effect.
 */
TEST(softmax_in_tiles)
{
	enum { ROWS = 5, A = 24, B = 11 };
	struct rng r;

	rng_init(&r, 3);
	for (size_t set = 0; vector_ops_at(set); set++) {
		float a[ROWS * A], b[ROWS * B], most[ROWS], sum[ROWS], shrink[ROWS];
		double all[ROWS][A + B], total[ROWS] = { 0 };
		struct score_tile first = { a, ROWS, A, A, 0.5f };
		struct score_tile second = { b, ROWS, B, 3, 0.5f };

		fill(&r, a, ROWS * A, 4);
		fill(&r, b, ROWS * B, 4);
		for (size_t i = 0; i < ROWS; i++) {
			most[i] = -INFINITY;
			sum[i] = 0;
			for (size_t k = 0; k < A + B; k++) {
				float s = k < A ? a[i * A + k] : b[i * B + k - A];

				all[i][k] = k < A + 3 + i ? exp(0.5 * (double)s) : 0;
				total[i] += all[i][k];
			}
		}
		vector_ops_at(set)->softmax_tile(&first, most, sum, shrink);
		vector_ops_at(set)->softmax_tile(&second, most, sum, shrink);
		for (size_t i = 0; i < ROWS; i++) {
			near((double)most[i] + log((double)sum[i]), log(total[i]), 5);
			for (size_t k = 0; k < B; k++)
				near((double)b[i * B + k] / (double)sum[i],
				     all[i][A + k] / total[i], 1);
			for (size_t k = 0; k < A; k++)
				near((double)(a[i * A + k] * shrink[i]) / (double)sum[i],
				     all[i][k] / total[i], 1);
		}
	}
}

TEST(bf16_rounds_to_even)
{
	/* The first row is 1 plus some steps of bf16: 0 steps; 0.5, which rounds down to even; 1.5,
	 * which rounds up to even; and a little more than 0.5, which rounds up. */
	static const float x[2][4] = { { 1, 0x1.01p0f, 0x1.03p0f, 0x1.010002p0f },
				       { -2.5f, 0, 0x1p-126f, 3e38f } };
	static const uint16_t want[2][3] = { { 0x3f80, 0x3f80, 0x3f82 },
					     { 0xc020, 0, 0x0080 } };
	uint16_t got[2][3];

	for (size_t set = 0; vector_ops_at(set); set++) {
		memset(got, 0xff, sizeof(got));
		vector_ops_at(set)->to_bf16(&got[0][0], &x[0][0], 4, 2, 3);
		assert_memory_equal(got, want, sizeof(got));
		vector_ops_at(set)->to_bf16(&got[0][0], &x[0][3], 1, 1, 1);
		assert_int_equal(got[0][0], 0x3f81);
	}
}

TEST(the_best_comes_first)
{
	assert_ptr_equal(vector_ops(), vector_ops_at(0));
	assert_null(vector_ops_at(3));
}
