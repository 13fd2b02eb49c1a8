/* golden.h - a state of the invented run, its picture, and the comparison with a golden file. */
#ifndef TUI_TESTS_GOLDEN_H
#define TUI_TESTS_GOLDEN_H

#include "tui/run/state.h"
#include "tui/tests/stream.h"
#include "tui/input/ui.h"

/* Returns the state of the run `until_us` after its start (controller's clock). Free it with
 * state_free. */
struct state *golden_state(const struct stream_options *o, int64_t until_us);
/* Gives a console attached to the run, with its clocks at the same time. */
void golden_ui(struct ui *u, const struct state *s, int64_t until_us);
/* Draws the screen and compares glyphs and styles with tui/tests/golden/NAME-WxH.{txt,styles}. If
 * GOLDEN_UPDATE is in the environment, the files are written instead. */
void golden_check(const struct state *s, const struct ui *u, const char *name, int w, int h);

#endif
