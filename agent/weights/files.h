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

/* run_dir: as in agent_options. Both arguments are borrowed (files_free). */
struct files *files_new(struct tell *tell, const char *run_dir);
void files_free(struct files *f); /* NULL is allowed */

/* Returns the folder for files of the controller: the run folder of this agent, or a temporary
 * folder, which is removed with the agent. NULL: it cannot be made. */
const char *files_folder(struct files *f);
/* Fetches the file that `ask` names to path. It replaces a fetch that is under way. */
void files_fetch(struct files *f, const struct msg_file_ask *ask, const char *path, int64_t now_us);
/* Returns the file that was fetched last: its state, its name and its path. */
const struct transfer *files_fetched(const struct files *f);
void files_cancel(struct files *f);

void files_part_arrived(struct files *f, const struct msg *m, int64_t now_us);
/* Answers a request of the controller for a part of a checkpoint's file. */
void files_asked(struct files *f, const struct msg_file_ask *ask, int64_t now_us);
void files_turn(struct files *f, int64_t now_us); /* requests parts */
int64_t files_deadline_us(const struct files *f);

#endif
