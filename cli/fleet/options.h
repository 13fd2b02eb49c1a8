/* options.h - the command line of `skippipe fleet`. */
#ifndef CLI_FLEET_OPTIONS_H
#define CLI_FLEET_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum fleet_verb { FLEET_UP, FLEET_STATUS, FLEET_LOGS, FLEET_DOWN };
enum { FLEET_ADDRESSES = 4, FLEET_FORGOTTEN = 64 };

/* The parsed command line; its texts are borrowed from argv. */
struct fleet_options {
	enum fleet_verb verb;
	const char *file;
	/* Run folder; NULL: the folder of the last `up`, or "run" at the first `up`. */
	const char *run_dir;
	/* The controller's machine; NULL: the machine of the last `up`, or this machine at the
	 * first `up`. */
	const char *controller;
	/* Archive of skippipe for the hosts; NULL: the archive next to this build. */
	const char *bundle;
	const char *addresses[FLEET_ADDRESSES];
	const char *forgotten[FLEET_FORGOTTEN]; /* names of hosts that are gone for good */
	unsigned n_addresses, n_forgotten, n_words, lines;
	int64_t wait_us;
	bool follow, purge;
	char *const *controller_words; /* the words after "--"; ends with NULL */
	char **words;                  /* the words before "--"; the caller frees the array */
};

/* Parses argv, the words after "fleet". Returns 0, 1 if the help was printed, or -EINVAL. */
int fleet_options_read(struct fleet_options *o, char **argv, struct error *err);

#endif
