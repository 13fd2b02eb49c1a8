/* run_reader.h - reads the losses of a recorded run from its folder on this machine.
 *
 * A run may have a million iterations, and its writer may be running. The reader therefore reads a
 * few thousand iterations a turn, once, up to the last one that was committed when it was opened.
 */
#ifndef TUI_RUN_READER_H
#define TUI_RUN_READER_H

#include "base/error.h"
#include "tui/run/other_runs.h"

struct run_reader; /* opaque */

/* Opens the run in a folder ("~/..." is the home folder) and gives `to` its name. *to must be zero.
 * The error names the folder: there is no run in it, or a run of another version. */
int run_reader_open(struct run_reader **out, const char *folder, struct other_run *to,
		    struct error *err);
/* Adds more points to the run. Returns 1 if there are more to read, 0 if it is complete. */
int run_reader_turn(struct run_reader *r, struct other_run *to, struct error *err);
/* r may be NULL. */
void run_reader_close(struct run_reader *r);

#endif
