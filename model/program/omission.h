/* omission.h - the stages that an evaluation skips. */
#ifndef MODEL_OMISSION_H
#define MODEL_OMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/stage_set.h"
#include "model/program/options.h"

enum { OMISSION_STAGES = 1024 };

/* Stages to skip: the stages in `out`, and `more` further stages, which are drawn at random from
 * the stages outside `always` and `out`. */
struct omission {
	bool out[OMISSION_STAGES];
	uint32_t more;
	stage_set always;
};

/* Reads --omit, --omit-fraction, --always and --exit-after for the model in o->config. -EINVAL: a
 * stage does not exist, or must not be skipped. */
int omission_parse(struct omission *m, const struct options *o, struct error *err);

/* Checks --exit-after for the model in o->config. -EINVAL: it has no such stage. */
int omission_check_exit(const struct options *o, struct error *err);

/* Draws the random stages. Writes the visited stages, without stage 0, to path (OMISSION_STAGES),
 * and returns their number. */
uint32_t omission_draw(const struct omission *m, uint32_t n_stages, struct rng *r, uint32_t *path);

#endif
