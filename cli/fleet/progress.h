/* progress.h - one line for each host, on a terminal or in a log.
 *
 * On a terminal, progress_set rewrites a host's line in place. In a log, or if the terminal has too
 * few rows, progress_set prints a new line.
 */
#ifndef CLI_FLEET_PROGRESS_H
#define CLI_FLEET_PROGRESS_H

#include <stddef.h>
#include <stdio.h>

#include "cli/fleet/hosts.h"

struct progress;

/* Shows the progress of n hosts, borrowed, on the stream `to`. progress_free leaves `to` open. */
struct progress *progress_new(FILE *to, const struct host *hosts, size_t n);
/* Changes the text of a host's line. */
void progress_set(struct progress *p, size_t host, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Prints a line that stays, above the hosts' lines. */
void progress_print(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Frees p and leaves the hosts' lines on the screen. */
void progress_free(struct progress *p);

#endif
