/* exposition.h - writes metrics as text for Prometheus, in Prometheus's format (0.0.4) or in
 * OpenMetrics (1.0.0).
 *
 *     exposition_begin(&e, open_metrics);
 *     exposition_family(&e, METRIC_GAUGE, "skippipe_nodes", "Nodes by state.");
 *     exposition_add(&e, 5, "state", "live", NULL);
 *     text = exposition_end(&e, &size);
 *
 * The name of a counter ends with _total, the name of an info metric with _info. A name that ends
 * with a base unit (_seconds, _bytes, _ratio, _celsius, _watts) gets its UNIT line in OpenMetrics.
 */
#ifndef CONTROLLER_MONITOR_EXPOSITION_H
#define CONTROLLER_MONITOR_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_INFO };

struct exposition {
	bool open_metrics;
	const char *family; /* name of the family; borrowed until the next one begins */
	char *text;         /* array of n bytes, malloc */
	size_t n, room;
};

void exposition_begin(struct exposition *e, bool open_metrics);
/* Begins a family. The samples that are added next belong to this family. Each name may be used
 * only once in a text. */
void exposition_family(struct exposition *e, enum metric_type type, const char *name,
		       const char *help);
/* Adds a sample with labels: pairs of a name and a value, then NULL. The values are UTF-8 and may
 * contain any character. */
void exposition_add(struct exposition *e, double value, ...) __attribute__((sentinel));
/* Returns the text, which the caller frees, and its length. */
char *exposition_end(struct exposition *e, size_t *size);

#endif
