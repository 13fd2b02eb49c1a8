/* choice_format.h - shows a choice, as a table for people or as JSON (`skippipe.choice/1`). */
#ifndef SCHEDULE_CHOICE_FORMAT_H
#define SCHEDULE_CHOICE_FORMAT_H

#include "schedule/fleet/choose.h"

/* tokens: of the whole run; 0: unknown, and its price is not shown. Both texts are to be freed; the
 * JSON is NULL if memory runs out. */
char *choice_table(const struct choice *c, const struct choose_request *q, double tokens);
char *choice_json(const struct choice *c, const struct choose_request *q, double tokens);

#endif
