/* settings.h - the options that a resumed run keeps, as JSON in its record. */
#ifndef CONTROLLER_RUN_SETTINGS_H
#define CONTROLLER_RUN_SETTINGS_H

#include <stdbool.h>

#include <jansson.h>

#include "base/error.h"
#include "controller/options.h"

struct run;

/* The two settings in the record that contain options. "options" has all options, and "controller"
 * has the options that a resumed run may change. */
enum settings_record { RECORD_OPTIONS, RECORD_CONTROLLER };

/* Returns the setting as JSON text, which the caller frees. The members of `rest` are added to the
 * text, and `rest` is freed. NULL: out of memory. */
char *settings_print(const struct options *p, enum settings_record in, json_t *rest);
/* Returns true if the JSON object has all options of this setting, with possible values. */
bool settings_fit(const json_t *o, enum settings_record in);
/* Takes the recorded options, except those that the command line sets. settings_fit(o, in) must
 * return true. */
void settings_take(struct options *p, const json_t *o, enum settings_record in);
/* Returns the setting "options" as text for the store, which the caller frees. NULL: out of
 * memory. */
char *resume_options(const struct run *run);
/* Loads the setting "options" from the store. */
int resume_options_again(struct run *run, struct error *err);

#endif
