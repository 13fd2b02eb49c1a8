/* nearest_point.h - is the origin in the hull of points that are found one at a time?
 *
 * The least point of the hull of those told so far is the direction to look in: whoever can find the
 * point of a set that is lowest in that direction, and finds it above the origin, has proved that
 * the origin is outside the hull of the whole set; else that point is told next.
 *
 * Source: P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 11 (1976).
 * Internal to schedule/.
 */
#ifndef SCHEDULE_SEPARATE_H
#define SCHEDULE_SEPARATE_H

#include <stdbool.h>

struct separate; /* opaque */

/* Of points with so many coordinates; none told yet. NULL: out of memory. */
struct separate *separate_new(int dimensions);
void separate_free(struct separate *s); /* NULL is allowed */
/* As if new. */
void separate_clear(struct separate *s);
/* The hull's least point (dimensions), borrowed until the next call; before any point was told: 0. */
const double *separate_direction(const struct separate *s);
/* point (dimensions) is copied. False: the hull holds the origin, or this point brings it no
 * nearer, as far as the numbers tell. */
bool separate_tell(struct separate *s, const double *point);

#endif
