/* glyphs.h - the appearance of nodes, tasks and times. All views take characters, words and styles
 * from here.
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
	char word[12];   /* what the node does: "m07", "idle" or "FAIL" */
	uint32_t queued; /* number of tasks that wait at the node */
};

/* Sets *out to the appearance of a node: its current task or its problem. */
void glyphs_node(struct node_glyph *out, const struct state *s, const struct state_node *n);
/* Returns the character of a task that has run, on a timeline: = # L v. */
char glyphs_task_glyph(enum task_kind k);
/* Returns the character of a planned task: '-' or ':'. */
char glyphs_task_planned(enum task_kind k);
char glyphs_task_letter(enum task_kind k); /* returns the letter of a kind of task: F, B, L or V */
/* Return the style of a task's letter, and the style of its bar. */
enum style glyphs_task_style(enum task_kind k);
enum style glyphs_bar_style(enum task_kind k);

/* Writes the progress of the present step before the first iteration, such as "round 7 of 21, about
 * 15 s left"; "" if it is unknown. */
void glyphs_step(const struct state *s, char text[64]);

/* Writes a number in short form: "1.3M", "14.4k", "812". */
void glyphs_count(double v, char text[16]);
/* Writes a loss with `decimals` decimals; "-" for NaN, which a rehearsal has instead of a loss. */
void glyphs_loss(float v, int decimals, char text[16]);
/* Returns how many decimals a duration of this size needs: 24.3, 0.24, 0.024. */
int glyphs_decimals(double seconds);
/* Writes a duration: "24ms", "0.9s", "14s", "3m07", "2h15". */
void glyphs_age(double seconds, char text[16]);
/* Writes the relative change from base to now: "+2%", "-13%"; "?" if base is 0. */
void glyphs_change(double base, double now, char text[16]);
/* Writes a time in UTC: "14:02:07", or "11-28 14:02:07" if its day is not that of now_us. */
void glyphs_clock(int64_t wall_us, int64_t now_us, char text[16]);

/* A word of a row. If the row is too long, words of low rank are dropped first. */
struct chip {
	char text[160];
	unsigned style;
	int rank; /* words of rank 9 are dropped last */
};
struct chips {
	struct chip chip[24];
	int n;
};
/* Appends a word to a row. Drops the word if the row is full. */
void chips_add(struct chips *c, int rank, unsigned style, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Draws the words that fit into w columns, with the text `gap` between them. Returns the number of
 * columns used. */
int chips_draw(struct chips *c, struct screen *s, int x, int y, int w, const char *gap);

#endif
