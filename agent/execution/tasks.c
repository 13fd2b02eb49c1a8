/* tasks.c - moves a node's tasks from the queue to the worker, and their outputs to the next node.
 *
 * In an emulated run or a rehearsal, a fast machine can play a slow machine. A task then lasts
 * until its planned end, even if it was computed earlier. Until the planned end, the output does
 * not leave, the end is not reported, and the next task does not start.
 */
#include "agent/execution/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/execution/compute.h"
#include "base/alloc.h"
#include "model/stage.h"

enum { LATE_MOST_US = 20000 };

/* Fields without a comment are about the running task. The task ends at ends_us, even if the
 * worker has computed it earlier. */
struct tasks {
	bool computed;
	struct job result;
	int64_t began_us, ends_us;
	int64_t could_start_us; /* the time from which the running task could have started */
	/* Time at which the device ends the task. If the host is late, this time is earlier than
	 * ends_us. */
	int64_t device_until_us;
	/* Before this time no task could start, because no task was available or the worker was
	 * busy. */
	int64_t nothing_until_us;
	int64_t busy_until_us; /* before this time the dispatch overhead delays the next task */
	uint64_t n_done, n_inputs;
	struct queue *queue; /* the node's queue; NULL: there is no run */
	struct tasks_uses uses;
};

struct tasks *tasks_new(const struct tasks_uses *uses)
{
	struct tasks *x = alloc_new(sizeof(*x));

	x->uses = *uses;
	return x;
}

void tasks_free(struct tasks *x)
{
	if (x)
		queue_free(x->queue);
	free(x);
}

int tasks_begin_run(struct tasks *x, uint32_t slots)
{
	return queue_new(&x->queue, slots);
}

void tasks_end_run(struct tasks *x)
{
	queue_free(x->queue);
	x->queue = NULL;
}

struct queue *tasks_queue(const struct tasks *x)
{
	return x->queue;
}

void tasks_arrive(struct tasks *x, const struct route *r, uint32_t position, bool evaluate,
		  struct tensor_bytes input, int64_t arrived_us)
{
	struct task *t = alloc_new(sizeof(*t));
	enum queue_verdict verdict;

	t->route = *r;
	t->position = position;
	t->evaluate = evaluate;
	t->first = position == 0;
	t->arrived_us = arrived_us;
	t->input = input;
	t->owner = input.at ? body_new(input.at, 0, true) : NULL;
	t->number = input.at ? ++x->n_inputs : 0;
	verdict = queue_arrive(x->queue, t);
	if (verdict == QUEUE_TAKEN)
		return;
	task_free(t);
	if (verdict == QUEUE_OLD || verdict == QUEUE_TWICE)
		x->uses.tell->tally.dropped++;
	else
		x->uses.tell->tally.refused++;
}

/* Returns the position of the microbatch's data in its shard, or in the validation part. */
static uint64_t data_position(const struct tasks *x, const struct task *t)
{
	return t->evaluate ? t->route.wave : x->uses.progress->position + t->route.wave;
}

/* Returns how many real seconds one second of prescribed time takes. Returns 0 if times are not
 * prescribed, because a task then takes as long as its computation. Only emulated runs and
 * rehearsals prescribe times. */
static double time_scale(const struct tasks *x)
{
	return x->uses.run->welcome.time_scale > 0 ? x->uses.run->welcome.time_scale
	       : x->uses.run->config.rehearsal     ? 1
						   : 0;
}

bool tasks_have_given_times(const struct run *run)
{
	return run->welcome.time_scale > 0 || run->config.rehearsal;
}

/* Returns the time at which a task that starts now counts as begun: now, unless task times are
 * prescribed. With prescribed times, delays of the event loop by up to LATE_MOST_US must not add
 * up from task to task. After such a delay the task counts as begun at the later of two times:
 * its arrival, and the time at which the node became idle. */
static int64_t find_begin_us(const struct tasks *x, const struct task *t, int64_t now_us)
{
	int64_t free_us = x->busy_until_us > t->arrived_us ? x->busy_until_us : t->arrived_us;

	if (!(time_scale(x) > 0) || now_us - free_us > LATE_MOST_US)
		return now_us;
	return free_us < now_us ? free_us : now_us;
}

/* Returns the time from which the task could have started. */
static int64_t could_start_us(const struct tasks *x, const struct task *t)
{
	return t->arrived_us > x->nothing_until_us ? t->arrived_us : x->nothing_until_us;
}

/* Returns how long the host has delayed the start of the task, us. Returns 0 in an emulated run,
 * because this machine's delays are not the delays of the emulated node. */
static uint32_t find_late_us(const struct tasks *x)
{
	int64_t late_us = x->began_us - x->could_start_us;

	if (x->uses.run->welcome.time_scale > 0 || late_us < 0)
		return 0;
	return late_us < UINT32_MAX ? (uint32_t)late_us : UINT32_MAX;
}

/* Records an event of a task for the controller. The argument `loss` is used only if the event is
 * the end of a TASK_LOSS. */
static void note_event(struct tasks *x, enum work_event type, const struct task *t, int64_t at_us,
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
		.late_us = type == WORK_STARTS ? find_late_us(x) : 0,
		.slots = (uint8_t)queue_slots_held(x->queue),
	};

	report_event(x->uses.report, &e);
}

/* Names the next task's input in the job. The device can then receive this input during the
 * present task. The job becomes a user of this input, because the next task may be dropped
 * meanwhile. */
static void name_next(struct tasks *x, struct job_task *job)
{
	const struct task *next = x->uses.held->takes_encoded ? queue_next(x->queue) : NULL;

	if (!next || !next->owner)
		return;
	job->next = next->input;
	job->next_number = next->number;
	job->next_owner = body_hold(next->owner);
}

bool tasks_next_job(struct tasks *x, struct job *job, int64_t now_us)
{
	const struct task *t = NULL;

	if (now_us < x->busy_until_us)
		return false;
	if (x->uses.held->standing == STAND_READY && !x->uses.requests->step &&
	    !x->uses.requests->zero)
		t = queue_start(x->queue, now_us);
	if (!t) {
		x->nothing_until_us = now_us;
		return false;
	}
	*job = (struct job){
		.kind = JOB_TASK,
		.task = { .kind = t->kind,
			  .evaluate = t->evaluate,
			  .count = t->count,
			  .slot = t->slot < 0 ? 0 : (uint32_t)t->slot,
			  .shard = t->route.shard,
			  .position = data_position(x, t),
			  .in = t->input,
			  .in_number = t->number },
	};
	job->task.leaves = links_output_leaves(x->uses.links, &t->route, t->position, t->evaluate,
					       &job->task.out.codec);
	name_next(x, &job->task);
	x->began_us = find_begin_us(x, t, now_us);
	x->could_start_us = could_start_us(x, t);
	if (!t->evaluate)
		note_event(x, WORK_STARTS, t, x->began_us, 0);
	return true;
}

double tasks_given_s(const struct run *run, const struct held *held, enum task_kind kind)
{
	double work = model_stage_work(&run->config, held->stage);

	return kind == TASK_FORWARD ? run->welcome.forward_s * work
	       : kind == TASK_LOSS  ? run->welcome.loss_s
				    : run->welcome.backward_s * work;
}

static int64_t planned_us(const struct tasks *x, const struct task *t, int64_t real_us)
{
	double s = tasks_given_s(x->uses.run, x->uses.held, t->kind);
	double factor = fault_node_factor(x->uses.faults);
	double scale = time_scale(x);
	double us = (scale > 0 ? s * scale * 1e6 : (double)real_us) * factor;

	return us < 1e12 ? (int64_t)us : (int64_t)1e12;
}

void tasks_job_done(struct tasks *x, struct job *job, int64_t now_us)
{
	const struct task *t = queue_running(x->queue);
	int64_t planned;

	if (!t) /* the run ended and dropped the task */
		return;
	x->result = *job;
	x->result.task.next_owner = NULL;
	job->task.out.at = NULL; /* x->result owns the output now */
	job->task.leaving = NULL;
	x->computed = true;
	planned = x->began_us + planned_us(x, t, job->ended_us - x->began_us);
	x->ends_us = job->ended_us > planned ? job->ended_us : planned;
	x->device_until_us = tasks_have_given_times(x->uses.run) ? planned : x->ends_us;
	if (t->evaluate)
		x->ends_us = now_us;
}

/* Adds the ended task to the times of the device. The host's time begins when the task could have
 * started. If task times are prescribed, the device counts as busy for the prescribed time only,
 * and the host for the rest. */
static void add_times(struct tasks *x)
{
	const struct job *job = &x->result;
	int64_t began_us = tasks_have_given_times(x->uses.run) ? x->began_us : job->began_us;

	device_clock_add(x->uses.device_clock, DEVICE_HOST, x->could_start_us, x->ends_us);
	device_clock_add(x->uses.device_clock, DEVICE_BUSY, began_us, x->device_until_us);
	x->nothing_until_us = x->ends_us;
}

void tasks_other_job_done(struct tasks *x, const struct job *job)
{
	x->nothing_until_us = job->ended_us;
}

static void pass_on(struct tasks *x, const struct task *t, int64_t ended_us)
{
	uint32_t next = t->position + 1;
	struct msg m = { .type = MSG_EVALUATED };
	struct tensor_bytes out = x->result.task.out;
	struct stage_output *leaving = x->result.task.leaving;
	struct body *body;

	x->result.task.out.at = NULL;
	x->result.task.leaving = NULL;
	if (t->stale) {
		free(out.at);
		stage_output_drop(leaving);
	} else if (t->position == route_last(&t->route, t->evaluate)) {
		free(out.at);
		if (!t->evaluate)
			return;
		m.u.evaluated.iteration = x->uses.held->committed;
		m.u.evaluated.microbatch = t->route.microbatch;
		m.u.evaluated.loss = x->result.task.loss;
		tell_controller(x->uses.tell, &m, POST_RELIABLE, ended_us);
	} else if (route_node(&t->route, next) == x->uses.run->welcome.node) {
		tasks_arrive(x, &t->route, next, t->evaluate, out, ended_us);
	} else {
		body = links_encode(x->uses.links, &t->route, t->position, t->evaluate, out,
				    leaving);
		if (!body)
			return;
		if (!t->evaluate)
			outputs_keep(x->uses.outputs, t->route.microbatch, t->kind, body);
		links_send_output(x->uses.links, &t->route, t->position, t->evaluate, body,
				  ended_us);
	}
}

void tasks_end_due(struct tasks *x, int64_t now_us)
{
	int64_t ended = x->ends_us;
	struct task *t;
	double overhead;

	if (!x->computed || now_us < ended)
		return;
	x->computed = false;
	x->n_done++;
	t = queue_end(x->queue);
	add_times(x);
	if (!t->evaluate) {
		note_event(x, WORK_ENDS, t, ended, x->result.task.loss);
		overhead = x->uses.run->welcome.dispatch_overhead_s * time_scale(x) * 1e6;
		x->busy_until_us = ended + (int64_t)overhead;
	}
	pass_on(x, t, ended);
	task_free(t);
	job_clear(&x->result);
}

void tasks_drop_running(struct tasks *x)
{
	if (!x->computed)
		return;
	x->computed = false;
	job_clear(&x->result);
	task_free(queue_end(x->queue));
}

void tasks_forget(struct tasks *x)
{
	job_clear(&x->result);
	x->computed = false;
}

void tasks_free_from(struct tasks *x, int64_t at_us)
{
	x->busy_until_us = at_us;
}

void tasks_report_waiting(struct tasks *x)
{
	const struct task *waiter;

	while ((waiter = queue_announce_waiter(x->queue)))
		note_event(x, WORK_WAITS, waiter, waiter->arrived_us, 0);
}

int64_t tasks_deadline_us(const struct tasks *x, bool is_worker_idle)
{
	if (x->computed)
		return x->ends_us;
	if (x->queue && queue_waiting(x->queue) > 0 && is_worker_idle && !queue_blocked(x->queue) &&
	    x->uses.held->standing == STAND_READY && !x->uses.tell->end.leaving)
		return x->busy_until_us;
	return INT64_MAX;
}

uint64_t tasks_done(const struct tasks *x)
{
	return x->n_done;
}
