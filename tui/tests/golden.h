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
/* Returns the run with the default options 1.7 s after its start. Attaches a console unless u is
 * NULL. */
struct state *golden_default(struct ui *u);
/* Returns a run of that many nodes that sends the tasks of one iteration, and attaches a console.
 * waves: as in struct stream_options. */
struct state *golden_waves(struct ui *u, uint32_t nodes, uint32_t waves, int64_t until_us);
/* Draws the screen and compares glyphs and styles with tui/tests/golden/NAME-WxH.{txt,styles}. If
 * GOLDEN_UPDATE is in the environment, the files are written instead. */
void golden_check(const struct state *s, const struct ui *u, const char *name, int w, int h);

#endif
