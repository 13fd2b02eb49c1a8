/* restore.h - restores a stage that no process holds, from a file of a checkpoint or as the
 * weighted average of the neighbouring stages. assign.c allocates the stage before the restore,
 * and measures the stage's computing times after the restore.
 */
#ifndef AGENT_RESTORE_H
#define AGENT_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/network/peers.h"
#include "agent/shared/held.h"
#include "agent/shared/progress.h"
#include "agent/shared/requests.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "agent/tensors/links.h"
#include "agent/weights/files.h"
#include "wire/msg.h"

struct job;
struct restore; /* opaque */

/* The parts of the agent that a restore works on. All are borrowed. */
struct restore_uses {
	struct tell *tell;
	const struct run *run;
	struct held *held;
	const struct progress *progress;
	struct requests *requests;
	struct peers *peers;
	struct links *links;
	struct files *files;
	const char *run_dir; /* folder of the agent's checkpoints, as in agent_options */
};

struct restore *restore_new(const struct restore_uses *uses); /* freed by restore_free */
void restore_free(struct restore *r);  /* NULL is allowed */

/* Handles the controller's order to restore a stage. Ignores an order that is older than the
 * newest assignment. Reports an invalid order. */
void restore_begin(struct restore *r, const struct msg_restore *m);
/* Returns true if the newest assignment needs a restore. */
bool restore_wanted(const struct restore *r);
/* Returns true if the stage is an average of neighbouring stages and no iteration has begun with
 * it. A restarted controller may not know such a stage's weights, so HELLO does not report these
 * weights. */
bool restore_unused(const struct restore *r);
void restore_cancel(struct restore *r); /* cancels the restore when a newer assignment arrives */
/* Fetches the checkpoint's file from the controller if this machine lacks it. Returns true until
 * the file is here or its fetch has failed. */
bool restore_fetching(struct restore *r, int64_t now_us);
/* Sets the job's folder, iteration and expected hash. If there is no file, reports this and
 * returns false. */
bool restore_name_file(struct restore *r, struct job *job, int64_t now_us);
bool restore_next_job(struct restore *r, struct job *job, int64_t now_us);
void restore_job_done(struct restore *r, const struct job *job, int64_t now_us);
/* Takes a piece of a neighbouring stage. Returns false if the piece is not for the restore. */
bool restore_piece_arrived(struct restore *r, const struct msg *m, int64_t now_us);
/* Requests pieces of the neighbouring stages. */
void restore_turn(struct restore *r, int64_t now_us);
int64_t restore_deadline_us(const struct restore *r);
/* Drops the progress of the restore. The worker must be idle. */
void restore_forget(struct restore *r);

#endif
