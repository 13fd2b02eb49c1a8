/* system_tree.h - a folder with made-up files of /proc, /sys, /etc and /dev. */
#ifndef DOCTOR_TESTS_SYSTEM_TREE_H
#define DOCTOR_TESTS_SYSTEM_TREE_H

#include "doctor/finding.h"

struct system_tree {
	char root[64];
};

void tree_make(struct system_tree *t);
void tree_remove(struct system_tree *t);
/* Writes a file and creates the folders in its path. */
void tree_put(const struct system_tree *t, const char *path, const char *text);

/* Fails unless the check has a finding of this level whose description contains `found` and whose
 * remedy contains `remedy`. */
void must_find(const struct findings *f, const char *check, enum finding_level level,
	       const char *found, const char *remedy);
/* Fails unless the check has only findings of this level, one or more. */
void must_be(const struct findings *f, const char *check, enum finding_level level);

#endif
