/* hours_format.h - what recipes reach in a given time, as a table and as JSON. */
#ifndef PLANNER_HOURS_FORMAT_H
#define PLANNER_HOURS_FORMAT_H

#include "schedule/recipes/hours.h"

/* Returns a table for people, to be freed. hours: time of the run. */
char *hours_table(const struct hours_row rows[RECIPES], const struct cluster *c, double hours);
/* Returns the JSON text `skippipe.hours/1` (docs/formats.md), to be freed. NULL: out of memory. */
char *hours_json(const struct hours_row rows[RECIPES], const struct cluster *c, double hours);

#endif
