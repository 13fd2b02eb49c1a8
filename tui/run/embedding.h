/* embedding.h - places points in the plane so that their distances match given ones.
 *
 * First comes classical scaling by power iteration (Torgerson 1952). With more than 100 points, it
 * uses only the distances to 100 of them (Brandes and Pich, "Eigensolver methods for progressive
 * multidimensional scaling of large data", 2006). Then comes stress majorisation, one point after
 * another, with the weight 1 / distance^2 (Gansner, Koren and North, "Graph drawing by stress
 * majorization", 2004).
 *
 * The scaling replaces an unknown distance by the shortest path over known distances; the
 * majorisation ignores unknown distances. The same distances always give the same points.
 *
 * distances: (n, n), symmetric, in any unit; <= 0: unknown. n is at most 1000.
 */
#ifndef TUI_EMBEDDING_H
#define TUI_EMBEDDING_H

#include <stdint.h>

struct point {
	float x, y;
};

/* Places n points around (0, 0). The widest direction is the x axis; neither x nor y of point 0 is
 * positive. */
void embedding_place(struct point *points, const float *distances, uint32_t n);
/* Moves the points, in `steps` steps, towards the given distances. No step increases the stress. */
void embedding_refine(struct point *points, const float *distances, uint32_t n, int steps);
/* Rotates, mirrors and shifts n points so that they come as close to the points `to` as
 * possible. */
void embedding_align(struct point *points, const struct point *to, uint32_t n);

#endif
