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
	bool passed;         /* true: the program gets the verb as its first argument */
	const char *summary;
};

/* Returns the verb of this name; NULL if there is none. */
const struct verb *verbs_find(const char *name);
/* Returns the verb that the user probably meant: one that is at most two edits away, or begins with
 * `name`. NULL: no verb is similar. */
const struct verb *verbs_nearest(const char *name);
/* Prints the overview of --help. */
void verbs_print(FILE *to);

/* Copies the path of a program to `path`. The program is in the same folder as this program.
 * -ENOENT: the program is missing, and err says what to do. -ENAMETOOLONG: the path is too long. */
int verbs_program(const char *program, char *path, size_t room, struct error *err);

#endif
