/* assign.c - runs the jobs that give this node its stage: prepare, load or restore, measure. A
 * newer assignment takes effect when the job of the present assignment has ended. */
#include "agent/assign.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/arrivals.h"
#include "agent/execution/queue.h"
#include "agent/execution/tasks.h"
#include "agent/network/report.h"
#include "agent/state.h"
#include "agent/weights/corpus_files.h"
#include "agent/weights/restore.h"
#include "agent/weights/standby.h"
#include "agent/weights/weight_server.h"

bool assign_under_way(const struct held *held)
{
	return held->standing != STAND_UNASSIGNED && held->standing != STAND_READY;
}

void assign_begin(struct agent *a, const struct msg_assign *m)
{
	if (m->assignment < a->held.assign.assignment) {
		a->tell.tally.dropped++;
		return;
	}
	if (m->stage >= a->run.limits.n_stages) {
		tell_trouble(&a->tell, false, "assignment %" PRIu64 ": there is no stage %u",
			     m->assignment, m->stage);
		return;
	}
	restore_cancel(a->modules.restore);
	log_line(a->tell.log, LOG_INFO, "assigned stage %u, %s", m->stage,
		 m->fetch ? "weights that are here" : "weights of the seed");
	a->held.assign = *m;
	a->held.standing = STAND_WAITING;
}

/* Drops the state of the previous stage and makes the job that prepares the assigned stage. Returns
 * false while files for the stage are being fetched. */
static bool prepare_stage(struct agent *a, struct job *job, int64_t now_us)
{
	if (restore_wanted(a->modules.restore) && restore_fetching(a->modules.restore, now_us))
		return false;
	if (a->held.assign.stage == 0 && corpus_files_fetching(a->modules.corpus_files, now_us))
		return false;
	report_flush(a->modules.report, now_us);
	iteration_forget(&a->iteration);
	queue_clear_evaluations(tasks_queue(a->modules.tasks));
	tasks_drop_running(a->modules.tasks);
	arrivals_forget(a);
	weight_server_forget(a->modules.weight_server);
	restore_forget(a->modules.restore);
	a->requests.zero = false; /* measuring the stage zeroes the gradient anyway */
	*job = (struct job){ .kind = JOB_PREPARE,
			     .prepare = { .stage = a->held.assign.stage,
					  .from_seed = !a->held.assign.fetch } };
	corpus_files_name(a->modules.corpus_files, job);
	if (restore_wanted(a->modules.restore) &&
	    !restore_name_file(a->modules.restore, job, now_us))
		return false;
	a->held.standing = STAND_PREPARING;
	return true;
}

static void miss_copy(struct agent *a)
{
	tell_trouble(&a->tell, false, "no copy of stage %u is here", a->held.stage);
	a->held.standing = STAND_UNASSIGNED;
}

bool assign_next_job(struct agent *a, struct job *job, int64_t now_us)
{
	switch (a->held.standing) {
	case STAND_WAITING:
		return prepare_stage(a, job, now_us);
	case STAND_LOADING:
		if (!standby_holds(a->modules.standby, a->held.stage)) {
			miss_copy(a);
			return false;
		}
		a->held.whole = false;
		*job = (struct job){ .kind = JOB_LOAD,
				     .iteration = standby_iteration(a->modules.standby) };
		return true;
	case STAND_RESTORING:
		return restore_next_job(a->modules.restore, job, now_us);
	case STAND_MEASURING:
		*job = (struct job) { .kind = JOB_MEASURE };
		return true;
	default:
		return false;
	}
}

static void take_prepared(struct agent *a, const struct job *job)
{
	bool same = !job->prepare.from_seed && a->held.stage == job->prepare.stage;

	a->held.parameters = job->prepare.parameters;
	a->held.activation = job->prepare.activation;
	a->held.stage_bytes = job->prepare.stage_bytes;
	a->held.takes_encoded = job->prepare.takes_encoded;
	if (!same) {
		a->held.committed = 0;
		a->held.whole = false;
	}
	a->held.stage = job->prepare.stage;
	if (a->held.standing == STAND_WAITING) /* a newer assignment has arrived */
		return;
	if (restore_wanted(a->modules.restore)) {
		a->held.standing = STAND_RESTORING;
		return;
	}
	a->held.standing = STAND_MEASURING;
	if (a->held.assign.fetch && standby_holds(a->modules.standby, a->held.stage)) {
		a->held.standing = STAND_LOADING;
	} else if (a->held.assign.fetch && !same) {
		miss_copy(a);
	}
}

/* Returns the computing times to report. These are the measured times or, in a rehearsal, the
 * times in the cluster file. */
static struct job_measured times_of(const struct run *run, const struct held *held,
				    const struct job *job)
{
	struct job_measured t = job->measured;

	if (run->config.rehearsal) {
		t.forward_s = tasks_given_s(run, held, TASK_FORWARD);
		t.backward_s = tasks_given_s(run, held, TASK_BACKWARD);
		t.loss_s = t.corpus_hash ? tasks_given_s(run, held, TASK_LOSS) : 0;
	}
	return t;
}

static void become_ready(struct agent *a, const struct job *job, int64_t now_us)
{
	struct msg m = { .type = MSG_READY };
	struct job_measured times = times_of(&a->run, &a->held, job);

	a->held.hash = job->hash;
	if (a->held.standing == STAND_WAITING)
		return;
	a->held.standing = STAND_READY;
	a->held.whole = true;
	tasks_free_from(a->modules.tasks, now_us);
	device_clock_forget(a->modules.device_clock);
	m.u.ready.assignment = a->held.assign.assignment;
	m.u.ready.stage = a->held.stage;
	m.u.ready.iteration = a->held.committed;
	m.u.ready.hash = a->held.hash;
	m.u.ready.forward_s = times.forward_s;
	m.u.ready.backward_s = times.backward_s;
	m.u.ready.loss_s = times.loss_s;
	m.u.ready.corpus_hash = times.corpus_hash;
	log_line(a->tell.log, LOG_INFO,
		 "ready: stage %u, %zu parameters, %" PRIu64
		 " committed, forward %.4f s, backward %.4f s",
		 a->held.stage, a->held.parameters, a->held.committed, times.forward_s,
		 times.backward_s);
	tell_controller(&a->tell, &m, POST_RELIABLE, now_us);
	a->requests.look_again = true;
}

void assign_job_done(struct agent *a, const struct job *job, int64_t now_us)
{
	switch (job->kind) {
	case JOB_PREPARE:
		if (job->rc < 0)
			restore_job_done(a->modules.restore, job, now_us);
		else
			take_prepared(a, job);
		break;
	case JOB_LOAD:
		a->held.committed = job->iteration;
		if (a->held.standing == STAND_LOADING)
			a->held.standing = STAND_MEASURING;
		break;
	case JOB_RESTORE:
	case JOB_MIX:
		restore_job_done(a->modules.restore, job, now_us);
		break;
	default:
		become_ready(a, job, now_us);
	}
}
