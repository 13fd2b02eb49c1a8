/* join.h - into a run, and out of it: who this agent is, what it is welcomed to, who the others are. */
#ifndef AGENT_JOIN_H
#define AGENT_JOIN_H

#include <stdint.h>

#include "wire/msg.h"

struct agent;

/* Tells the controller who this is, and what it finds here: of the run, the stage, the copy. */
void join_hello(struct agent *a, int64_t now_us);
/* Of the same run again: all is kept, only times change. Of another: everything of the one before is
 * dropped, after the job under way. What makes no sense is a fatal trouble. */
void join_welcome(struct agent *a, const struct msg_welcome *w, int64_t now_us);
/* Admits the others' keys; dials them where they are few. A row that changes is a new process. */
void join_peers(struct agent *a, const struct msg_peers *p);
/* Drops everything that is the run's. The worker must be idle or gone. */
void join_forget_run(struct agent *a);

#endif
