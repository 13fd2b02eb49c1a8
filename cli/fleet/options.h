/* options.h - the command line of `skippipe fleet`. */
#ifndef CLI_FLEET_OPTIONS_H
#define CLI_FLEET_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum fleet_verb { FLEET_UP, FLEET_STATUS, FLEET_LOGS, FLEET_DOWN };
enum { FLEET_ADDRESSES = 4, FLEET_FORGOTTEN = 64 };

/* Texts are borrowed from argv. */
struct fleet_options {
	enum fleet_verb verb;
	const char *file;
	/* Run folder; NULL: that of the last `up`, or "run" for `up` itself */
	const char *run_dir;
	/* Controller's machine; NULL: that of the last `up`, or this machine for `up` itself */
	const char *controller;
	const char *bundle; /* path of the archive; NULL: the archive beside this build */
	const char *addresses[FLEET_ADDRESSES];
	const char *forgotten[FLEET_FORGOTTEN]; /* names of hosts that are gone for good */
	unsigned n_addresses, n_forgotten, n_words, lines;
	int64_t wait_us;
	bool follow, purge;
	char *const *controller_words; /* the words after "--"; ends with NULL */
	char **words;                  /* the words before "--"; the caller frees the array */
};

/* argv: the words after "fleet". Returns 0; 1: the help was printed; -EINVAL. */
int fleet_options_read(struct fleet_options *o, char **argv, struct error *err);

#endif
