/* restore.c - restores a stage that no process holds, from a file or from neighbouring stages.
 * Without a restore the run would end when the last replica of a stage dies. */
#include "agent/weights/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/shared/job.h"
#include "agent/weights/fetch.h"
#include "base/alloc.h"
#include "model/files/checkpoint.h"

/* The newest MSG_RESTORE and its progress. */
struct restore {
	bool wanted;
	struct msg_restore order;
	uint16_t nodes[2]; /* arrays to which the pointers in `order` point */
	uint8_t stages[2];
	float weights[2];
	uint64_t hashes[2];
	/* Number of neighbouring stages that are already added to the average. When `done` equals
	 * order.n_from, all of them are added. */
	uint32_t done;
	struct fetch fetch;
	/* State of the checkpoint's file. If the file on this machine is damaged, the
	 * controller's file is fetched, but only once. */
	enum { FILE_NOT_SOUGHT, FILE_FETCHING, FILE_HERE, FILE_FETCHED } file;
	bool loading; /* the worker runs a job of the restore */
	bool made;    /* the present stage is an average of neighbouring stages */
	struct restore_uses uses;
};

struct restore *restore_new(const struct restore_uses *uses)
{
	struct restore *x = alloc_new(sizeof(*x));

	x->uses = *uses;
	return x;
}

void restore_free(struct restore *x)
{
	if (x)
		fetch_end(&x->fetch);
	free(x);
}

void restore_forget(struct restore *r)
{
	fetch_end(&r->fetch);
	r->done = 0;
	r->loading = r->made = false;
}

static void tell_unready(struct restore *r, const char *why, int64_t now_us)
{
	struct msg m = { .type = MSG_UNREADY };

	m.u.unready.assignment = r->order.assignment;
	snprintf(m.u.unready.text, sizeof(m.u.unready.text), "%s", why);
	log_line(r->uses.tell->log, LOG_WARN, "stage %u cannot be restored: %s", r->order.stage,
		 why);
	tell_controller(r->uses.tell, &m, POST_RELIABLE, now_us);
	fetch_end(&r->fetch);
	r->wanted = false;
	r->uses.held->standing = r->uses.held->whole ? STAND_READY : STAND_UNASSIGNED;
	r->uses.requests->zero = r->uses.held->whole;
}

static bool is_sensible(const struct restore *r, const struct msg_restore *m)
{
	if (m->stage >= r->uses.run->limits.n_stages || m->n_from > 2 ||
	    (m->kind == RESTORE_AVERAGE && m->n_from == 0))
		return false;
	for (uint32_t i = 0; i < m->n_from; i++)
		if (m->nodes[i] >= r->uses.run->welcome.n_nodes ||
		    m->stages[i] >= r->uses.run->limits.n_stages)
			return false;
	return true;
}

void restore_begin(struct restore *r, const struct msg_restore *m)
{
	if (m->assignment < r->uses.held->assign.assignment) {
		r->uses.tell->tally.dropped++;
		return;
	}
	if (!is_sensible(r, m)) {
		tell_trouble(r->uses.tell, false, "the order to restore stage %u is invalid",
			     m->stage);
		return;
	}
	/* The restore begins later, when the worker has ended its job and assign.c has dropped the
	 * old stage. */
	r->wanted = true;
	if (r->file == FILE_FETCHING)
		files_cancel(r->uses.files);
	r->file = FILE_NOT_SOUGHT;
	r->order = *m;
	for (uint32_t i = 0; i < m->n_from; i++) {
		r->nodes[i] = m->nodes[i];
		r->stages[i] = m->stages[i];
		r->weights[i] = m->weights[i];
		r->hashes[i] = m->hashes[i];
	}
	r->uses.held->assign = (struct msg_assign){ m->assignment, m->stage, 1 };
	r->uses.held->standing = STAND_WAITING;
	log_line(r->uses.tell->log, LOG_INFO, "restoring stage %u as of iteration %" PRIu64,
		 m->stage, m->iteration);
}

/* Writes the path of the checkpoint's file on this machine. Returns the file's folder; NULL:
 * none. */
static const char *file_path(struct restore *r, char *path, size_t room)
{
	const struct msg_restore *order = &r->order;
	const char *folder = order->on_controller ? files_folder(r->uses.files) : r->uses.run_dir;

	if (!folder ||
	    checkpoint_stage_path(path, room, folder, order->stage, order->iteration) < 0)
		return NULL;
	return folder;
}

static void fetch_file(struct restore *r, int64_t now_us)
{
	const struct msg_restore *order = &r->order;
	struct msg_file_ask ask = { .kind = FILE_STAGE,
				    .iteration = order->iteration,
				    .index = order->stage };
	char path[4096];

	if (!file_path(r, path, sizeof(path)))
		return;
	r->file = FILE_FETCHING;
	files_fetch(r->uses.files, &ask, path, now_us);
}

bool restore_fetching(struct restore *r, int64_t now_us)
{
	char path[4096];

	if (r->order.kind != RESTORE_FILE || !r->order.on_controller)
		return false;
	if (r->file == FILE_NOT_SOUGHT) {
		r->file = FILE_HERE;
		if (file_path(r, path, sizeof(path)) && access(path, R_OK) != 0)
			fetch_file(r, now_us);
	}
	if (r->file == FILE_FETCHING && files_fetched(r->uses.files)->state == TRANSFER_DONE)
		r->file = FILE_FETCHED;
	return r->file == FILE_FETCHING && files_fetched(r->uses.files)->state == TRANSFER_RUNNING;
}

bool restore_name_file(struct restore *r, struct job *job, int64_t now_us)
{
	const struct msg_restore *order = &r->order;
	char path[4096];
	const char *folder = file_path(r, path, sizeof(path));

	if (order->kind != RESTORE_FILE)
		return true;
	if (!folder || r->file == FILE_FETCHING) {
		tell_unready(r,
			     !folder ? "this agent has no --run-dir"
				     : files_fetched(r->uses.files)->reason,
			     now_us);
		return false;
	}
	job->folder = folder;
	job->iteration = order->iteration;
	job->expected_hash = order->hash;
	return true;
}

bool restore_next_job(struct restore *r, struct job *job, int64_t now_us)
{
	if (r->loading)
		return false;
	if (r->order.kind == RESTORE_FILE) {
		*job = (struct job){ .kind = JOB_RESTORE };
		r->uses.held->whole = false;
		r->loading = restore_name_file(r, job, now_us);
		return r->loading;
	}
	if (r->fetch.n == 0 && fetch_begin(&r->fetch, r->nodes[r->done], r->stages[r->done],
					   r->uses.held->parameters, now_us) < 0) {
		tell_unready(r, "no memory for a neighbour's state", now_us);
		return false;
	}
	if (r->fetch.took_us == 0)
		fetch_expect(&r->fetch,
			     peers_piece_us(r->uses.peers, r->fetch.source,
					    fetch_piece_floats(r->uses.held->parameters)));
	if (!fetch_whole(&r->fetch))
		return false;
	*job = (struct job){ .kind = JOB_MIX,
			     .mix = { .state = r->fetch.state,
				      .weight = r->weights[r->done],
				      .first = r->done == 0 },
			     .expected_hash = r->hashes[r->done] };
	r->uses.held->whole = false;
	r->loading = true;
	return true;
}

void restore_job_done(struct restore *r, const struct job *job, int64_t now_us)
{
	r->loading = false;
	if (r->uses.held->standing != STAND_RESTORING && r->uses.held->standing != STAND_PREPARING)
		return; /* a newer order has arrived during the job, so its result is not used */
	if (job->rc < 0 && r->order.on_controller && r->file == FILE_HERE) {
		tell_log(r->uses.tell, LOG_WARN, "%s; the controller's file is fetched",
			 job->err.text);
		fetch_file(r, now_us);
		r->uses.held->standing = STAND_WAITING;
		return;
	}
	if (job->rc < 0) {
		tell_unready(r, job->err.text, now_us);
		return;
	}
	fetch_end(&r->fetch);
	if (++r->done < r->order.n_from)
		return;
	r->wanted = false;
	r->made = r->order.kind == RESTORE_AVERAGE;
	r->uses.held->committed = r->order.iteration;
	r->uses.held->standing = STAND_MEASURING;
}

bool restore_piece_arrived(struct restore *r, const struct msg *m, int64_t now_us)
{
	const struct msg_tensor *t = &m->u.tensor;

	if (r->uses.held->standing != STAND_RESTORING || r->fetch.n == 0 ||
	    t->from != r->fetch.source || t->stage != r->fetch.stage)
		return false;
	if (t->iteration != r->order.iteration ||
	    t->hash != fetch_hash(m->body, m->body_size / sizeof(float)) ||
	    fetch_take(&r->fetch, t->index, t->iteration, m->body, m->body_size, now_us) < 0)
		r->uses.tell->tally.refused++;
	return true;
}

void restore_turn(struct restore *r, int64_t now_us)
{
	struct fetch *f = &r->fetch;
	uint32_t piece;

	while (r->uses.held->standing == STAND_RESTORING && f->n > 0 &&
	       fetch_next(f, now_us, &piece) == 0)
		links_fetch(r->uses.links, f->source, f->stage, piece, now_us);
}

bool restore_wanted(const struct restore *r)
{
	return r->wanted;
}

bool restore_unused(const struct restore *r)
{
	return r->made && r->uses.progress->iteration == 0 &&
	       r->uses.held->committed == r->order.iteration;
}

void restore_cancel(struct restore *r)
{
	if (r->file == FILE_FETCHING)
		files_cancel(r->uses.files);
	r->file = FILE_NOT_SOUGHT;
	r->wanted = false;
}

int64_t restore_deadline_us(const struct restore *r)
{
	return fetch_deadline_us(&r->fetch);
}
