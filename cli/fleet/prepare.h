/* prepare.h - looks at each host of a fleet, and copies skippipe to those that lack it. */
#ifndef CLI_FLEET_PREPARE_H
#define CLI_FLEET_PREPARE_H

#include <stdint.h>

#include "cli/fleet/fleet.h"

enum { SITE_WORD = 64 };

/* A machine, as far as it has answered. */
struct site {
	enum {
		SITE_UNKNOWN,
		SITE_LACKS, /* it answers, and has no skippipe of this version */
		SITE_FITS,
		SITE_RUNS, /* it fits, and its agent runs */
		SITE_FAILED
	} state;
	char arch[SITE_WORD], system[SITE_WORD], stamp[SITE_WORD];
	char program[1024], bundle[1024]; /* paths: of the program found, and of a bundle's */
	uint64_t free_kib;
	bool is_unit;       /* its agent was started as a unit of systemd */
	uint64_t log_bytes; /* size of its agent's log before this `up` */
	size_t gpus;        /* the agent's devices of that kind, as far as they were asked for */
};

/* Takes the number of GPUs that a host reports, which may be any text. */
void prepare_take_gpus(struct site *s, const char *text);
/* Fills sites (f->n_sites). A host that fails has SITE_FAILED, and its line says why. Negative
 * errno: nothing can be done at all. */
int prepare_sites(struct fleet *f, struct site *sites, struct error *err);

#endif
