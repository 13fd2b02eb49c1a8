/* Computes points from distances, and compares them with the points from which the distances were
 * made. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "tui/run/embedding.h"

static float apart(struct point a, struct point b)
{
	return hypotf(a.x - b.x, a.y - b.y);
}

/* Scatters n points over a rectangle of width 4 and height 1. */
static struct point *scatter(uint32_t n, uint64_t seed)
{
	struct point *points = calloc(n, sizeof(*points));
	struct rng rng;

	rng_init(&rng, seed);
	for (uint32_t i = 0; i < n; i++)
		points[i] =
			(struct point){ (float)(4 * rng_uniform(&rng)), (float)rng_uniform(&rng) };
	return points;
}

/* Returns the distances between the points: all distances below `near`, and a random share `known`
 * of the longer distances. The others are 0, which means unknown. */
static float *measure(const struct point *points, uint32_t n, double known, float near)
{
	float *d = calloc((size_t)n * n, sizeof(*d));
	struct rng rng;

	rng_init(&rng, 3);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++) {
			float length = apart(points[i], points[j]);

			if (rng_uniform(&rng) < known || length < near)
				d[i * n + j] = d[j * n + i] = length;
		}
	return d;
}

/* Returns the mean error of all distances, also the unknown ones, as a fraction of the mean
 * distance. */
static double error_of(const struct point *points, const struct point *truth, uint32_t n)
{
	double error = 0, sum = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < i; j++) {
			error += fabs(
				(double)(apart(points[i], points[j]) - apart(truth[i], truth[j])));
			sum += (double)apart(truth[i], truth[j]);
		}
	return error / sum;
}

TEST(a_plane_is_recovered)
{
	static const uint32_t counts[] = { 2, 3, 4, 20, 100, 150 };

	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		uint32_t n = counts[k];
		struct point *truth = scatter(n, 10 + k), *points = calloc(n, sizeof(*points));
		float *d = measure(truth, n, 1, 0);

		embedding_place(points, d, n);
		assert_true(error_of(points, truth, n) < 0.002);
		assert_true(points[0].x <= 0 && points[0].y <= 0);
		/* Makes up for rotation and reflection, which distances do not determine. */
		embedding_align(points, truth, n);
		for (uint32_t i = 0; i < n; i++)
			assert_true(apart(points[i], truth[i]) < 0.02f);
		free(truth);
		free(points);
		free(d);
	}
}

TEST(the_widest_direction_is_across)
{
	struct point *truth = scatter(60, 5), points[60];
	float *d = measure(truth, 60, 1, 0);
	float x = 0, y = 0;

	embedding_place(points, d, 60);
	for (int i = 0; i < 60; i++) {
		x = fmaxf(x, fabsf(points[i].x));
		y = fmaxf(y, fabsf(points[i].y));
	}
	assert_true(x > 2.5f * y);
	free(truth);
	free(d);
}

TEST(missing_distances_are_bridged)
{
	struct point *truth = scatter(80, 4), points[80];
	float *d = measure(truth, 80, 0.4, 0);

	embedding_place(points, d, 80);
	assert_true(error_of(points, truth, 80) < 0.03);
	free(truth);
	free(d);
}

/* There are a thousand points. All distances between near points are known, but only one in a
 * hundred of the other distances. */
TEST(a_thousand_points_unfold)
{
	struct point *truth = scatter(1000, 6), *points = calloc(1000, sizeof(*points));
	float *d = measure(truth, 1000, 0.01, 0.25f);

	embedding_place(points, d, 1000);
	assert_true(error_of(points, truth, 1000) < 0.05);
	free(truth);
	free(points);
	free(d);
}

static double stress_of(const struct point *points, const float *d, uint32_t n)
{
	double stress = 0;

	for (uint32_t i = 0; i < n * n; i++)
		if (d[i] > 0)
			stress += pow((double)(apart(points[i / n], points[i % n]) / d[i]) - 1, 2);
	return stress;
}

/* Like latencies, the distances fit no arrangement in the plane. Nevertheless, no step of the
 * refinement may increase the sum of their squared relative errors. */
TEST(no_step_makes_it_worse)
{
	struct point *truth = scatter(30, 7), points[30];
	float *d = measure(truth, 30, 0.7, 0);
	struct rng rng;
	double before;

	rng_init(&rng, 8);
	for (int i = 0; i < 30; i++)
		for (int j = 0; j < i; j++)
			d[j * 30 + i] = d[i * 30 + j] *= (float)(0.3 + 2 * rng_uniform(&rng));
	for (int i = 0; i < 30; i++)
		points[i] = (struct point){ (float)(i % 6), (float)(i / 6) };
	before = stress_of(points, d, 30);
	for (int step = 0; step < 40; step++) {
		double after;

		embedding_refine(points, d, 30, 1);
		after = stress_of(points, d, 30);
		assert_true(after <= before * (1 + 1e-5));
		before = after;
	}
	free(truth);
	free(d);
}

TEST(nothing_known_is_no_error)
{
	float d[25] = { 0 };
	struct point points[5], again[5];

	for (uint32_t n = 0; n <= 5; n++) {
		embedding_place(points, d, n);
		embedding_place(again, d, n);
		assert_memory_equal(points, again, n * sizeof(*points));
		for (uint32_t i = 0; i < n; i++)
			assert_true(isfinite(points[i].x) && isfinite(points[i].y));
	}
	/* Five points begin at one place, and all their distances should be 1. Refinement must move
	 * them apart, although no direction is better than another. */
	for (int i = 0; i < 25; i++)
		d[i] = i % 6 ? 1 : 0;
	memset(points, 0, sizeof(points));
	embedding_refine(points, d, 5, 20);
	for (uint32_t i = 0; i < 5; i++)
		for (uint32_t j = 0; j < i; j++)
			assert_true(apart(points[i], points[j]) > 0.4f);
}

TEST(a_turned_map_is_turned_back)
{
	struct point *truth = scatter(12, 9), turned[12];

	for (int mirror = 0; mirror < 2; mirror++) {
		for (int i = 0; i < 12; i++) {
			float x = truth[i].x, y = mirror ? -truth[i].y : truth[i].y;

			turned[i] =
				(struct point){ 0.6f * x - 0.8f * y + 3, 0.8f * x + 0.6f * y - 1 };
		}
		embedding_align(turned, truth, 12);
		for (int i = 0; i < 12; i++)
			assert_true(apart(turned[i], truth[i]) < 1e-4f);
	}
	free(truth);
}
