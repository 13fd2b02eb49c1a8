/* run_folder.h - finds the newest complete checkpoint of a run on many machines. */
#ifndef MODEL_PROGRAM_RUN_FOLDER_H
#define MODEL_PROGRAM_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Returns true if the folder belongs to a run and is not a model itself. */
bool run_folder_is_run(const char *folder);

/* Writes the path of a folder with the run's newest checkpoint to out. *temporary: true if the
 * caller must remove the folder; false if the run folder itself is used, because this user may not
 * write to it. Files that the folder lacks are copied from the agents' run folders `others` (n),
 * fetched from `store` (model/files/remote.h; NULL: none), or requested from the run's controller,
 * if the controller is running. -ENOENT: a file was not found anywhere; the message names it. */
int run_folder_checkpoint(const char *run, char *const *others, uint32_t n, const char *store,
			  char *out, size_t room, bool *temporary, struct error *err);

#endif
