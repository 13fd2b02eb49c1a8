/* run_reader.h - reads the losses of a recorded run from its folder on this machine.
 *
 * A run may have a million iterations, and a controller may still write it. The reader therefore
 * reads a few thousand iterations a turn. It stops at the iteration that was the last one when the
 * reader was opened.
 */
#ifndef TUI_RUN_READER_H
#define TUI_RUN_READER_H

#include "base/error.h"
#include "tui/run/other_runs.h"

struct run_reader; /* opaque */

/* Opens the run in a folder; "~/" stands for the home folder. Sets the name and the number of
 * iterations in *to, which must be zero. If the folder has no run, or a run of another version, the
 * error says this. */
int run_reader_open(struct run_reader **out, const char *folder, struct other_run *to,
		    struct error *err);
/* Reads more losses into *to. Returns 1 if there are more to read, 0 if all are read, or a negative
 * errno. */
int run_reader_turn(struct run_reader *r, struct other_run *to, struct error *err);
/* Closes the reader; r may be NULL. */
void run_reader_close(struct run_reader *r);

#endif
