/* metrics.h - the metrics of a run, as text for Prometheus. docs/monitoring.md lists them. */
#ifndef CONTROLLER_MONITOR_METRICS_H
#define CONTROLLER_MONITOR_METRICS_H

#include <stdbool.h>
#include <stddef.h>

struct view;

/* Returns the text and its length, in OpenMetrics or in Prometheus's own format. The caller frees
 * the text. */
char *metrics_text(const struct view *v, bool open_metrics, size_t *size);

#endif
