/* skip_recipe.c - named ways to skip stages during a run.
 *
 * Both grow the model from its two ends: at first only the stages that are always visited are
 * trained. `speed` then visits every stage. `robust` then lets 30% of the microbatches skip half of
 * the stages that may be skipped, so that the finished model bears the loss of some.
 * docs/convergence.md has the measured costs and gains. */
#include "base/skip_recipe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int skip_recipe_schedule(char out[SKIP_RECIPE_TEXT], const char *name, uint32_t droppable,
			 struct error *err)
{
	if (droppable == 0)
		return error_set(err, -EINVAL,
				 "--recipe %s: it needs a stage between the first and the last "
				 "that may be skipped",
				 name);
	if (strcmp(name, "speed") == 0)
		snprintf(out, SKIP_RECIPE_TEXT, "%" PRIu32 "@0,0@30%%", droppable);
	else if (strcmp(name, "robust") == 0)
		snprintf(out, SKIP_RECIPE_TEXT, "%" PRIu32 "@0,30%%:%" PRIu32 "@30%%", droppable,
			 (droppable + 1) / 2);
	else
		return error_set(err, -EINVAL, "--recipe %s: expected speed or robust", name);
	return 0;
}
