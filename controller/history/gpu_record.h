/* gpu_record.h - the figures of a GPU as JSON, in the record and in the stream of events.
 */
#ifndef CONTROLLER_HISTORY_GPU_RECORD_H
#define CONTROLLER_HISTORY_GPU_RECORD_H

#include <jansson.h>

#include "base/error.h"
#include "base/gpu_figures.h"

/* Returns an object with the known figures, for the caller to release: numbers under the names of
 * the struct's fields, and `throttling` in words. */
json_t *gpu_record_pack(const struct gpu_figures *g);
/* Reads such an object's text. -EINVAL: it is none, or a figure is beyond its limit; *out is
 * untouched then. */
int gpu_record_read(struct gpu_figures *out, const char *text, struct error *err);

#endif
