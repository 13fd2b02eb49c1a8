/* export.h - the console's state in forms that other programs read. Each function returns a text
 * that the caller frees.
 */
#ifndef TUI_EXPORT_H
#define TUI_EXPORT_H

#include "tui/screen/screen.h"
#include "tui/run/state.h"
#include "tui/screen/theme.h"

/* Returns the screen in the theme's colours, on a black background if `dark`, otherwise on
 * white. */
char *export_svg(const struct screen *s, const struct theme *t, bool dark);
/* Returns one JSON object in each line: run, iterations, validations, notes. */
char *export_jsonl(const struct state *s);
/* Returns the iterations as CSV, with a header line. */
char *export_csv(const struct state *s);
/* Returns Chrome's trace format, which Perfetto opens: the tasks in the console's memory and the
 * planned tasks, with one track for each node. An arrow follows each microbatch of the current
 * iteration from task to task. */
char *export_trace(const struct state *s);

#endif
