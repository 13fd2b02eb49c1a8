/* files.h - fetches files from the controller, and sends it the files of this node's checkpoints.
 * One file is fetched at a time. */
#ifndef AGENT_FILES_H
#define AGENT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/tell.h"
#include "wire/msg.h"
#include "wire/transfer.h"

struct files; /* opaque */

/* agent_options explains run_dir. Both arguments are borrowed until files_free. */
struct files *files_new(struct tell *tell, const char *run_dir);
void files_free(struct files *f); /* NULL is allowed */

/* Returns the folder for files from the controller: this agent's run folder, or a temporary folder,
 * which is removed with the agent. NULL: the folder cannot be made. */
const char *files_folder(struct files *f);
/* Fetches the file that `ask` names, and writes it to path. Cancels a fetch that is under way. */
void files_fetch(struct files *f, const struct msg_file_ask *ask, const char *path, int64_t now_us);
/* Returns the state, name and path of the file that was requested last. */
const struct transfer *files_fetched(const struct files *f);
void files_cancel(struct files *f);

void files_part_arrived(struct files *f, const struct msg *m, int64_t now_us);
/* Answers the controller's request for a part of a file of a checkpoint. */
void files_asked(struct files *f, const struct msg_file_ask *ask, int64_t now_us);
void files_turn(struct files *f, int64_t now_us); /* requests further parts of the file */
int64_t files_deadline_us(const struct files *f);

#endif
