/* golden.h - a state of the invented run (stream.h), and a comparison of its picture with a golden
 * file.
 *
 * A golden file holds the expected picture of a test.
 */
#ifndef TUI_TESTS_GOLDEN_H
#define TUI_TESTS_GOLDEN_H

#include "tui/run/state.h"
#include "tui/tests/stream.h"
#include "tui/input/ui.h"

/* Returns the state that the run has until_us microseconds after its start. The caller frees it
 * with state_free. */
struct state *golden_state(const struct stream_options *o, int64_t until_us);
/* Sets *u to a console that is attached to the run, with its clocks at until_us. */
void golden_ui(struct ui *u, const struct state *s, int64_t until_us);
/* Returns the state of the default run 1.7 s after its start. Attaches a console if u is not
 * NULL. */
struct state *golden_default(struct ui *u);
/* Returns the state of a run of `nodes` nodes that sends the tasks of one iteration, and attaches a
 * console. waves: as in struct stream_options. */
struct state *golden_waves(struct ui *u, uint32_t nodes, uint32_t waves, int64_t until_us);
/* Draws the screen, and compares its characters and styles with the files
 * tui/tests/golden/NAME-WxH.txt and .styles. If the environment has GOLDEN_UPDATE, writes the files
 * instead. */
void golden_check(const struct state *s, const struct ui *u, const char *name, int w, int h);

#endif
