/* save.h - checkpoints: the own stage, durably on this machine's disk, while training goes on. */
#ifndef AGENT_SAVE_H
#define AGENT_SAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/msg.h"

struct agent;
struct job;
struct save; /* opaque; the agent has one */

/* With a thread of its own. Errors of worker_new; -ENOMEM. */
int save_new(struct save **out, struct error *err);
void save_free(struct save *s); /* waits for what is being written; NULL is allowed */
int save_fd(const struct save *s); /* poll for POLLIN */

void save_begin(struct agent *a, const struct msg_save *m, int64_t now_us);
bool save_wanted(const struct agent *a); /* a copy of the stage, before it steps again */
bool save_next_job(struct agent *a, struct job *job);
/* The copy is made: taken from the job. */
void save_job_done(struct agent *a, struct job *job, int64_t now_us);
void save_turn(struct agent *a, int64_t now_us); /* looks after the writer */
void save_forget(struct agent *a);               /* waits for what is being written */

#endif
