/* option_rows.h - the options of skippipe-model's verbs, as one table. */
#ifndef MODEL_PROGRAM_OPTION_ROWS_H
#define MODEL_PROGRAM_OPTION_ROWS_H

#include "base/process/options.h"

/* Returns the table of a verb, which fills a struct options (model/program/options.h). intro: the
 * beginning of its help. Both texts are borrowed. All tables have the same rows. */
struct options_table option_rows_of(const char *verb, const char *intro);

#endif
