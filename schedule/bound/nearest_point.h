/* nearest_point.h - decides whether the origin is in the hull of points that are found one at a
 * time.
 *
 * The hull's point nearest to the origin gives a direction. The caller has a set of points, and
 * finds the point whose dot product with the direction is least. If this product is above 0, the
 * origin is outside the hull of the whole set. Otherwise the caller adds the point and asks for the
 * next direction.
 *
 * Source: P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 11 (1976).
 * Internal to schedule/.
 */
#ifndef SCHEDULE_NEAREST_POINT_H
#define SCHEDULE_NEAREST_POINT_H

#include <stdbool.h>

#include "base/arena.h"

struct nearest_point; /* opaque */

/* Makes a hull without points, which lives as long as the arena. */
struct nearest_point *nearest_point_new(struct arena *a, int dimensions);
/* Removes all points. */
void nearest_point_clear(struct nearest_point *s);
/* Returns the point of the hull that is nearest to the origin (an array of `dimensions` numbers),
 * borrowed until the next call. For a hull without points, returns the origin. */
const double *nearest_point_direction(const struct nearest_point *s);
/* Adds a point, which is copied. Returns false if the hull contains the origin or if, within
 * rounding, the point does not bring the hull nearer to the origin. */
bool nearest_point_add(struct nearest_point *s, const double *point);

#endif
