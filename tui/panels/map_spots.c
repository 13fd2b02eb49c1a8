/* Finds cells for markers. The points are stretched over the rectangle of the map, and each marker
 * takes the free cells that are nearest to its point. */
#include "tui/panels/map_spots.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { LABEL_GROUP = 255, NEAR = 16 };

void map_spots_init(struct map_spots *m, struct rect at)
{
	m->at = at;
	m->taken = alloc_array((size_t)at.w, (size_t)at.h);
}

void map_spots_fini(struct map_spots *m)
{
	free(m->taken);
	m->taken = NULL;
}

/* Returns true if the cells of r are inside the map and free, and `columns` columns on each side of
 * r are free too. In `rows` rows above and below these cells, each cell must be free or have the
 * value `group`. Cells outside the map count as free. */
static bool is_free(const struct map_spots *m, struct rect r, int columns, int rows, int group)
{
	int x = r.x - m->at.x, y = r.y - m->at.y;
	int left = x > columns ? x - columns : 0, right = x + r.w + columns;
	int top = y > rows ? y - rows : 0, bottom = y + r.h + rows;

	if (x < 0 || y < 0 || x + r.w > m->at.w || y + r.h > m->at.h)
		return false;
	if (m->taken[y * m->at.w + x] || m->taken[y * m->at.w + x + r.w - 1])
		return false; /* quick test first, because it fails most often */
	right = right < m->at.w ? right : m->at.w;
	bottom = bottom < m->at.h ? bottom : m->at.h;
	for (int j = top; j < bottom; j++) {
		const uint8_t *row = &m->taken[j * m->at.w];
		bool own = j >= y && j < y + r.h;

		for (int i = left; i < right; i++)
			if (row[i] && (own || row[i] != group))
				return false;
	}
	return true;
}

static void take(struct map_spots *m, struct rect r, int group)
{
	for (int j = 0; j < r.h; j++)
		memset(&m->taken[(r.y - m->at.y + j) * m->at.w + r.x - m->at.x], group,
		       (size_t)r.w);
}

bool map_spots_take(struct map_spots *m, struct rect r)
{
	if (!is_free(m, r, 1, 0, LABEL_GROUP))
		return false;
	take(m, r, LABEL_GROUP);
	return true;
}

/* Moves *r to the nearest free cells. One row counts as far as two columns, because a cell is about
 * twice as high as wide. */
static bool find_near(const struct map_spots *m, struct rect *r, int farthest, int rows, int group)
{
	for (int far = 0; far <= farthest; far++) {
		for (int dy = -(far / 2); dy <= far / 2; dy++) {
			int step = abs(dy) == far / 2 || far == 0 ? 1 : 2 * far;

			for (int dx = -far; dx <= far; dx += step) {
				struct rect try = { r->x + dx, r->y + dy, r->w, r->h };

				if (is_free(m, try, 1, rows, group)) {
					*r = try;
					return true;
				}
			}
		}
	}
	return false;
}

/* Converts points to cells along one axis: cell = scale * point + shift. */
struct axis {
	float scale, shift;
};

static struct axis fit_axis(float least, float most, int from, int cells, float scale)
{
	return (struct axis){ scale, (float)from + ((float)cells - scale * (least + most)) / 2 };
}

static float span_scale(float least, float most, int cells)
{
	return most > least && cells > 0 ? (float)cells / (most - least) : 0;
}

/* Chooses the two axes so that the points fill the rectangle. Neither direction is stretched more
 * than 1.7 times as far as the other, so that near nodes stay near each other. */
static void fit(const struct map_spots *m, const struct rect *markers, const struct point *points,
		uint32_t n, struct axis *x, struct axis *y)
{
	struct point least = { FLT_MAX, FLT_MAX }, most = { -FLT_MAX, -FLT_MAX };
	int w = 0, h = 0;
	float sx, sy;

	for (uint32_t i = 0; i < n; i++) {
		least.x = fminf(least.x, points[i].x);
		least.y = fminf(least.y, points[i].y);
		most.x = fmaxf(most.x, points[i].x);
		most.y = fmaxf(most.y, points[i].y);
		w = markers[i].w > w ? markers[i].w : w;
		h = markers[i].h > h ? markers[i].h : h;
	}
	w = m->at.w - w - 2 > 0 ? m->at.w - w - 2 : 0;
	h = m->at.h - h - 2 > 0 ? m->at.h - h - 2 : 0;
	sx = span_scale(least.x, most.x, w);
	sy = span_scale(least.y, most.y, h);
	sx = sy > 0 ? fminf(sx, 2 * sy * 1.7f) : sx;
	sy = sx > 0 ? fminf(sy, sx / 2 * 1.7f) : sy;
	*x = fit_axis(least.x, most.x, m->at.x + 1, w, sx);
	*y = fit_axis(least.y, most.y, m->at.y + 1, h, sy);
}

void map_spots_place(struct map_spots *m, struct rect *markers, const struct point *points,
		     const uint8_t *groups, uint32_t n)
{
	int farthest = m->at.w > 2 * m->at.h ? m->at.w : 2 * m->at.h;
	struct axis x, y;

	if (n == 0)
		return;
	fit(m, markers, points, n, &x, &y);
	for (uint32_t i = 0; i < n; i++) {
		struct rect r = markers[i];
		int group = 1 + groups[i];

		r.x = (int)lrintf(points[i].x * x.scale + x.shift);
		r.y = (int)lrintf(points[i].y * y.scale + y.shift);
		if (find_near(m, &r, NEAR, 1, group) || find_near(m, &r, farthest, 0, group))
			take(m, r, group);
		else
			r.w = 0;
		markers[i] = r;
	}
}
