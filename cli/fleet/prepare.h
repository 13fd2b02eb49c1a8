/* prepare.h - checks each host of a fleet, and copies skippipe to the hosts that lack it. */
#ifndef CLI_FLEET_PREPARE_H
#define CLI_FLEET_PREPARE_H

#include <stdint.h>

#include "cli/fleet/fleet.h"

enum { SITE_WORD = 64 };

/* A machine of the fleet, with the answers that it has given. */
struct site {
	enum {
		SITE_UNKNOWN,
		SITE_LACKS, /* the host has answered and needs a copy of skippipe of this version */
		SITE_FITS,
		SITE_RUNS, /* the host has skippipe of this version, and its agent already runs */
		SITE_FAILED
	} state;
	char arch[SITE_WORD], system[SITE_WORD], stamp[SITE_WORD];
	/* Paths on the host: of the program skippipe that was found, and of the program in the
	 * bundle. */
	char program[1024], bundle[1024];
	uint64_t free_kib;
	bool has_key;       /* the host has the key of its agent, from an earlier `up` */
	bool is_unit;       /* systemd runs the host's agent as a unit */
	uint64_t log_bytes; /* size of the agent's log when this `up` began */
	/* Number of GPUs in the host's answer; 0 if it did not answer that question. */
	size_t gpus;
};

/* Takes the number of GPUs from the text that a host has sent. The text may be hostile. */
void prepare_take_gpus(struct site *s, const char *text);
/* Prepares f->n_sites machines and fills in `sites`, one for each. A host that fails gets the state
 * SITE_FAILED, and its line on the screen says why. A negative errno means that no host could be
 * prepared. */
int prepare_sites(struct fleet *f, struct site *sites, struct error *err);

#endif
