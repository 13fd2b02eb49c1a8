/* Divides the screen among the panels. Sizes depend only on the screen and the number of nodes, so
 * that panels do not move during a run. */
#include "tui/screen/layout.h"

#include <string.h>

/* The map is shown only if the area for the loss and the map has at least this size, in cells. */
enum { MAP_LEAST_W = 90, MAP_LEAST_H = 11 };

static int smaller_of(int a, int b)
{
	return a < b ? a : b;
}

static int larger_of(int a, int b)
{
	return a > b ? a : b;
}

/* Cuts the upper h rows off *r, or all rows if it has fewer. Returns the part that was cut off. */
static struct rect cut_top(struct rect *r, int h)
{
	struct rect top = *r;

	top.h = larger_of(0, smaller_of(h, r->h));
	r->y += top.h;
	r->h -= top.h;
	return top;
}

/* Lays out a screen with little room: only the most important panels. */
static void lay_out_tiny(struct layout *l, struct rect all)
{
	l->tiny = true;
	l->header = cut_top(&all, all.w >= 60 && all.h >= 8 ? 2 : 1);
	if (all.h >= 3) {
		l->keys = (struct rect){ 0, all.y + all.h - 1, all.w, 1 };
		all.h--;
	}
	if (all.h >= 3) {
		l->prompt = (struct rect){ 0, all.y + all.h - 1, all.w, 1 };
		all.h--;
	}
	l->body = all;
	l->alerts = cut_top(&all, all.h / 2);
	l->pipeline = all;
}

static void lay_out_narrow(struct layout *l, struct rect all, uint32_t nodes, uint32_t largest,
			   bool follow)
{
	int rows = all.h, grid = smaller_of(2 + (int)largest, larger_of(4, rows * 2 / 5)),
	    spare;
	struct rect bottom;
	int motion = follow ? 4 : 3, curve = 5, timeline_h = 5;

	spare = rows - grid - motion - curve - timeline_h;
	if (spare < 0) {
		timeline_h = larger_of(3, timeline_h + spare);
		spare = 0;
	}
	timeline_h += smaller_of(spare * 2 / 5, larger_of(0, (int)nodes + 2 - timeline_h));
	motion += spare / 5;
	l->pipeline = cut_top(&all, grid);
	l->timeline = cut_top(&all, timeline_h);
	l->motion = cut_top(&all, motion);
	bottom = all;
	l->loss = bottom;
	l->loss.w = all.w / 2;
	l->alerts = bottom;
	l->alerts.x += l->loss.w;
	l->alerts.w -= l->loss.w;
	if (bottom.h > 8) {
		l->journal = l->alerts;
		l->alerts = cut_top(&l->journal, 4);
	}
}

static void lay_out_wide(struct layout *l, struct rect all, uint32_t nodes, uint32_t largest)
{
	struct rect left = all, right = all;
	int timeline_h, motion, grid;

	left.w = larger_of(70, all.w - larger_of(44, all.w * 7 / 20)) - 1;
	l->divider = left.w;
	right.x = left.w + 1;
	right.w = all.w - right.x;
	motion = all.h >= 40 ? 9 : 6;
	timeline_h = smaller_of((int)nodes + 2, all.h - motion - larger_of(9, all.h / 4));
	l->timeline = cut_top(&left, timeline_h);
	l->motion = cut_top(&left, motion);
	l->loss = left;
	if (left.w >= MAP_LEAST_W && left.h >= MAP_LEAST_H) {
		l->loss.w = left.w * 2 / 5;
		l->map = left;
		l->map.x += l->loss.w + 1;
		l->map.w -= l->loss.w + 1;
	}
	grid = smaller_of((int)largest + 2, all.h / 2);
	l->pipeline = cut_top(&right, grid);
	l->receipts = cut_top(&right, right.h >= 30 ? 6 : 4);
	l->collisions = cut_top(&right, larger_of(4, right.h * 2 / 7));
	l->alerts = cut_top(&right, larger_of(4, right.h / 3));
	l->journal = right;
}

void layout_make(struct layout *l, int w, int h, uint32_t nodes, uint32_t largest, bool follow)
{
	struct rect all = { 0, 0, w, h };

	memset(l, 0, sizeof(*l));
	l->divider = -1;
	if (w < 80 || h < 24) {
		lay_out_tiny(l, all);
		return;
	}
	l->header = cut_top(&all, 2);
	l->keys = (struct rect){ 0, h - 1, w, 1 };
	l->prompt = (struct rect){ 0, h - 2, w, 1 };
	all.h -= 2;
	l->body = all;
	l->wide = w >= 120 && h >= 30;
	if (l->wide)
		lay_out_wide(l, all, nodes, largest);
	else
		lay_out_narrow(l, all, nodes, largest, follow);
}
