/* tasks.c - moves a node's tasks from the queue to the worker, and their outputs to the next node.
 *
 * The worker computes a task. In an emulated run or a rehearsal the task then lasts until its
 * planned end, so that a fast machine can play a slow one. The output, the report of the end and
 * the start of the next task all wait for the planned end.
 */
#include "agent/execution/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/alloc.h"

enum { LATE_MOST_US = 20000 };

/* The running task: first the worker computes it, then it waits for ends_us. */
struct tasks {
	bool computed;
	struct job result;
	int64_t began_us, ends_us;
	int64_t busy_until_us; /* time at which the dispatch overhead ends */
	uint64_t n_done;
};

struct tasks *tasks_new(void)
{
	struct tasks *x = alloc_new(sizeof(*x));

	return x;
}

void tasks_free(struct tasks *x)
{
	free(x);
}

void tasks_arrive(struct agent *a, const struct route *r, uint32_t position, bool evaluate,
		  float *input, int64_t arrived_us)
{
	struct task *t = alloc_new(sizeof(*t));
	enum queue_verdict verdict;

	t->route = *r;
	t->position = position;
	t->evaluate = evaluate;
	t->first = position == 0;
	t->arrived_us = arrived_us;
	t->input = input;
	verdict = queue_arrive(a->iteration.queue, t);
	if (verdict == QUEUE_TAKEN)
		return;
	task_free(t);
	if (verdict == QUEUE_OLD || verdict == QUEUE_TWICE)
		a->tell.tally.dropped++;
	else
		a->tell.tally.refused++;
}

/* Returns the position of the microbatch's data in its shard, or in the validation part. */
static uint64_t data_position(const struct agent *a, const struct task *t)
{
	return t->evaluate ? t->route.wave : a->progress.position + t->route.wave;
}

/* Returns the real seconds of a second of given times; 0 if tasks take the time of their
 * computation. Without emulation only a rehearsal has given times. */
static double time_scale(const struct agent *a)
{
	return a->run.welcome.time_scale > 0 ? a->run.welcome.time_scale
	       : a->run.config.rehearsal     ? 1
					     : 0;
}

/* Returns the time at which a task that is started now could have started. Other processes may
 * use the processor and delay the event loop. With given times such delays must not add up from
 * task to task. A task therefore begins when the node became free or the task arrived, whichever
 * was later, unless that is longer ago than such a delay lasts. */
static int64_t find_begin_us(const struct agent *a, const struct task *t, int64_t now_us)
{
	int64_t free_us = a->modules.tasks->busy_until_us > t->arrived_us
				  ? a->modules.tasks->busy_until_us
				  : t->arrived_us;

	if (!(time_scale(a) > 0) || now_us - free_us > LATE_MOST_US)
		return now_us;
	return free_us < now_us ? free_us : now_us;
}

/* Records an event of a task for the controller. loss: of the end of a loss task. */
static void note_event(struct agent *a, enum work_event type, const struct task *t, int64_t at_us,
		       float loss)
{
	const struct msg_task_event e = {
		.type = (uint8_t)type,
		.kind = (uint8_t)t->kind,
		.microbatch = t->route.microbatch,
		.attempt = t->attempt,
		.blocker = type == WORK_ENDS ? QUEUE_NOBODY : t->blocker,
		.at_us = at_us,
		.arrived_us = t->arrived_us,
		.loss = type == WORK_ENDS && t->kind == TASK_LOSS ? loss : 0,
		.counted = type == WORK_ENDS && t->count,
		.slots = (uint8_t)queue_slots_held(a->iteration.queue),
	};

	report_event(a->modules.report, &e);
}

bool tasks_next_job(struct agent *a, struct job *job, int64_t now_us)
{
	const struct task *t;

	if (a->held.standing != STAND_READY || a->requests.step || a->requests.zero ||
	    now_us < a->modules.tasks->busy_until_us)
		return false;
	t = queue_start(a->iteration.queue, now_us);
	if (t) {
		*job = (struct job) {
			.kind = JOB_TASK,
			.task = { .kind = t->kind,
				  .evaluate = t->evaluate,
				  .count = t->count,
				  .slot = t->slot < 0 ? 0 : (uint32_t)t->slot,
				  .shard = t->route.shard,
				  .position = data_position(a, t),
				  .in = t->input },
		};
		a->modules.tasks->began_us = find_begin_us(a, t, now_us);
		if (!t->evaluate)
			note_event(a, WORK_STARTS, t, a->modules.tasks->began_us, 0);
	}
	return t != NULL;
}

static int64_t planned_us(const struct agent *a, const struct task *t, int64_t real_us)
{
	double s = t->kind == TASK_FORWARD ? a->run.welcome.forward_s
		   : t->kind == TASK_LOSS  ? a->run.welcome.loss_s
					   : a->run.welcome.backward_s;
	double factor = fault_node_factor(&a->faults);
	double scale = time_scale(a);
	double us = (scale > 0 ? s * scale * 1e6 : (double)real_us) * factor;

	return us < 1e12 ? (int64_t)us : (int64_t)1e12;
}

void tasks_job_done(struct agent *a, struct job *job, int64_t now_us)
{
	const struct task *t = queue_running(a->iteration.queue);
	int64_t planned;

	if (!t) /* the task was dropped with its run */
		return;
	a->modules.tasks->result = *job;
	job->out = NULL; /* the output belongs to the result now */
	a->modules.tasks->computed = true;
	planned = a->modules.tasks->began_us +
		  planned_us(a, t, job->ended_us - a->modules.tasks->began_us);
	a->modules.tasks->ends_us = job->ended_us > planned ? job->ended_us : planned;
	if (t->evaluate)
		a->modules.tasks->ends_us = now_us;
}

static void pass_on(struct agent *a, const struct task *t, int64_t ended_us)
{
	uint32_t next = t->position + 1;
	struct msg m = { .type = MSG_EVALUATED };
	float *out = a->modules.tasks->result.out;

	a->modules.tasks->result.out = NULL;
	if (t->stale) {
		free(out);
	} else if (t->position == route_last(&t->route, t->evaluate)) {
		free(out);
		if (!t->evaluate)
			return;
		m.u.evaluated.iteration = a->held.committed;
		m.u.evaluated.microbatch = t->route.microbatch;
		m.u.evaluated.loss = a->modules.tasks->result.task.loss;
		tell_controller(&a->tell, &m, POST_RELIABLE, ended_us);
	} else if (route_node(&t->route, next) == a->run.welcome.node) {
		tasks_arrive(a, &t->route, next, t->evaluate, out, ended_us);
	} else {
		if (!t->evaluate && outputs_keep(a->modules.outputs, t->route.microbatch,
						 t->kind, out, a->held.activation) < 0)
			tell_trouble(&a->tell, true, "no memory to keep an output for a reroute");
		links_send_output(&a->modules.links, &t->route, t->position, t->evaluate, out,
				  ended_us);
	}
}

void tasks_end_due(struct agent *a, int64_t now_us)
{
	int64_t ended = a->modules.tasks->ends_us;
	struct task *t;
	double overhead;

	if (!a->modules.tasks->computed || now_us < ended)
		return;
	a->modules.tasks->computed = false;
	a->modules.tasks->n_done++;
	t = queue_end(a->iteration.queue);
	if (!t->evaluate) {
		note_event(a, WORK_ENDS, t, ended, a->modules.tasks->result.task.loss);
		overhead = a->run.welcome.dispatch_overhead_s * time_scale(a) * 1e6;
		a->modules.tasks->busy_until_us = ended + (int64_t)overhead;
	}
	pass_on(a, t, ended);
	task_free(t);
	job_clear(&a->modules.tasks->result);
}

void tasks_drop_running(struct agent *a)
{
	if (!a->modules.tasks->computed)
		return;
	a->modules.tasks->computed = false;
	job_clear(&a->modules.tasks->result);
	task_free(queue_end(a->iteration.queue));
}

void tasks_forget(struct agent *a)
{
	job_clear(&a->modules.tasks->result);
	a->modules.tasks->computed = false;
}

void tasks_free_from(struct agent *a, int64_t at_us)
{
	a->modules.tasks->busy_until_us = at_us;
}

void tasks_report_waiting(struct agent *a)
{
	const struct task *waiter;

	while ((waiter = queue_waiter(a->iteration.queue)))
		note_event(a, WORK_WAITS, waiter, waiter->arrived_us, 0);
}

int64_t tasks_deadline_us(const struct agent *a)
{
	if (a->modules.tasks->computed)
		return a->modules.tasks->ends_us;
	if (a->iteration.queue && queue_waiting(a->iteration.queue) > 0 &&
	    !worker_busy(a->worker) && !queue_blocked(a->iteration.queue) &&
	    a->held.standing == STAND_READY && !a->tell.end.leaving)
		return a->modules.tasks->busy_until_us;
	return INT64_MAX;
}

uint64_t tasks_done(const struct agent *a)
{
	return a->modules.tasks->n_done;
}
