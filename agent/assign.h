/* assign.h - this node's stage: from the seed, from the copy that is here, or restored; then
 * measured, and READY.
 */
#ifndef AGENT_ASSIGN_H
#define AGENT_ASSIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

struct agent;
struct job;

enum standing {
	STAND_UNASSIGNED,
	STAND_WAITING,   /* assigned; the worker is still busy with what was before */
	STAND_PREPARING,
	STAND_LOADING,   /* from the copy that is kept here */
	STAND_RESTORING, /* restore.c: from a file, or from its neighbours */
	STAND_MEASURING,
	STAND_READY
};

/* Takes the newest assignment; what is wrong with one is told. */
void assign_begin(struct agent *a, const struct msg_assign *m);
bool assign_under_way(const struct agent *a); /* neither UNASSIGNED nor READY */
/* Whether *job is now one to start; before the first, everything of the stage before is forgotten. */
bool assign_next_job(struct agent *a, struct job *job, int64_t now_us);
void assign_job_done(struct agent *a, const struct job *job, int64_t now_us);

#endif
