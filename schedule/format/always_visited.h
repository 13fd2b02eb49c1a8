/* always_visited.h - the key "always_visited" of clusters and plans. Internal to schedule/. */
#ifndef SCHEDULE_ALWAYS_VISITED_H
#define SCHEDULE_ALWAYS_VISITED_H

#include <jansson.h>

#include "base/error.h"
#include "base/stage_set.h"

/* Reads the stages under "always_visited". Without the key, *out is stage 0 alone. -EINVAL: the
 * value is not a list of stages below n_stages. */
int always_visited_read(const json_t *root, int n_stages, stage_set *out, struct error *err);
/* Adds "always_visited" to the object unless the set is stage 0 alone. */
void always_visited_write(json_t *root, stage_set set);

#endif
