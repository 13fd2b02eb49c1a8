/* prepare.h - looks at each host of a fleet, and copies skippipe to those that lack it. */
#ifndef CLI_FLEET_PREPARE_H
#define CLI_FLEET_PREPARE_H

#include <stdint.h>

#include "cli/fleet/fleet.h"

enum { SITE_WORD = 64 };

/* A machine of the fleet, and what its answers have shown. */
struct site {
	enum {
		SITE_UNKNOWN,
		SITE_LACKS, /* the host has answered, and has no skippipe of this version */
		SITE_FITS,
		SITE_RUNS, /* the host fits, and its agent already runs */
		SITE_FAILED
	} state;
	char arch[SITE_WORD], system[SITE_WORD], stamp[SITE_WORD];
	/* Paths on the host: of the program that was found, and of the bundle */
	char program[1024], bundle[1024];
	uint64_t free_kib;
	bool is_unit;       /* the host's agent was started as a unit of systemd */
	uint64_t log_bytes; /* size of the agent's log when this `up` began */
	size_t gpus;        /* number of GPUs that the agent found; 0 if it was not asked */
};

/* Takes the number of GPUs from a host's answer, which may be any text. */
void prepare_take_gpus(struct site *s, const char *text);
/* Fills sites, one for each of f->n_sites machines. A host that fails gets the state SITE_FAILED,
 * and its line says why. A negative errno means that no host could be prepared. */
int prepare_sites(struct fleet *f, struct site *sites, struct error *err);

#endif
