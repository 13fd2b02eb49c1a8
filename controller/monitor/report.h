/* report.h - the status of a run for scripts, as JSON, and for people, as one screen.
 *
 * The JSON is an object with format "skippipe.status/1" (docs/monitoring.md). The controller serves
 * it; skippipe status prints it, or the screen that is made of it.
 */
#ifndef CONTROLLER_MONITOR_REPORT_H
#define CONTROLLER_MONITOR_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "base/error.h"
#include "controller/monitor/view.h"

/* Returns the status as an object, for the caller to release. */
json_t *report_pack(const struct view *v);
/* Returns the status as text, which the caller frees, and its length. */
char *report_text(const struct view *v, size_t *size);
/* Reads a text that report_text wrote. -EINVAL: it is no status of this format. */
int report_read(json_t **out, const char *text, size_t size, struct error *err);
/* Returns the health in a status; VIEW_STOPPED if it has none. */
enum view_health report_health(const json_t *status);
/* Prints a status on one screen: 24 lines of 80 columns, but for long names. Values that are
 * missing or of another type are omitted. */
void report_print(FILE *to, const json_t *status);

#endif
