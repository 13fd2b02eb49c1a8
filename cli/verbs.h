/* verbs.h - what `skippipe VERB` runs: a program beside this one, found through its own path. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

struct verb {
	const char *name;
	const char *program; /* NULL: in this program itself */
	bool passed;         /* the program is told the verb, as its first argument */
	const char *summary;
};

const struct verb *verbs_find(const char *name); /* NULL: no such verb */
/* The verb a person most likely meant: at most two slips away, or begun so. NULL: none. */
const struct verb *verbs_nearest(const char *name);
void verbs_print(FILE *to); /* the overview of --help */

/* The path of a program beside this one. -ENOENT with a word on what to do; -ENAMETOOLONG. */
int verbs_program(const char *program, char *path, size_t room, struct error *err);

#endif
