/* embedding.h - places points in the plane so that their distances match given ones.
 *
 * First classical scaling by power iteration (Torgerson 1952); with more than 100 points from the
 * distances to 100 of them only (Brandes and Pich, "Eigensolver methods for progressive
 * multidimensional scaling of large data", 2006). Then stress majorisation, one point after another
 * (Gansner, Koren and North, "Graph drawing by stress majorization", 2004), with the weight
 * 1 / distance^2. Unknown distances are shortest paths over known ones in the first part and have
 * no weight in the second. The same distances give the same points.
 *
 * distances: (n, n), symmetric, in any unit; <= 0: unknown. n is at most 1000.
 */
#ifndef TUI_EMBEDDING_H
#define TUI_EMBEDDING_H

#include <stdint.h>

struct point {
	float x, y;
};

/* Places n points. Their centre is (0, 0), the x axis is the widest direction, and point 0 has
 * no positive coordinate. */
void embedding_place(struct point *points, const float *distances, uint32_t n);
/* Moves the points towards the given distances. No step makes the stress larger. */
void embedding_refine(struct point *points, const float *distances, uint32_t n, int steps);
/* Rotates, mirrors and shifts n points so that they are as near to `to` as possible. */
void embedding_align(struct point *points, const struct point *to, uint32_t n);

#endif
