/* restore.h - restores a stage that no process holds, from a file of a checkpoint or as the
 * weighted average of the neighbouring stages. assign.c prepares and measures the stage before
 * and after.
 */
#ifndef AGENT_RESTORE_H
#define AGENT_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct job;
struct restore; /* opaque */

struct restore *restore_new(void); /* restore_free */
void restore_free(struct restore *r);  /* NULL is allowed */

/* Takes an order unless a newer assignment is known. Reports an invalid order. */
void restore_begin(struct agent *a, const struct msg_restore *m);
/* Returns true if the newest assignment is a restore. */
bool restore_wanted(const struct agent *a);
/* Returns true if the stage is an average of its neighbours and no iteration has begun with it. The
 * run's record may then not contain this stage. */
bool restore_unused(const struct agent *a);
void restore_cancel(struct agent *a); /* cancels the restore when a newer assignment arrives */
/* Fetches the file from the controller if it is not here. Returns true while it is under way. */
bool restore_fetching(struct agent *a, int64_t now_us);
/* Sets the job's file. Returns false if there is none, and reports this. */
bool restore_name_file(struct agent *a, struct job *job, int64_t now_us);
bool restore_next_job(struct agent *a, struct job *job, int64_t now_us);
void restore_job_done(struct agent *a, const struct job *job, int64_t now_us);
/* Takes a piece. Returns false if the piece is not for the restore. */
bool restore_piece_arrived(struct agent *a, const struct msg *m, int64_t now_us);
void restore_turn(struct agent *a, int64_t now_us); /* requests pieces */
int64_t restore_deadline_us(const struct agent *a);
/* Drops the progress of the restore; the worker must be idle. */
void restore_forget(struct agent *a);

#endif
