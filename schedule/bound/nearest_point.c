/* Wolfe's algorithm: the nearest point is kept as a mixture of a few points of the hull, each with
 * a weight above 0. */
#include "schedule/bound/nearest_point.h"

#include <math.h>
#include <string.h>

/* Weights and pivots below TINY count as 0. A squared length counts as 0 if it is at most TINY * s.
 * Here s is the squared length of the newest point, or 1 if the point is shorter than 1. */
#define TINY 1e-10

/* The mixture has at most one point more than there are coordinates. */
struct nearest_point {
	int dim, n;
	double *points; /* array of dim + 2: the points of the mixture */
	/* Array of dim + 2: weights of the mixture's points, all above 0, with sum 1 */
	double *weights;
	/* Array of dim + 2: result of mix_points, which may contain negative weights. */
	double *mixed;
	double *rows;  /* array of (dim + 3, dim + 4): linear equations */
	double *least; /* array of dim: the nearest point */
};

struct nearest_point *nearest_point_new(struct arena *a, int dimensions)
{
	struct nearest_point *s = arena_array(a, 1, sizeof(*s));
	size_t dim = (size_t)dimensions;

	s->dim = dimensions;
	s->points = arena_array(a, (dim + 2) * dim, sizeof(double));
	s->weights = arena_array(a, dim + 2, sizeof(double));
	s->mixed = arena_array(a, dim + 2, sizeof(double));
	s->rows = arena_array(a, (dim + 3) * (dim + 4), sizeof(double));
	s->least = arena_array(a, dim, sizeof(double));
	return s;
}

void nearest_point_clear(struct nearest_point *s)
{
	s->n = 0;
	memset(s->least, 0, (size_t)s->dim * sizeof(double));
}

const double *nearest_point_direction(const struct nearest_point *s)
{
	return s->least;
}

static double *point_of(const struct nearest_point *s, int i)
{
	return s->points + (size_t)i * (size_t)s->dim;
}

static double dot_product(const struct nearest_point *s, const double *a, const double *b)
{
	double sum = 0;

	for (int i = 0; i < s->dim; i++)
		sum += a[i] * b[i];
	return sum;
}

static void swap_rows(double *a, double *b, int n)
{
	for (int i = 0; i < n; i++) {
		double was = a[i];

		a[i] = b[i];
		b[i] = was;
	}
}

/* Solves n equations by Gaussian elimination. The last column has the constants at first, and the
 * solution at the end. Returns false if the equations have no unique solution. */
static bool solve_equations(double *rows, int n)
{
	int width = n + 1;

	for (int i = 0; i < n; i++) {
		int pivot = i;

		for (int k = i + 1; k < n; k++)
			if (fabs(rows[k * width + i]) > fabs(rows[pivot * width + i]))
				pivot = k;
		if (fabs(rows[pivot * width + i]) < TINY)
			return false;
		swap_rows(rows + i * width, rows + pivot * width, width);
		for (int k = i + 1; k < n; k++) {
			double f = rows[k * width + i] / rows[i * width + i];

			for (int j = i; j < width; j++)
				rows[k * width + j] -= f * rows[i * width + j];
		}
	}
	for (int i = n - 1; i >= 0; i--) {
		for (int j = i + 1; j < n; j++)
			rows[i * width + n] -= rows[i * width + j] * rows[j * width + n];
		rows[i * width + n] /= rows[i * width + i];
	}
	return true;
}

/* Finds the mixture of all points, with weights of any sign, that is nearest to the origin. All
 * points then have the same dot product with the result. Returns false if some point is a mixture
 * of the other points. */
static bool mix_points(struct nearest_point *s)
{
	int n = s->n + 1, width = n + 1;

	for (int i = 0; i < s->n; i++) {
		for (int k = 0; k < s->n; k++)
			s->rows[i * width + k] = dot_product(s, point_of(s, i), point_of(s, k));
		s->rows[i * width + s->n] = 1;
		s->rows[s->n * width + i] = 1;
		s->rows[i * width + n] = 0;
	}
	s->rows[s->n * width + s->n] = 0;
	s->rows[s->n * width + n] = 1;
	if (!solve_equations(s->rows, n))
		return false;
	for (int i = 0; i < s->n; i++)
		s->mixed[i] = s->rows[i * width + n];
	return true;
}

/* Moves the weights towards those of mix_points until some weight becomes 0, and drops the point
 * of this weight. Returns true if no weight became 0. */
static bool approach_mixture(struct nearest_point *s)
{
	double far = 1;
	int kept = 0, were = s->n;

	for (int i = 0; i < s->n; i++)
		if (s->mixed[i] <= TINY)
			far = fmin(far, s->weights[i] / (s->weights[i] - s->mixed[i]));
	for (int i = 0; i < s->n; i++) {
		double weight = s->weights[i] + far * (s->mixed[i] - s->weights[i]);

		if (weight <= TINY)
			continue;
		if (kept != i)
			memcpy(point_of(s, kept), point_of(s, i), (size_t)s->dim * sizeof(double));
		s->weights[kept++] = weight;
	}
	s->n = kept;
	return kept == were;
}

static void find_least(struct nearest_point *s)
{
	memset(s->least, 0, (size_t)s->dim * sizeof(double));
	for (int i = 0; i < s->n; i++)
		for (int k = 0; k < s->dim; k++)
			s->least[k] += s->weights[i] * point_of(s, i)[k];
}

bool nearest_point_add(struct nearest_point *s, const double *point)
{
	double square = dot_product(s, point, point), least = dot_product(s, s->least, s->least);

	if (s->n > 0 && least - dot_product(s, s->least, point) <= TINY * fmax(square, 1))
		return false;
	memcpy(point_of(s, s->n), point, (size_t)s->dim * sizeof(double));
	s->weights[s->n] = s->n == 0 ? 1 : 0;
	s->n++;
	do {
		if (s->n > s->dim + 1 || !mix_points(s))
			return false;
	} while (!approach_mixture(s));
	find_least(s);
	return dot_product(s, s->least, s->least) > TINY * fmax(square, 1);
}
