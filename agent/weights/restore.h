/* restore.h - a stage that no process holds any more: from this machine's checkpoint, or the weighed
 * average of its neighbours. What happens to the stage before and after is assign.c's.
 */
#ifndef AGENT_RESTORE_H
#define AGENT_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct job;
struct restore; /* opaque; the agent has one */

struct restore *restore_new(void); /* restore_free */
void restore_free(struct restore *r);  /* NULL is allowed */

void restore_begin(struct agent *a, const struct msg_restore *m);
bool restore_wanted(const struct agent *a); /* the newest assignment is one */
/* The stage was made of its neighbours, and no iteration has begun with it: that it is the run's may not be recorded. */
bool restore_unused(const struct agent *a);
void restore_cancel(struct agent *a);       /* another is newer */
/* The file, into the job; false: it has no folder, and that is told. */
bool restore_name_file(struct agent *a, struct job *job, int64_t now_us);
bool restore_next_job(struct agent *a, struct job *job, int64_t now_us);
void restore_job_done(struct agent *a, const struct job *job, int64_t now_us);
/* Takes a piece; false: it is not its. */
bool restore_piece_arrived(struct agent *a, const struct msg *m, int64_t now_us);
void restore_turn(struct agent *a, int64_t now_us); /* asks for pieces */
int64_t restore_deadline_us(const struct agent *a);
void restore_forget(struct agent *a); /* what is under way of it; the worker must not be at it */

#endif
