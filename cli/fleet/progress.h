/* progress.h - one line for each host, on a terminal or in a log.
 *
 * On a terminal the lines stay in place and change. Elsewhere, and if the terminal has too few
 * lines, each change is a line of its own.
 */
#ifndef CLI_FLEET_PROGRESS_H
#define CLI_FLEET_PROGRESS_H

#include <stddef.h>
#include <stdio.h>

#include "cli/fleet/hosts.h"

struct progress;

/* `to` remains open after progress_free. hosts: array of n, borrowed. */
struct progress *progress_new(FILE *to, const struct host *hosts, size_t n);
/* Changes the line of a host. */
void progress_set(struct progress *p, size_t host, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Prints a permanent line above the hosts' lines. */
void progress_print(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Frees p. The lines stay on the screen. */
void progress_free(struct progress *p);

#endif
