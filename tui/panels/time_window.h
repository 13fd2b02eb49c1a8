/* time_window.h - the time axis of the views Timeline and Microbatches: the time that each column
 * stands for. */
#ifndef TUI_TIME_WINDOW_H
#define TUI_TIME_WINDOW_H

#include "tui/input/ui.h"
#include "tui/run/state.h"
#include "tui/screen/screen.h"

struct time_window {
	int64_t from_us;   /* time of the first column, on the controller's clock */
	int64_t column_us; /* length of time that a column stands for; > 0 */
	int64_t now_us;
	/* Time at which the plan's iteration begins; planned times count from it. */
	int64_t origin_us;
	int columns;
	bool plan; /* planned tasks should be drawn */
};

/* Returns the time axis of the current iteration or, between two iterations, of the previous one.
 * Its length is the predicted time of the iteration. If the iteration takes longer, the length
 * grows in steps. */
struct time_window time_window_make(const struct state *s, const struct ui *u, int columns);
/* Returns the column of a time; -1: before the window; w->columns: after it. */
int time_column(const struct time_window *w, int64_t t_us);
/* Draws the axis: the present time, the end of the what-if (`other`; NULL: none), and times where
 * there is room. */
void time_window_axis(struct screen *out, int x, int y, const struct time_window *w,
		      const struct state *s, const struct state_plan *other);

#endif
