/* repeat_check.h - runs the same passes again and again. All runs must give the same bits. */
#ifndef MODEL_TESTS_REPEAT_CHECK_H
#define MODEL_TESTS_REPEAT_CHECK_H

#include <stdint.h>

#include "model/stage.h"

/* Runs a forward and a backward pass of one layer of the model `times` times on equal inputs. o:
 * device, batch and sequence. *differing: number of runs whose output, gradient of the input, or
 * gradient of a weight differs from the first run's. Errors as stage_new's, -ENOMEM, and -EIO for a
 * device that fails. */
int repeat_check(const struct model_config *c, const struct stage_options *o, unsigned times,
		 unsigned *differing, struct error *err);

#endif
