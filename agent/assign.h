/* assign.h - gives this node its stage: made from the seed, copied from its standby copy, or
 * restored. Afterwards the agent measures the stage's computing times and sends READY.
 */
#ifndef AGENT_ASSIGN_H
#define AGENT_ASSIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct held;
struct job;

/* Begins an assignment. Ignores an assignment that is older than the newest assignment. Reports
 * an invalid assignment to the controller. */
void assign_begin(struct agent *a, const struct msg_assign *m);
/* Returns true while an assignment is being carried out. During this time the standing is neither
 * UNASSIGNED nor READY. */
bool assign_under_way(const struct held *held);
/* If the assignment needs a job, sets *job and returns true. Drops the previous stage before the
 * first job. */
bool assign_next_job(struct agent *a, struct job *job, int64_t now_us);
void assign_job_done(struct agent *a, const struct job *job, int64_t now_us);

#endif
