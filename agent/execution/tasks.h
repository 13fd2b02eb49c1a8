/* tasks.h - moves a node's tasks from the queue to the worker, and their outputs to the next
 * node. */
#ifndef AGENT_TASKS_H
#define AGENT_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/execution/device_clock.h"
#include "agent/execution/queue.h"
#include "agent/network/report.h"
#include "agent/shared/fault.h"
#include "agent/shared/held.h"
#include "agent/shared/progress.h"
#include "agent/shared/requests.h"
#include "agent/shared/route.h"
#include "agent/shared/run.h"
#include "agent/shared/tell.h"
#include "agent/tensors/links.h"
#include "agent/tensors/outputs.h"
#include "base/task_kind.h"

struct job;
struct tasks; /* opaque */

/* The parts of the agent that tasks work on. All are borrowed. */
struct tasks_uses {
	struct tell *tell;
	const struct run *run;
	const struct held *held;
	const struct progress *progress;
	const struct requests *requests;
	const struct faults *faults;
	struct outputs *outputs;
	struct report *report;
	struct links *links;
	struct device_clock *device_clock;
};

struct tasks *tasks_new(const struct tasks_uses *uses); /* freed by tasks_free */
void tasks_free(struct tasks *t);  /* NULL is allowed */

/* Makes the node's queue. -ENOMEM. */
int tasks_begin_run(struct tasks *x, uint32_t slots);
void tasks_end_run(struct tasks *x);
struct queue *tasks_queue(const struct tasks *x);

/* Queues the task at position t of route r. The queue owns the input's bytes from now on.
 * `input.at` NULL: the task reads tokens. */
void tasks_arrive(struct tasks *x, const struct route *r, uint32_t position, bool evaluate,
		  struct tensor_bytes input, int64_t arrived_us);
/* Starts the queue's next task and sets *job to its job. Returns false if no task may start. */
bool tasks_next_job(struct tasks *x, struct job *job, int64_t now_us);
/* Takes the output of a computed job. The task lasts until its planned end. */
void tasks_job_done(struct tasks *x, struct job *job, int64_t now_us);
/* Records that the worker has ended a job other than a task. Before the end of this job the
 * worker could not start a task. */
void tasks_other_job_done(struct tasks *x, const struct job *job);
/* Ends a task that is due: reports its end and passes its output on. */
void tasks_end_due(struct tasks *x, int64_t now_us);
/* Reports the tasks that arrived and could not start. */
void tasks_report_waiting(struct tasks *x);
/* Drops the running task if the worker has computed it. Such a task only waits for its planned
 * end. */
void tasks_drop_running(struct tasks *x);
void tasks_forget(struct tasks *x);                   /* drops all tasks when the run has ended */
void tasks_free_from(struct tasks *x, int64_t at_us); /* lets no task begin before at_us */
/* Returns the time at which tasks.c must next be called, because a task ends or the next task may
 * start. */
int64_t tasks_deadline_us(const struct tasks *x, bool is_worker_idle);
/* Returns true if the times of tasks are prescribed: in an emulated run or a rehearsal. */
bool tasks_have_given_times(const struct run *run);
/* Returns the seconds that the cluster file prescribes for a task of this kind on the stage that
 * this node holds. */
double tasks_given_s(const struct run *run, const struct held *held, enum task_kind kind);
/* Returns the number of tasks that have ended. */
uint64_t tasks_done(const struct tasks *x);

#endif
