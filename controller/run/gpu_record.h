/* gpu_record.h - the figures of a GPU as JSON, in the record and in the stream of events.
 */
#ifndef CONTROLLER_RUN_GPU_RECORD_H
#define CONTROLLER_RUN_GPU_RECORD_H

#include <jansson.h>

#include "base/error.h"
#include "base/gpu_figures.h"

/* Returns an object with the known figures, which the caller releases. Numbers have the names of
 * the struct's fields. `throttling` has the reasons as words. */
json_t *gpu_record_pack(const struct gpu_figures *g);
/* Reads the text of an object that gpu_record_pack made. -EINVAL: the text is not such an object,
 * or a figure exceeds its limit; *out is unchanged. */
int gpu_record_read(struct gpu_figures *out, const char *text, struct error *err);

#endif
