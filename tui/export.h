/* export.h - makes texts of the console's state for other programs. The caller frees each text. */
#ifndef TUI_EXPORT_H
#define TUI_EXPORT_H

#include "tui/screen/screen.h"
#include "tui/run/state.h"
#include "tui/screen/theme.h"

/* Returns the screen as SVG in the theme's colours, on a dark background if `dark` is true,
 * otherwise on white. */
char *export_svg(const struct screen *s, const struct theme *t, bool dark);
/* Returns the run, iterations, validations and notes as JSON, one object a line. */
char *export_jsonl(const struct state *s);
/* Returns the iterations as CSV, with a header line. */
char *export_csv(const struct state *s);
/* Returns the tasks in the console's memory and the planned tasks in Chrome's trace format, which
 * Perfetto opens. Each node has a track. An arrow joins the tasks of each microbatch of the current
 * iteration. */
char *export_trace(const struct state *s);

#endif
