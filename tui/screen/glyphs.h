/* glyphs.h - the appearance of nodes, tasks and times: the only place that chooses glyph, word
 * and style.
 *
 * `=` forward, `#` backward, `L` loss, `v` evaluation, `.` idle, `x` blocked, `!` failed or dead,
 * `~` slow, `^` joining, `-` absent, `+N` queued.
 */
#ifndef TUI_GLYPHS_H
#define TUI_GLYPHS_H

#include "tui/run/state.h"
#include "tui/screen/screen.h"

struct node_glyph {
	char glyph;
	enum style style;
	char word[12];   /* text in the cell, such as "m07", "idle" or "FAIL" */
	uint32_t queued; /* number of further waiting tasks */
};

/* Gives the appearance of a node: its current task or problem. */
void glyphs_node(struct node_glyph *out, const struct state *s, const struct state_node *n);
/* Return the glyph of a task on a timeline (= # L v), the glyph of a planned task (- :), and the
 * letter of a kind. */
char glyphs_task_glyph(enum task_kind k);
char glyphs_task_planned(enum task_kind k); /* returns '-' or ':' */
char glyphs_task_letter(enum task_kind k);  /* returns F, B, L or V */
/* Return the style of a task's letter and that of its bar. */
enum style glyphs_task_style(enum task_kind k);
enum style glyphs_bar_style(enum task_kind k);

/* Writes the progress of the step before the first iteration: "round 7 of 21, about 15 s left";
 * "" if it is unknown. */
void glyphs_step(const struct state *s, char text[64]);

/* Writes a short number: "1.3M", "14.4k", "812". */
void glyphs_count(double v, char text[16]);
/* Writes a loss with this many decimals; "-" if the loss is NaN, because a rehearsal has no
 * loss. */
void glyphs_loss(float v, int decimals, char text[16]);
/* Returns the number of decimals for seconds of this size: 24.3, 0.24, 0.024. */
int glyphs_decimals(double seconds);
/* Writes a duration: "24ms", "0.9s", "14s", "3m07", "2h15". */
void glyphs_age(double seconds, char text[16]);
/* Writes a change: "+2%", "-13%"; "?" if base is 0. */
void glyphs_change(double base, double now, char text[16]);
/* Writes a time in UTC, as the Z in the header says: "14:02:07", or "11-28 14:02:07" if the day is
 * not that of now_us. */
void glyphs_clock(int64_t wall_us, int64_t now_us, char text[16]);

/* A row of words. If it is too long, the words of the lowest rank are dropped first. */
struct chip {
	char text[160];
	unsigned style;
	int rank; /* rank of the word; 9 is dropped last */
};
struct chips {
	struct chip chip[24];
	int n;
};
/* Appends a word; it is dropped if all places are taken. */
void chips_add(struct chips *c, int rank, unsigned style, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Draws the words that fit into w columns, with `gap` between them. Returns the columns used. */
int chips_draw(struct chips *c, struct screen *s, int x, int y, int w, const char *gap);

#endif
