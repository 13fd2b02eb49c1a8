/* Computes points in the plane from distances. The console's map places nodes by their latencies,
 * so that nobody has to tell it where the machines are. */
#include "tui/run/embedding.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

enum { PIVOTS = 100, ROUNDS = 100, STEPS = 50 };

/* ---- shortest paths ---- */

/* Computes the length of the shortest path from point `from` to each point (Dijkstra); FLT_MAX if
 * there is no path. done: scratch memory for n entries. */
static void measure_paths(float *length, uint8_t *done, const float *distances, uint32_t n,
			  uint32_t from)
{
	for (uint32_t i = 0; i < n; i++)
		length[i] = i == from ? 0 : FLT_MAX;
	memset(done, 0, n);
	for (uint32_t round = 0; round < n; round++) {
		uint32_t nearest = n;

		for (uint32_t i = 0; i < n; i++)
			if (!done[i] && length[i] < FLT_MAX &&
			    (nearest == n || length[i] < length[nearest]))
				nearest = i;
		if (nearest == n)
			return;
		done[nearest] = 1;
		for (uint32_t i = 0; i < n; i++) {
			float d = distances[(size_t)nearest * n + i];

			if (d > 0 && length[nearest] + d < length[i])
				length[i] = length[nearest] + d;
		}
	}
}

/* Fills lengths (k, n) with the lengths of the shortest paths from k points to all points. The k
 * points are far apart: each further point is the farthest one from the points before it. A missing
 * path counts as 1.5 times as long as the longest path. */
static void measure_pivots(float *lengths, const float *distances, uint32_t n, uint32_t k)
{
	uint8_t *done = alloc_array(n, sizeof(*done));
	float *nearest = alloc_array(n, sizeof(*nearest));
	float longest = 0;
	uint32_t pivot = 0;

	for (uint32_t i = 0; i < n; i++)
		nearest[i] = FLT_MAX;
	for (uint32_t p = 0; p < k; p++) {
		float *length = &lengths[(size_t)p * n];

		if (k == n)
			pivot = p;
		measure_paths(length, done, distances, n, pivot);
		for (uint32_t i = 0; i < n; i++) {
			nearest[i] = fminf(nearest[i], length[i]);
			if (length[i] < FLT_MAX)
				longest = fmaxf(longest, length[i]);
		}
		for (uint32_t i = 0; i < n; i++)
			if (nearest[i] > nearest[pivot])
				pivot = i;
	}
	longest = longest > 0 ? longest : 1;
	for (size_t i = 0; i < (size_t)k * n; i++)
		if (lengths[i] == FLT_MAX)
			lengths[i] = 1.5f * longest;
	free(nearest);
	free(done);
}

/* ---- classical scaling ---- */

/* Double centring: replaces the distances in c (k, n) by their squares, subtracts the means of rows
 * and columns, and multiplies by -1/2. */
static void centre(float *c, uint32_t k, uint32_t n)
{
	double *row = alloc_array(k, sizeof(*row)), *column = alloc_array(n, sizeof(*column));
	double all = 0;

	for (uint32_t p = 0; p < k; p++) {
		for (uint32_t i = 0; i < n; i++) {
			double square = (double)c[(size_t)p * n + i] * (double)c[(size_t)p * n + i];

			row[p] += square / n;
			column[i] += square / k;
			all += square / k / n;
		}
	}
	for (uint32_t p = 0; p < k; p++) {
		for (uint32_t i = 0; i < n; i++) {
			float *to = &c[(size_t)p * n + i];

			*to = (float)(-0.5 *
				      ((double)*to * (double)*to - row[p] - column[i] + all));
		}
	}
	free(row);
	free(column);
}

static double product(const double *a, const double *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void normalise(double *v, uint32_t n)
{
	double length = sqrt(product(v, v, n));

	for (uint32_t i = 0; i < n; i++)
		v[i] = length > 0 ? v[i] / length : 0;
}

/* Sets out (n) to the product of the transpose of c (k, n) and the vector v (k). */
static void project(double *out, const float *c, const double *v, uint32_t k, uint32_t n)
{
	memset(out, 0, n * sizeof(*out));
	for (uint32_t p = 0; p < k; p++)
		for (uint32_t i = 0; i < n; i++)
			out[i] += (double)c[(size_t)p * n + i] * v[p];
}

/* Sets out (k) to the product of c (k, n) and the vector u (n). */
static void project_back(double *out, const float *c, const double *u, uint32_t k, uint32_t n)
{
	for (uint32_t p = 0; p < k; p++) {
		out[p] = 0;
		for (uint32_t i = 0; i < n; i++)
			out[p] += (double)c[(size_t)p * n + i] * u[i];
	}
}

/* Sets the x (axis 0) or y (axis 1) of all points from u, the product of the matrix and a
 * direction. */
static void set_coordinate(struct point *points, const double *u, uint32_t k, uint32_t n, int axis)
{
	double size = sqrt(sqrt(product(u, u, n)) / sqrt((double)n / k));

	for (uint32_t i = 0; i < n; i++)
		*(axis ? &points[i].y : &points[i].x) = size > 0 ? (float)(u[i] / size) : 0;
}

/* Finds the two main directions by power iteration and sets the points. Both directions are found
 * together. If they were equally strong, finding one after the other would be slow. */
static void scale_classically(struct point *points, const float *c, uint32_t k, uint32_t n)
{
	double *v[2], *u = alloc_array(n, sizeof(*u));
	struct rng rng;

	rng_init(&rng, 1);
	for (int a = 0; a < 2; a++) {
		v[a] = alloc_array(k, sizeof(*v[a]));
		for (uint32_t p = 0; p < k; p++)
			v[a][p] = rng_uniform(&rng) - 0.5;
	}
	for (int round = 0; round <= ROUNDS; round++) {
		double along;

		normalise(v[0], k);
		along = product(v[0], v[1], k);
		for (uint32_t p = 0; p < k; p++)
			v[1][p] -= along * v[0][p];
		normalise(v[1], k);
		for (int a = 0; a < 2; a++) {
			project(u, c, v[a], k, n);
			if (round == ROUNDS)
				set_coordinate(points, u, k, n, a);
			else
				project_back(v[a], c, u, k, n);
		}
	}
	free(v[0]);
	free(v[1]);
	free(u);
}

/* ---- majorisation ---- */

/* Returns the position of point i that its known distances to all other points suggest, as a
 * weighted mean. */
static struct point pull(const struct point *points, const float *distances, uint32_t n, uint32_t i)
{
	double x = 0, y = 0, weights = 0;

	for (uint32_t j = 0; j < n; j++) {
		float d = distances[(size_t)i * n + j];
		float dx = points[i].x - points[j].x, dy = points[i].y - points[j].y, apart, w;

		if (j == i || !(d > 0))
			continue;
		apart = sqrtf(dx * dx + dy * dy);
		w = 1 / (d * d);
		if (apart > d * 1e-6f) {
			x += (double)(w * (points[j].x + d * dx / apart));
			y += (double)(w * (points[j].y + d * dy / apart));
			/* Points at the same place are pushed apart, in a direction that depends on
			 * i and j. */
		} else {
			float turn = (float)(i * 7 + j * 13), sign = i < j ? 1 : -1;

			x += (double)(w * (points[j].x + d * sign * cosf(turn)));
			y += (double)(w * (points[j].y + d * sign * sinf(turn)));
		}
		weights += (double)w;
	}
	return weights > 0 ? (struct point){ (float)(x / weights), (float)(y / weights) }
			   : points[i];
}

void embedding_refine(struct point *points, const float *distances, uint32_t n, int steps)
{
	for (int step = 0; step < steps; step++)
		for (uint32_t i = 0; i < n; i++)
			points[i] = pull(points, distances, n, i);
}

/* ---- orientation ---- */

static struct point centre_of(const struct point *points, uint32_t n)
{
	double x = 0, y = 0;

	for (uint32_t i = 0; i < n; i++) {
		x += (double)points[i].x;
		y += (double)points[i].y;
	}
	return (struct point){ (float)(x / n), (float)(y / n) };
}

/* Rotates and mirrors the points so that the widest direction is the x axis and point 0 is at the
 * upper left. */
static void turn_upright(struct point *points, uint32_t n)
{
	struct point middle = centre_of(points, n);
	double xx = 0, xy = 0, yy = 0, angle;

	for (uint32_t i = 0; i < n; i++) {
		double x = (double)(points[i].x -= middle.x), y = (double)(points[i].y -= middle.y);

		xx += x * x;
		xy += x * y;
		yy += y * y;
	}
	angle = 0.5 * atan2(2 * xy, xx - yy);
	for (uint32_t i = 0; i < n; i++) {
		float x = points[i].x, y = points[i].y, c = (float)cos(angle),
		      s = (float)sin(angle);

		points[i] = (struct point){ c * x + s * y, c * y - s * x };
	}
	for (uint32_t i = n; i-- > 0;) { /* point 0 comes last, because the loop needs its signs */
		points[i].x *= points[0].x > 0 ? -1 : 1;
		points[i].y *= points[0].y > 0 ? -1 : 1;
	}
}

void embedding_align(struct point *points, const struct point *to, uint32_t n)
{
	struct point from_centre, to_centre;
	double same_c = 0, same_s = 0, other_c = 0, other_s = 0, length;
	bool mirror;

	if (n == 0)
		return;
	from_centre = centre_of(points, n);
	to_centre = centre_of(to, n);
	for (uint32_t i = 0; i < n; i++) {
		double x = (double)(points[i].x - from_centre.x),
		       y = (double)(points[i].y - from_centre.y);
		double a = (double)(to[i].x - to_centre.x), b = (double)(to[i].y - to_centre.y);

		same_c += a * x + b * y;
		same_s += b * x - a * y;
		other_c += a * x - b * y; /* sums for the points with y mirrored */
		other_s += b * x + a * y;
	}
	mirror = hypot(other_c, other_s) > hypot(same_c, same_s);
	same_c = mirror ? other_c : same_c;
	same_s = mirror ? other_s : same_s;
	length = hypot(same_c, same_s);
	for (uint32_t i = 0; length > 0 && i < n; i++) {
		double x = (double)(points[i].x - from_centre.x),
		       y = (double)(points[i].y - from_centre.y) * (mirror ? -1 : 1);

		points[i].x = to_centre.x + (float)((same_c * x - same_s * y) / length);
		points[i].y = to_centre.y + (float)((same_s * x + same_c * y) / length);
	}
}

void embedding_place(struct point *points, const float *distances, uint32_t n)
{
	uint32_t k = n < PIVOTS ? n : PIVOTS;
	float *c;

	if (n == 0)
		return;
	c = alloc_array((size_t)k * n, sizeof(*c));
	measure_pivots(c, distances, n, k);
	centre(c, k, n);
	scale_classically(points, c, k, n);
	free(c);
	embedding_refine(points, distances, n, STEPS);
	turn_upright(points, n);
}
