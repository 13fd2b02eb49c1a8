/* export.h - the console's state in forms that other programs read. Each function returns a text
 * that the caller frees.
 */
#ifndef TUI_EXPORT_H
#define TUI_EXPORT_H

#include "tui/screen/screen.h"
#include "tui/run/state.h"
#include "tui/screen/theme.h"

/* The picture, with the theme's colours; `dark`: on black, else on white. */
char *export_svg(const struct screen *s, const struct theme *t, bool dark);
/* One object a line: run, iterations, validations, notes. */
char *export_jsonl(const struct state *s);
/* The iterations, with a heading. */
char *export_csv(const struct state *s);
/* Chrome's trace format (Perfetto opens it): the tasks that are remembered and those planned, a
 * track a node; an arrow follows each microbatch of the iteration under way from task to task.
 */
char *export_trace(const struct state *s);

#endif
