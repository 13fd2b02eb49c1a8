/* skip_recipe.h - named ways to skip stages during a run (--recipe). */
#ifndef BASE_SKIP_RECIPE_H
#define BASE_SKIP_RECIPE_H

#include <stdint.h>

#include "base/error.h"

enum { SKIP_RECIPE_TEXT = 96 }; /* bytes that hold any schedule of a recipe */

/* Writes the skip schedule (skip_schedule_parse) of a recipe for a run in which `droppable` stages
 * may be skipped. The first and the last stage are always visited, and the others start from their
 * nearest trained neighbours. -EINVAL: there is no such recipe, or no stage may be skipped. */
int skip_recipe_schedule(char out[SKIP_RECIPE_TEXT], const char *name, uint32_t droppable,
			 struct error *err);

#endif
