/* outlook_test.c - the predicted loss at the end of a run. */
#include <math.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "controller/run/outlook.h"

enum { N = 400 };

static void curve(double *at, double *loss, double noise)
{
	struct rng rng;

	rng_init(&rng, 1);
	for (int i = 0; i < N; i++) {
		at[i] = i + 1;
		loss[i] = 3 - 0.2 * log(i + 1) + noise * (rng_uniform(&rng) - 0.5);
		if (i < N / 2)
			/* the prediction must not depend on the older half of the losses */
			loss[i] += 1;
	}
}

TEST(a_straight_curve_is_continued)
{
	double at[N], loss[N], end = 3 - 0.2 * log(500);
	struct outlook o;

	curve(at, loss, 0);
	assert_true(outlook_make(&o, at, loss, N, 500));
	assert_float_equal(o.trend, end, 1e-5);
	assert_true((double)o.low < 0.94 * end && (double)o.low > 0.85 * end);
	assert_true((double)o.high < 0.98 * end && (double)o.high > 0.94 * end);
}

TEST(noise_and_distance_widen_the_range)
{
	double at[N], loss[N];
	struct outlook quiet, noisy, far;

	curve(at, loss, 0.01);
	assert_true(outlook_make(&quiet, at, loss, N, 500));
	curve(at, loss, 0.5);
	assert_true(outlook_make(&noisy, at, loss, N, 500));
	assert_true(outlook_make(&far, at, loss, N, 4000));
	assert_true(noisy.high - noisy.low > 1.1f * (quiet.high - quiet.low));
	assert_true(far.high - far.low > noisy.high - noisy.low);
}

TEST(few_or_impossible_losses_give_no_range)
{
	double at[N], loss[N];
	struct outlook o;

	curve(at, loss, 0);
	assert_false(outlook_make(&o, at, loss, 14, 500));
	assert_true(outlook_make(&o, at, loss, 15, 500));
	loss[N - 1] = NAN;
	assert_false(outlook_make(&o, at, loss, N, 500));
	for (int i = 0; i < N; i++)
		loss[i] = -1;
	assert_false(outlook_make(&o, at, loss, N, 500));
	assert_false(outlook_make(&o, at, loss, 0, 500));
}
