/* verbs.h - the verbs of `skippipe VERB` and the programs that implement them. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

struct verb {
	const char *name;
	const char *program; /* program that carries out the verb; NULL: this program */
	bool passed;         /* the program gets the verb as its first argument */
	const char *summary;
};

/* Returns NULL when there is no such verb. */
const struct verb *verbs_find(const char *name);
/* Returns the verb that the user most likely meant: at most two edits away, or a verb that begins
 * with `name`. NULL: none. */
const struct verb *verbs_nearest(const char *name);
/* Prints the overview of --help. */
void verbs_print(FILE *to);

/* Gives the path of a program in this program's own folder. -ENOENT: it is not there, and err says
 * what to do; -ENAMETOOLONG: the path is too long. */
int verbs_program(const char *program, char *path, size_t room, struct error *err);

#endif
