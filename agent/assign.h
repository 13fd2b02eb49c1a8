/* assign.h - gives this node its stage: from the seed, from its standby copy, or restored.
 * Afterwards the computing times are measured and READY is sent.
 */
#ifndef AGENT_ASSIGN_H
#define AGENT_ASSIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct job;

/* Begins the newest assignment. Reports an invalid one to the controller. */
void assign_begin(struct agent *a, const struct msg_assign *m);
/* Returns true unless the standing is UNASSIGNED or READY. */
bool assign_under_way(const struct agent *a);
/* Returns true if *job is the next job. Before the first one, drops the previous stage. */
bool assign_next_job(struct agent *a, struct job *job, int64_t now_us);
void assign_job_done(struct agent *a, const struct job *job, int64_t now_us);

#endif
