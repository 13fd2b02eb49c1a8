/* golden.h - a state from the made-up run, a picture of it, and its comparison with a kept one.
 */
#ifndef TUI_TESTS_GOLDEN_H
#define TUI_TESTS_GOLDEN_H

#include "tui/run/state.h"
#include "tui/tests/stream.h"
#include "tui/input/ui.h"

/* The run as told until `until_us` after its start (controller's clock). Fails the test when
 * out of memory. Free with state_free. */
struct state *golden_state(const struct stream_options *o, int64_t until_us);
/* A console attached to it, its clocks at the same instant. */
void golden_ui(struct ui *u, const struct state *s, int64_t until_us);
/* Draws and compares glyphs and styles with tui/tests/golden/NAME-WxH.{txt,styles}. With
 * GOLDEN_UPDATE set in the environment the files are written instead. */
void golden_check(const struct state *s, const struct ui *u, const char *name, int w, int h);

#endif
