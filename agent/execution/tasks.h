/* tasks.h - a node's tasks: from the queue to the worker, and their outputs on their way. */
#ifndef AGENT_TASKS_H
#define AGENT_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/execution/route.h"

struct agent;
struct job;
struct tasks; /* opaque; the agent has them */

struct tasks *tasks_new(void); /* tasks_free */
void tasks_free(struct tasks *t);  /* NULL is allowed */

/* Queues position t of the route; input (B, T, C) is given, NULL for tokens. */
void tasks_arrive(struct agent *a, const struct route *r, uint32_t position, bool evaluate,
		  float *input, int64_t arrived_us);
/* Starts the queue's next task: whether *job is now its. */
bool tasks_next_job(struct agent *a, struct job *job, int64_t now_us);
/* The job is computed; its task lasts on to its planned end. The output is taken from the job. */
void tasks_job_done(struct agent *a, struct job *job, int64_t now_us);
/* Ends the task whose time has come: told, its output passed on, the next may start. */
void tasks_end_due(struct agent *a, int64_t now_us);
/* Tells which tasks came and could not start. */
void tasks_tell_waiting(struct agent *a);
void tasks_drop_running(struct agent *a); /* one that is computed and waits for its end */
void tasks_forget(struct agent *a);       /* the run is over */
void tasks_free_from(struct agent *a, int64_t at_us); /* no task begins before */
int64_t tasks_deadline_us(const struct agent *a);     /* when one ends, or may start */
uint64_t tasks_done(const struct agent *a);           /* how many have ended */

#endif
