/* glyphs.h - how a node, a task, a time looks: the one place that chooses glyph, word and
 * style.
 *
 * `=` forward, `#` backward, `L` loss, `v` evaluation, `.` idle, `x` blocked,
 * `!` failed or dead, `~` slow, `^` joining, `-` absent, `+N` queued.
 */
#ifndef TUI_GLYPHS_H
#define TUI_GLYPHS_H

#include "tui/run/state.h"
#include "tui/input/ui.h"

struct node_glyph {
	char glyph;
	enum style style;
	char word[12];   /* "m07", "idle", "FAIL" */
	uint32_t queued; /* others that wait there */
};

/* What a node does now, and how urgent that is. */
void glyphs_node(struct node_glyph *out, const struct state *s, const struct state_node *n);
/* A kind of task on a timeline: = # L v + */
char glyphs_task_glyph(enum work_kind k);
char glyphs_task_planned(enum work_kind k); /* - : */
char glyphs_task_letter(enum work_kind k);  /* F B L V */
/* The colours of its letter, and of its bar. */
enum style glyphs_task_style(enum work_kind k);
enum style glyphs_bar_style(enum work_kind k);

/* How far the step before the first iteration is: "round 7 of 21, about 15 s left"; "" where that
 * is not known. */
void glyphs_step(const struct state *s, char text[64]);

/* Short numbers: "1.3M", "14.4k", "812". */
void glyphs_count(double v, char text[16]);
/* Digits behind the point for seconds of this size: 24.3, 0.24, 0.024. */
int glyphs_decimals(double seconds);
/* Seconds as people read them: "24ms", "0.9s", "14s", "3m07", "2h15". */
void glyphs_age(double seconds, char text[16]);
/* "+2%", "-13%"; "?" when base is 0. */
void glyphs_change(double base, double now, char text[16]);
void glyphs_clock(int64_t wall_us, int32_t utc_offset_s, char text[16]); /* "14:02:07" */

/* A row of words; where it is too narrow the ones of the lowest rank go first. */
struct chip {
	char text[160];
	unsigned style;
	int rank; /* 9 stays longest */
};
struct chips {
	struct chip chip[24];
	int n;
};
/* Appends one; beyond the last place it is left out. */
void chips_add(struct chips *c, int rank, unsigned style, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Draws what fits into w columns, `gap` between; returns the columns taken. */
int chips_draw(struct chips *c, struct screen *s, int x, int y, int w, const char *gap);

#endif
