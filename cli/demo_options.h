/* demo_options.h - the command line of `skippipe demo`. */
#ifndef CLI_DEMO_OPTIONS_H
#define CLI_DEMO_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/args.h"

enum { DEMO_AGENTS_MOST = 1000, DEMO_STAGES_MOST = 64 };

struct demo_options {
	uint32_t agents;
	uint32_t skip; /* stages left out */
	uint32_t n_stages;
	uint32_t stages[DEMO_STAGES_MOST]; /* (n_stages) nodes in each */
	bool headless;
	bool help;
	const char *format;     /* of a headless run: "text", "jsonl" */
	const char *device;     /* NULL: the agent's default */
	const char *recompute;  /* likewise */
	const char *algorithm;  /* NULL: the controller's default */
	const char *run_dir;    /* NULL: made */
	const char *theme;      /* NULL: the console's default */
	struct args controller; /* passed on as they are */
	struct args again;      /* those of them that a controller is told which goes on with the run */
};

/* Fills *o; demo_options_free what it holds. Pointers into argv. -EINVAL: usage. */
int demo_options_parse(struct demo_options *o, char **argv, struct error *err);
void demo_options_free(struct demo_options *o);

/* Deals n nodes over n_stages: about a quarter are data nodes, the rest is spread evenly; 20 over 6
 * are 5,3,3,3,3,3. -EINVAL: fewer nodes than stages. Public for tests. */
int demo_deal_stages(uint32_t n, uint32_t n_stages, uint32_t *stages, struct error *err);

extern const char demo_help[];

#endif
