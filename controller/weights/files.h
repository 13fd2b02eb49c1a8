/* files.h - sends the agents files that their machines lack: stages of the first weights and of
 * checkpoints, and the corpus. */
#ifndef CONTROLLER_WEIGHTS_FILES_H
#define CONTROLLER_WEIGHTS_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct backups;
struct member;

/* Returns true if this machine has the stage's file of the checkpoint, or if the store may have the
 * file. */
bool files_has_stage(const struct backups *backups, uint64_t iteration, int stage);
/* Answers an agent's request for a part of a file. */
void files_asked(struct backups *backups, struct member *m, const struct msg_file_ask *ask);

#endif
