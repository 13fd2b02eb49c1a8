/* demo_options.h - the command lines of `skippipe demo` and `skippipe rehearse`. */
#ifndef CLI_DEMO_OPTIONS_H
#define CLI_DEMO_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/args.h"

enum { DEMO_AGENTS_MOST = 1000, DEMO_STAGES_MOST = 64 };

struct demo_options {
	uint32_t agents;
	uint32_t started; /* number of agents that start with the run; 0: all */
	uint32_t skip;    /* number of stages that a microbatch skips */
	uint32_t n_stages;
	/* Array of n_stages: number of nodes in each stage */
	uint32_t stages[DEMO_STAGES_MOST];
	bool headless;
	bool help;
	bool rehearse; /* true: the agents only pretend to compute */
	/* File of a rehearsal's cluster; NULL: a cluster in 12 cloud regions. */
	const char *cluster;
	/* File of machines among which a rehearsal chooses (rehearse.c); NULL: none. */
	const char *fleet;
	/* Format in which a run without a console prints its events: "text" or "jsonl". */
	const char *format;
	const char *device;     /* NULL: the agent's default */
	const char *recompute;  /* NULL: the agent's default */
	const char *algorithm;  /* NULL: the controller's default */
	const char *run_dir;    /* NULL: a new run folder is made */
	const char *price;      /* file of prices; NULL: none */
	const char *theme;      /* NULL: the console's default */
	/* Options that are passed to the controller unchanged. */
	struct args controller;
	/* Options among `controller` that a controller needs again when it resumes the run. */
	struct args again;
};

/* Parses the command line into *o, which demo_options_free releases. rehearse: the options are
 * those of `skippipe rehearse`. argv: the verb and the words after it; ends with NULL; its order
 * may change. *o borrows texts from argv. -EINVAL: wrong usage. Errors of a rehearsal's cluster
 * file are those of cluster_size.h. */
int demo_options_parse(struct demo_options *o, bool rehearse, char **argv, struct error *err);
void demo_options_free(struct demo_options *o);

/* Distributes n nodes over n_stages. About a quarter are data nodes (stage 0), and the other stages
 * get equal numbers: 20 nodes on 6 stages are 5,3,3,3,3,3. -EINVAL: fewer nodes than stages. Public
 * for tests. */
int demo_deal_stages(uint32_t n, uint32_t n_stages, uint32_t *stages, struct error *err);

void demo_options_help(bool rehearse, FILE *to);

#endif
