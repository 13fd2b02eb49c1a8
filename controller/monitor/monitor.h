/* monitor.h - what watches a run without a console: the HTTP server of --metrics, and the calls of
 * --on-alert and --alert-url. */
#ifndef CONTROLLER_MONITOR_MONITOR_H
#define CONTROLLER_MONITOR_MONITOR_H

#include "base/error.h"

struct controller;
struct monitor; /* opaque */

/* Starts what the options ask for. c->monitor stays NULL if they ask for nothing. */
int monitor_start(struct controller *c, struct error *err);
/* Copies the state for the server once a second, and reports calls that failed. Never waits. */
void monitor_turn(struct controller *c);
/* Reports the last alerts, within seconds, and ends the server. */
void monitor_stop(struct controller *c);

#endif
