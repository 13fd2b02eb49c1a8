/* installed.h - finds the folder of this program and the files that are installed with it.
 *
 * skippipe can be installed under any prefix, unpacked as a bundle into any folder, or run from its
 * build tree. Programs find each other and their files relative to their own place. */
#ifndef BASE_PROCESS_INSTALLED_H
#define BASE_PROCESS_INSTALLED_H

#include <stddef.h>

#include "base/error.h"

/* Writes the folder of the running program to `out`, which has `room` bytes. Programs that belong
 * together are in one folder. Returns 0, or a negative errno with the cause. */
int installed_folder(char *out, size_t room, struct error *err);

/* Writes the path of a file or folder that is installed with the program: share/skippipe/NAME
 * next to the program's folder or, in the build tree, `source` (relative to the tree's root;
 * NULL: the tree does not contain it). If neither exists, the path is below the PREFIX of the
 * build. */
void installed_path(const char *name, const char *source, char *out, size_t room);

#endif
