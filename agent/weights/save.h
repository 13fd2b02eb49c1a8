/* save.h - saves checkpoints of this node's stage on this machine's disk while training
 * continues. */
#ifndef AGENT_SAVE_H
#define AGENT_SAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/held.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "base/error.h"
#include "wire/msg.h"

struct job;
struct save; /* opaque */

/* Starts the second thread, which writes. Gives *out (save_free). agent_options explains run_dir.
 * All arguments are borrowed. The errors are those of worker_new. */
int save_new(struct save **out, struct tell *tell, const struct run *run, const struct held *held,
	     const char *run_dir, struct error *err);
void save_free(struct save *s);    /* waits until the checkpoint is written; NULL is allowed */
int save_fd(const struct save *s); /* returns a descriptor to poll for POLLIN */

/* Handles the controller's order to save a checkpoint. If the order cannot be carried out,
 * reports this. */
void save_begin(struct save *s, const struct msg_save *m, int64_t now_us);
/* Returns true if the stage must be copied before its next step. */
bool save_wanted(const struct save *s);
bool save_next_job(struct save *s, struct job *job);
/* If a part of the stage is copied already, gives the job that copies the next part. The stage's
 * weights must not change until the last part is copied. */
bool save_next_part(struct save *s, struct job *job);
/* Takes the copy from the job. When the copy is complete, the second thread begins to write
 * it. */
void save_job_done(struct save *s, struct job *job, int64_t now_us);
/* If a checkpoint has been written, reports this. */
void save_turn(struct save *s, int64_t now_us);
/* Returns true while the second thread writes. save_free would then wait for it. */
bool save_busy(const struct save *s);
/* Forgets the order. A checkpoint that is being written is completed, but not reported. */
void save_forget(struct save *s);

#endif
