/* monitor.h - watches a run without a console: the HTTP server of --metrics, and the calls of
 * --on-alert and --alert-url. */
#ifndef CONTROLLER_MONITOR_MONITOR_H
#define CONTROLLER_MONITOR_MONITOR_H

#include "base/error.h"

struct operators;
struct monitor; /* opaque */

/* Starts the server and the alerts that the run's options request. *out stays unchanged if the
 * options request neither. Otherwise *out is set even if the start fails, and monitor_stop frees
 * *out. ops must outlive *out. */
int monitor_start(struct monitor **out, const struct operators *ops, struct error *err);
/* Copies the state for the server once a second, and reports calls that failed. Never waits. */
void monitor_turn(struct monitor *m); /* NULL is allowed */
/* Reports the last alerts, which takes some seconds at most, and ends the server. */
void monitor_stop(struct monitor *m); /* NULL is allowed */

#endif
