/* plan_options.h - the command line of `plan`. */
#ifndef PLANNER_PLAN_OPTIONS_H
#define PLANNER_PLAN_OPTIONS_H

#include "planner/program.h"
#include "schedule/search/search.h"

struct plan_options {
	const char *cluster, *from, *without, *output, *always, *skip_share;
	const char *schedule, *recipe; /* --skip-schedule, --recipe; NULL: not given */
	const char *model;             /* --model, which only --hours uses; NULL: not given */
	double hours;                  /* length of the run in hours; 0: not given */
	int iterations;                /* length of the run in iterations; 0: not given */
	bool stack, as_table, has_format;
	int skip;   /* number of skipped stages; -1: not given */
	int stages; /* number of stages, the S of --skip K/S; 0: not given */
	struct wires wires;
	struct plan_request request;
};

/* Checks every option and all combinations of options, without reading the cluster. Returns 0: the
 * options are valid; -1: the help was printed; otherwise the exit status, after printing the
 * error. */
int plan_options_parse(struct plan_options *o, int argc, char **argv);

#endif
