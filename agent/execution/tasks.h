/* tasks.h - moves a node's tasks from the queue to the worker, and their outputs to the next
 * node. */
#ifndef AGENT_TASKS_H
#define AGENT_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/route.h"

struct agent;
struct job;
struct tasks; /* opaque */

struct tasks *tasks_new(void); /* tasks_free */
void tasks_free(struct tasks *t);  /* NULL is allowed */

/* Queues position t of the route; input (B, T, C) is given, NULL for tokens. */
void tasks_arrive(struct agent *a, const struct route *r, uint32_t position, bool evaluate,
		  float *input, int64_t arrived_us);
/* Starts the queue's next task. Returns true if there is one; *job is then its job. */
bool tasks_next_job(struct agent *a, struct job *job, int64_t now_us);
/* Takes the output of a computed job. The task lasts until its planned end. */
void tasks_job_done(struct agent *a, struct job *job, int64_t now_us);
/* Ends a task that is due: reports its end and passes its output on. */
void tasks_end_due(struct agent *a, int64_t now_us);
/* Reports the tasks that arrived and could not start. */
void tasks_report_waiting(struct agent *a);
/* Drops the running task if it is computed and waits for its end. */
void tasks_drop_running(struct agent *a);
void tasks_forget(struct agent *a);                   /* drops all tasks when the run has ended */
void tasks_free_from(struct agent *a, int64_t at_us); /* lets no task begin before at_us */
int64_t tasks_deadline_us(const struct agent *a);     /* returns when a task ends or may start */
/* Returns the number of tasks that have ended. */
uint64_t tasks_done(const struct agent *a);

#endif
