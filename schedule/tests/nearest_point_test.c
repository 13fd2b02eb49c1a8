/* Tests the nearest point of a hull, with clouds of points for which the answer is known. */
#include <math.h>
#include <stdbool.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "schedule/bound/nearest_point.h"

enum { DIMENSIONS = 5, POINTS = 12 };

struct cloud {
	int dim, n;
	double points[POINTS][DIMENSIONS];
};

static double dot(int dim, const double *a, const double *b)
{
	double sum = 0;

	for (int i = 0; i < dim; i++)
		sum += a[i] * b[i];
	return sum;
}

static struct cloud random_cloud(struct rng *r)
{
	struct cloud c = { 1 + (int)rng_below(r, DIMENSIONS), 1 + (int)rng_below(r, POINTS),
			   { { 0 } } };

	for (int i = 0; i < c.n; i++)
		for (int k = 0; k < c.dim; k++)
			c.points[i][k] = (double)rng_below(r, 21) - 10;
	return c;
}

/* Returns the point of the cloud that is lowest in the direction. */
static const double *lowest(const struct cloud *c, const double *direction)
{
	const double *low = c->points[0];

	for (int i = 1; i < c->n; i++)
		if (dot(c->dim, direction, c->points[i]) < dot(c->dim, direction, low))
			low = c->points[i];
	return low;
}

/* Returns true if the origin is proved to be outside the hull of the cloud. */
static bool separates(const struct cloud *c)
{
	struct arena arena = { 0 };
	struct nearest_point *s = nearest_point_new(&arena, c->dim);
	bool outside = false;
	int added = 0;

	assert_non_null(s);
	while (!outside && nearest_point_add(s, lowest(c, nearest_point_direction(s)))) {
		const double *x = nearest_point_direction(s);

		outside = dot(c->dim, x, lowest(c, x)) > 1e-9;
		assert_true(++added < 100);
	}
	arena_free(&arena);
	return outside;
}

/* In even rounds, a known plane separates the cloud from the origin. In odd rounds, the origin is a
 * known mixture of the cloud's points. */
TEST(decides_inside_or_outside)
{
	struct rng r;

	rng_init(&r, 3);
	for (int round = 0; round < 2000; round++) {
		struct cloud c = random_cloud(&r);
		double normal[DIMENSIONS], sum[DIMENSIONS] = { 0 };
		bool inside = round % 2;

		for (int k = 0; k < c.dim; k++)
			normal[k] = (double)rng_below(&r, 21) - 10;
		normal[0] = 7;
		for (int i = 0; i < c.n; i++)
			if (!inside && dot(c.dim, normal, c.points[i]) <= 0)
				for (int k = 0; k < c.dim; k++)
					c.points[i][k] = normal[k];
		for (int i = 0; inside && i + 1 < c.n; i++)
			for (int k = 0; k < c.dim; k++)
				sum[k] += c.points[i][k];
		if (inside) /* the last point makes the sum of all points 0 */
			for (int k = 0; k < c.dim; k++)
				c.points[c.n - 1][k] = -sum[k];
		assert_int_equal(separates(&c), !inside);
	}
}

/* For the nearest point x and every point p of the hull, the dot product of p and x must be at
 * least the dot product of x with itself. */
TEST(finds_the_nearest_point)
{
	struct rng r;

	rng_init(&r, 5);
	for (int round = 0; round < 500; round++) {
		struct cloud c = random_cloud(&r);
		struct arena arena = { 0 };
		struct nearest_point *s = nearest_point_new(&arena, c.dim);
		const double *x = nearest_point_direction(s);

		assert_int_equal(x[0], 0);
		for (int k = 0; k < c.n; k++)
			c.points[k][0] += 12;
		while (nearest_point_add(s, lowest(&c, x)))
			;
		assert_true(dot(c.dim, x, lowest(&c, x)) >= dot(c.dim, x, x) - 1e-6);
		nearest_point_clear(s);
		assert_true(nearest_point_add(s, c.points[0]));
		for (int k = 0; k < c.dim; k++)
			assert_true(fabs(nearest_point_direction(s)[k] - c.points[0][k]) < 1e-9);
		arena_free(&arena);
	}
}
