/* text_files.h - checks the files of a corpus. */
#ifndef DOCTOR_TEXT_FILES_H
#define DOCTOR_TEXT_FILES_H

#include <stddef.h>

#include "doctor/finding.h"

/* Reads the n > 0 files and adds the finding "corpus". `expected`: the hash that the corpus must
 * have, as hex digits. NULL: the finding reports the hash and compares nothing. */
void text_files_check(struct findings *f, char *const *paths, size_t n, const char *expected);

#endif
