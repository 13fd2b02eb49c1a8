/* choice_format.h - shows a choice, as a table for people or as JSON (`skippipe.choice/1`). */
#ifndef SCHEDULE_CHOICE_FORMAT_H
#define SCHEDULE_CHOICE_FORMAT_H

#include "schedule/fleet/choose.h"

/* tokens: number of tokens in the whole run; 0: unknown, so that the run's price is not shown. The
 * caller frees both texts. The JSON is NULL if memory runs out. */
char *choice_table(const struct choice *c, const struct choose_request *q, double tokens);
char *choice_json(const struct choice *c, const struct choose_request *q, double tokens);

#endif
