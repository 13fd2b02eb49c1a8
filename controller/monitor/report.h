/* report.h - the status of a run for scripts, as JSON, and for people, as one screen.
 *
 * The JSON is an object with format "skippipe.status/1" (docs/monitoring.md). The controller
 * serves this JSON. `skippipe status` prints it as it is, or as a screen. */
#ifndef CONTROLLER_MONITOR_REPORT_H
#define CONTROLLER_MONITOR_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "base/error.h"
#include "controller/monitor/view.h"

/* Returns the status as a JSON object, which the caller releases. */
json_t *report_pack(const struct view *v);
/* Returns the status as JSON text, which the caller frees, and its length. */
char *report_text(const struct view *v, size_t *size);
/* Reads a text that report_text wrote. -EINVAL: the text is not a status in this format. */
int report_read(json_t **out, const char *text, size_t size, struct error *err);
/* Returns the run's health according to a status; VIEW_STOPPED if the status does not say. */
enum view_health report_health(const json_t *status);
/* Prints a status on one screen of 24 lines and 80 columns; long names may need more. Values that
 * are missing or of another type are omitted. */
void report_print(FILE *to, const json_t *status);

#endif
