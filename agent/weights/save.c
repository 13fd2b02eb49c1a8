/* save.c - saves checkpoints of this node's stage durably on this machine's disk.
 *
 * The worker copies the stage before its next step. A second thread writes the copy, so that
 * training continues meanwhile. Only one checkpoint is written at a time. An order for another
 * checkpoint is refused meanwhile.
 */
#include "agent/weights/save.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/job.h"
#include "agent/shared/worker.h"
#include "base/alloc.h"
#include "model/files/checkpoint.h"

struct save_job {
	const char *run_dir;
	struct model_config config;
	uint8_t stage;
	struct msg_save order;
	float *state; /* copy of the weights and moments, shape (3, P) */
	int rc;
	struct error err;
	uint64_t hash, bytes;
};

enum save_state {
	SAVE_IDLE,
	SAVE_WANTED,   /* the stage must be copied before the next step changes it */
	SAVE_COPYING,  /* the worker copies the stage, part by part */
	SAVE_WRITING,  /* the second thread writes the copy */
	SAVE_FORGOTTEN /* the second thread still writes for a run that this node has left */
};

/* The one checkpoint that is being written. */
struct save {
	struct worker *worker; /* the second thread; disks are slow, so the worker must not write */
	enum save_state state;
	struct msg_save order;
	uint8_t stage; /* stage of this node when the order arrived */
	/* The unfinished copy, shape (3, P), while no job works on it; NULL: there is no
	 * unfinished copy. */
	float *copy;
	size_t copied; /* floats of each array that are copied so far */
	struct save_job *job;
	struct tell *tell;
	const struct run *run;
	const struct held *held;
	const char *run_dir; /* folder of the agent's checkpoints; NULL: none */
};

int save_new(struct save **out, struct tell *tell, const struct run *run, const struct held *held,
	     const char *run_dir, struct error *err)
{
	struct save *s = alloc_new(sizeof(*s));
	int rc;

	s->tell = tell;
	s->run = run;
	s->held = held;
	s->run_dir = run_dir;
	rc = worker_new(&s->worker, "checkpoints", err);
	if (rc < 0)
		free(s);
	else
		*out = s;
	return rc;
}

int save_fd(const struct save *s)
{
	return worker_fd(s->worker);
}

bool save_wanted(const struct save *s)
{
	return s->state == SAVE_WANTED;
}

bool save_busy(const struct save *s)
{
	return worker_busy(s->worker);
}

static void write_job(void *context, void *job)
{
	struct save_job *j = job;

	(void)context;
	/* Deletes before it writes, because nothing can be written to a full disk. */
	checkpoint_prune(j->run_dir, 0, j->order.oldest);
	if (j->order.last > 0)
		checkpoint_prune(j->run_dir, j->order.last, j->order.iteration);
	j->rc = checkpoint_save_stage(j->run_dir, &j->config, j->stage, j->order.iteration,
				      j->state, true, &j->hash, &j->bytes, &j->err);
}

static void tell_saved(struct save *s, const struct msg_saved *saved, int64_t now_us)
{
	struct msg m = { .type = MSG_SAVED, .u.saved = *saved };

	tell_controller(s->tell, &m, POST_RELIABLE, now_us);
}

static void tell_not_saved(struct save *s, const struct msg_save *order, uint8_t stage,
			   const char *why, int64_t now_us)
{
	struct msg_saved saved = { .iteration = order->iteration, .stage = stage };

	snprintf(saved.text, sizeof(saved.text), "%.*s", (int)sizeof(saved.text) - 1, why);
	tell_saved(s, &saved, now_us);
}

/* A restarted controller may repeat an order that this node is still carrying out. The agent then
 * answers once, when the checkpoint is written. */
void save_begin(struct save *s, const struct msg_save *m, int64_t now_us)
{
	if (!s->run_dir || m->iteration != s->held->committed) {
		tell_not_saved(s, m, s->held->stage,
			       s->run_dir ? "it holds another iteration" : "it has no --run-dir",
			       now_us);
	} else if (s->state == SAVE_IDLE) {
		s->order = *m;
		s->stage = s->held->stage;
		s->state = SAVE_WANTED;
	} else if (s->state == SAVE_FORGOTTEN || s->order.iteration != m->iteration ||
		   s->stage != s->held->stage) {
		tell_not_saved(s, m, s->held->stage,
			       "the previous checkpoint is still being written", now_us);
	}
}

bool save_next_part(struct save *s, struct job *job)
{
	if (!s->copy)
		return false;
	*job = (struct job){ .kind = JOB_STATE,
			     .for_checkpoint = true,
			     .state = { .most = STATE_PART, .copied = s->copied },
			     .out = s->copy };
	s->copy = NULL;
	return true;
}

bool save_next_job(struct save *s, struct job *job)
{
	if (s->state != SAVE_WANTED || s->held->standing != STAND_READY)
		return false;
	s->state = SAVE_IDLE;
	if (s->order.iteration != s->held->committed || s->stage != s->held->stage) {
		/* Before the worker was free, the node got another stage or committed an
		 * iteration. */
		tell_not_saved(s, &s->order, s->stage, "it now holds another stage or iteration",
			       s->tell->now_us);
		return false;
	}
	s->state = SAVE_COPYING;
	*job = (struct job){ .kind = JOB_STATE,
			     .for_checkpoint = true,
			     .state = { .most = STATE_PART } };
	return true;
}

void save_job_done(struct save *s, struct job *job, int64_t now_us)
{
	struct save_job *j;

	s->state = SAVE_IDLE;
	if (job->rc < 0) {
		tell_not_saved(s, &s->order, s->stage, job->err.text, now_us);
		return;
	}
	if (!job->state.whole) {
		s->state = SAVE_COPYING;
		s->copy = job->out;
		s->copied = job->state.copied;
		job->out = NULL;
		return;
	}
	j = alloc_new(sizeof(*j));
	*j = (struct save_job){ .run_dir = s->run_dir,
				.config = s->run->config,
				.stage = s->stage,
				.order = s->order,
				.state = job->out };
	job->out = NULL;
	s->job = j;
	s->state = SAVE_WRITING;
	worker_start(s->worker, write_job, NULL, j);
}

static void free_job(struct save *s)
{
	free(s->job->state);
	free(s->job);
	s->job = NULL;
	s->state = SAVE_IDLE;
}

void save_turn(struct save *s, int64_t now_us)
{
	struct msg_saved saved = { .iteration = 0 };
	bool is_awaited = s->state == SAVE_WRITING;

	if (!worker_finished(s->worker))
		return;
	saved.iteration = s->job->order.iteration;
	saved.stage = s->job->stage;
	if (s->job->rc == 0) {
		saved.hash = s->job->hash;
		saved.bytes = s->job->bytes;
	} else {
		snprintf(saved.text, sizeof(saved.text), "%.*s", (int)sizeof(saved.text) - 1,
			 s->job->err.text);
	}
	free_job(s);
	if (is_awaited)
		tell_saved(s, &saved, now_us);
}

void save_free(struct save *s)
{
	if (!s)
		return;
	worker_free(s->worker); /* worker_free waits until the checkpoint is written */
	if (s->job)
		free_job(s);
	free(s->copy);
	free(s);
}

void save_forget(struct save *s)
{
	free(s->copy);
	s->copy = NULL;
	s->state = s->job ? SAVE_FORGOTTEN : SAVE_IDLE;
}
