/* nearest_point.h - is the origin in the hull of points that are found one at a time?
 *
 * The least point of the hull of those told so far is the direction to look in: whoever can find the
 * point of a set that is lowest in that direction, and finds it above the origin, has proved that
 * the origin is outside the hull of the whole set; else that point is told next.
 *
 * Source: P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 11 (1976).
 * Internal to schedule/.
 */
#ifndef SCHEDULE_NEAREST_POINT_H
#define SCHEDULE_NEAREST_POINT_H

#include <stdbool.h>

#include "base/arena.h"

struct nearest_point; /* opaque */

/* Of points with so many coordinates; none told yet. It lives as long as the arena. NULL: out of memory. */
struct nearest_point *nearest_point_new(struct arena *a, int dimensions);
/* As if new. */
void nearest_point_clear(struct nearest_point *s);
/* The hull's least point (dimensions), borrowed until the next call; before any point was told: 0. */
const double *nearest_point_direction(const struct nearest_point *s);
/* point (dimensions) is copied. False: the hull holds the origin, or this point brings it no
 * nearer, as far as the numbers tell. */
bool nearest_point_tell(struct nearest_point *s, const double *point);

#endif
