/* fleet_options.h - the command line of `plan --fleet`. */
#ifndef PLANNER_FLEET_OPTIONS_H
#define PLANNER_FLEET_OPTIONS_H

#include "planner/program.h"
#include "schedule/fleet/choose.h"

struct fleet_options {
	const char *fleet, *model, *cards, *regions, *output;
	bool as_json;
	int iterations; /* iterations of the run; 0: not given */
	int batch;      /* sequences in an iteration; 0: not given */
	struct wires wires;
	struct choose_request request; /* the request to choose(), without its fleet and model */
};

extern const struct options_table options_of_fleet;

/* Returns true if the command line has the option --fleet. */
bool fleet_options_given(int argc, char **argv);
/* Returns 0: the options are valid; -1: the help was printed; otherwise the exit status, after
 * printing the error. */
int fleet_options_parse(struct fleet_options *o, int argc, char **argv);

#endif
