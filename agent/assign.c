/* A stage of the model: built from the seed, or with the weights of the copy that was fetched.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"

bool assign_under_way(const struct agent *a)
{
	return a->standing != STAND_UNASSIGNED && a->standing != STAND_READY;
}

void assign_begin(struct agent *a, const struct msg_assign *m)
{
	if (m->assignment < a->assign.assignment) {
		a->dropped++;
		return;
	}
	if (m->stage >= a->limits.n_stages) {
		agent_trouble(a, false, "assignment %" PRIu64 ": there is no stage %u",
			      m->assignment, m->stage);
		return;
	}
	a->restore.wanted = false;
	log_line(a->options.log, LOG_INFO, "assigned stage %u, %s", m->stage,
		 m->fetch ? "weights that are here" : "weights of the seed");
	a->assign = *m;
	a->standing = STAND_WAITING;
}

static bool prepare(struct agent *a, int64_t now_us)
{
	report_flush(a, now_us);
	iteration_forget(a);
	queue_clear_evaluations(a->queue);
	tasks_drop_running(a);
	early_forget(a);
	weight_server_forget(a);
	restore_forget(a);
	a->zero_wanted = false; /* measuring leaves it zero */
	a->job = (struct job) { .kind = JOB_PREPARE, .stage = a->assign.stage,
				.from_seed = !a->assign.fetch };
	if (a->restore.wanted && !restore_name_file(a, &a->job, now_us))
		return false;
	a->standing = STAND_PREPARING;
	return true;
}

static void no_copy(struct agent *a)
{
	agent_trouble(a, false, "no copy of stage %u is here", a->stage);
	a->standing = STAND_UNASSIGNED;
}

bool assign_next_job(struct agent *a, int64_t now_us)
{
	switch (a->standing) {
	case STAND_WAITING:
		return prepare(a, now_us);
	case STAND_LOADING:
		if (a->standby.standing != STANDBY_WHOLE || a->standby.stage != a->stage) {
			no_copy(a);
			return false;
		}
		a->loading = a->standby.iteration;
		a->whole = false;
		a->job = (struct job){ .kind = JOB_LOAD };
		return true;
	case STAND_RESTORING:
		return restore_next_job(a, now_us);
	case STAND_MEASURING:
		a->job = (struct job) { .kind = JOB_MEASURE };
		return true;
	default:
		return false;
	}
}

static void prepared(struct agent *a)
{
	bool same = !a->job.from_seed && a->stage == a->job.stage;

	a->parameters = a->job.parameters;
	a->activation = a->job.activation;
	a->stage_bytes = a->job.stage_bytes;
	if (!same) {
		a->committed = 0;
		a->whole = false;
	}
	a->stage = a->job.stage;
	if (a->standing == STAND_WAITING) /* assigned anew meanwhile */
		return;
	if (a->restore.wanted) {
		a->standing = STAND_RESTORING;
		return;
	}
	a->standing = STAND_MEASURING;
	if (a->assign.fetch && a->standby.standing == STANDBY_WHOLE && a->standby.stage == a->stage) {
		a->standing = STAND_LOADING;
	} else if (a->assign.fetch && !same) {
		no_copy(a);
	}
}

static void ready(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_READY };

	a->hash = a->job.hash;
	if (a->standing == STAND_WAITING)
		return;
	a->standing = STAND_READY;
	a->whole = true;
	a->busy_until_us = now_us;
	m.u.ready.assignment = a->assign.assignment;
	m.u.ready.stage = a->stage;
	m.u.ready.iteration = a->committed;
	m.u.ready.hash = a->hash;
	m.u.ready.forward_s = a->job.forward_s;
	m.u.ready.backward_s = a->job.backward_s;
	m.u.ready.loss_s = a->job.loss_s;
	m.u.ready.corpus_hash = a->job.corpus_hash;
	log_line(a->options.log, LOG_INFO, "ready: stage %u, %zu parameters, %" PRIu64
		 " committed, forward %.4f s, backward %.4f s", a->stage, a->parameters,
		 a->committed, a->job.forward_s, a->job.backward_s);
	agent_tell(a, &m, POST_RELIABLE, now_us);
	early_look_again(a, now_us);
}

void assign_job_done(struct agent *a, int64_t now_us)
{
	switch (a->job.kind) {
	case JOB_PREPARE:
		if (a->job.rc < 0)
			restore_job_done(a, now_us);
		else
			prepared(a);
		break;
	case JOB_LOAD:
		a->committed = a->loading;
		if (a->standing == STAND_LOADING)
			a->standing = STAND_MEASURING;
		break;
	case JOB_RESTORE:
	case JOB_MIX:
		restore_job_done(a, now_us);
		break;
	default:
		ready(a, now_us);
	}
}
