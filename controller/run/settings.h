/* settings.h - the options that a resumed run keeps, as JSON in its record. */
#ifndef CONTROLLER_RUN_SETTINGS_H
#define CONTROLLER_RUN_SETTINGS_H

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"
#include "controller/options.h"

struct run;

/* The entries of the record that have options: "options" has all of them, "controller" those that a
 * resumed run may change. */
enum settings_record { RECORD_OPTIONS, RECORD_CONTROLLER };

/* Returns the entry as text (free it), with the members of rest, which is freed. NULL: out of
 * memory. */
char *settings_print(const struct options *p, enum settings_record in, json_t *rest);
/* Returns true if the entry has all of its options, with possible values. */
bool settings_fit(const json_t *o, enum settings_record in);
/* Takes the recorded options, except those that the command line sets. settings_fit(o, in) must
 * hold. */
void settings_take(struct options *p, const json_t *o, enum settings_record in);
/* Returns the entry "options" as text for the store (free it). NULL: out of memory. */
char *resume_options(const struct run *run);
/* Loads the entry "options" from the store. */
int resume_options_again(struct run *run, struct error *err);

#endif
