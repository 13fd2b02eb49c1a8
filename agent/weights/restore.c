/* restore.c - restores a stage that no process holds, from a file or from neighbouring stages.
 * Without it the run would end when the last replica of a stage dies. */
#include "agent/weights/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "agent/weights/fetch.h"
#include "base/alloc.h"
#include "model/files/checkpoint.h"

/* The newest MSG_RESTORE and its progress. */
struct restore {
	bool wanted;
	struct msg_restore order;
	uint16_t nodes[2]; /* arrays that the order points to */
	uint8_t stages[2];
	float weights[2];
	uint64_t hashes[2];
	uint32_t done; /* number of neighbours that were added, of order.n_from */
	struct fetch fetch;
	/* The file: HERE or on its way from the controller. A file of this machine that turns out
	 * to be damaged is fetched, once. */
	enum { FILE_NOT_SOUGHT, FILE_FETCHING, FILE_HERE, FILE_FETCHED } file;
	bool loading; /* the worker runs the restore's job */
	bool made;    /* the present stage is an average of its neighbours */
};

struct restore *restore_new(void)
{
	struct restore *x = alloc_new(sizeof(*x));

	return x;
}

void restore_free(struct restore *x)
{
	if (x)
		fetch_end(&x->fetch);
	free(x);
}

void restore_forget(struct agent *a)
{
	fetch_end(&a->modules.restore->fetch);
	a->modules.restore->done = 0;
	a->modules.restore->loading = a->modules.restore->made = false;
}

static void tell_unready(struct agent *a, const char *why, int64_t now_us)
{
	struct msg m = { .type = MSG_UNREADY };

	m.u.unready.assignment = a->modules.restore->order.assignment;
	snprintf(m.u.unready.text, sizeof(m.u.unready.text), "%s", why);
	log_line(a->tell.log, LOG_WARN, "stage %u cannot be restored: %s",
		 a->modules.restore->order.stage, why);
	tell_controller(&a->tell, &m, POST_RELIABLE, now_us);
	fetch_end(&a->modules.restore->fetch);
	a->modules.restore->wanted = false;
	a->held.standing = a->held.whole ? STAND_READY : STAND_UNASSIGNED;
	a->requests.zero = a->held.whole;
}

static bool is_sensible(const struct agent *a, const struct msg_restore *m)
{
	if (m->stage >= a->run.limits.n_stages || m->n_from > 2 ||
	    (m->kind == RESTORE_AVERAGE && m->n_from == 0))
		return false;
	for (uint32_t i = 0; i < m->n_from; i++)
		if (m->nodes[i] >= a->run.welcome.n_nodes || m->stages[i] >= a->run.limits.n_stages)
			return false;
	return true;
}

void restore_begin(struct agent *a, const struct msg_restore *m)
{
	struct restore *r = a->modules.restore;

	if (m->assignment < a->held.assign.assignment) {
		a->tell.tally.dropped++;
		return;
	}
	if (!is_sensible(a, m)) {
		tell_trouble(&a->tell, false, "the order to restore stage %u is invalid", m->stage);
		return;
	}
	/* The restore begins once the worker has finished and assign.c has dropped the old
	 * stage. */
	r->wanted = true;
	if (r->file == FILE_FETCHING)
		files_cancel(a);
	r->file = FILE_NOT_SOUGHT;
	r->order = *m;
	for (uint32_t i = 0; i < m->n_from; i++) {
		r->nodes[i] = m->nodes[i];
		r->stages[i] = m->stages[i];
		r->weights[i] = m->weights[i];
		r->hashes[i] = m->hashes[i];
	}
	a->held.assign = (struct msg_assign){ m->assignment, m->stage, 1 };
	a->held.standing = STAND_WAITING;
	log_line(a->tell.log, LOG_INFO, "restoring stage %u as of iteration %" PRIu64, m->stage,
		 m->iteration);
}

/* Writes the path of the order's file on this machine. Returns its folder; NULL: there is none. */
static const char *file_path(struct agent *a, char *path, size_t room)
{
	const struct msg_restore *order = &a->modules.restore->order;
	const char *folder = order->on_controller ? files_folder(a) : a->options.run_dir;

	if (!folder ||
	    checkpoint_stage_path(path, room, folder, order->stage, order->iteration) < 0)
		return NULL;
	return folder;
}

static void fetch_file(struct agent *a, int64_t now_us)
{
	const struct msg_restore *order = &a->modules.restore->order;
	struct msg_file_ask ask = { .kind = FILE_STAGE,
				    .iteration = order->iteration,
				    .index = order->stage };
	char path[4096];

	if (!file_path(a, path, sizeof(path)))
		return;
	a->modules.restore->file = FILE_FETCHING;
	files_fetch(a, &ask, path, now_us);
}

bool restore_fetching(struct agent *a, int64_t now_us)
{
	struct restore *r = a->modules.restore;
	char path[4096];

	if (r->order.kind != RESTORE_FILE || !r->order.on_controller)
		return false;
	if (r->file == FILE_NOT_SOUGHT) {
		r->file = FILE_HERE;
		if (file_path(a, path, sizeof(path)) && access(path, R_OK) != 0)
			fetch_file(a, now_us);
	}
	if (r->file == FILE_FETCHING && files_fetched(a)->state == TRANSFER_DONE)
		r->file = FILE_FETCHED;
	return r->file == FILE_FETCHING && files_fetched(a)->state == TRANSFER_RUNNING;
}

bool restore_name_file(struct agent *a, struct job *job, int64_t now_us)
{
	const struct msg_restore *order = &a->modules.restore->order;
	char path[4096];
	const char *folder = file_path(a, path, sizeof(path));

	if (order->kind != RESTORE_FILE)
		return true;
	if (!folder || a->modules.restore->file == FILE_FETCHING) {
		tell_unready(a,
			     !folder ? "this agent has no --run-dir" : files_fetched(a)->reason,
			     now_us);
		return false;
	}
	job->folder = folder;
	job->iteration = order->iteration;
	job->expected_hash = order->hash;
	return true;
}

bool restore_next_job(struct agent *a, struct job *job, int64_t now_us)
{
	struct restore *r = a->modules.restore;

	if (r->loading)
		return false;
	if (r->order.kind == RESTORE_FILE) {
		*job = (struct job){ .kind = JOB_RESTORE };
		a->held.whole = false;
		r->loading = restore_name_file(a, job, now_us);
		return r->loading;
	}
	if (r->fetch.n == 0 && fetch_begin(&r->fetch, r->nodes[r->done], r->stages[r->done],
					   a->held.parameters, now_us) < 0) {
		tell_unready(a, "no memory for a neighbour's state", now_us);
		return false;
	}
	if (r->fetch.took_us == 0)
		fetch_expect(&r->fetch, peers_piece_us(&a->peers, r->fetch.source,
						       fetch_piece_floats(a->held.parameters)));
	if (!fetch_whole(&r->fetch))
		return false;
	*job = (struct job){ .kind = JOB_MIX,
			     .mix = { .state = r->fetch.state,
				      .weight = r->weights[r->done],
				      .first = r->done == 0 },
			     .expected_hash = r->hashes[r->done] };
	a->held.whole = false;
	r->loading = true;
	return true;
}

void restore_job_done(struct agent *a, const struct job *job, int64_t now_us)
{
	struct restore *r = a->modules.restore;

	r->loading = false;
	if (a->held.standing != STAND_RESTORING && a->held.standing != STAND_PREPARING)
		return; /* a newer order has arrived meanwhile */
	if (job->rc < 0 && r->order.on_controller && r->file == FILE_HERE) {
		tell_log(&a->tell, LOG_WARN, "%s", job->err.text);
		fetch_file(a, now_us);
		a->held.standing = STAND_WAITING;
		return;
	}
	if (job->rc < 0) {
		tell_unready(a, job->err.text, now_us);
		return;
	}
	fetch_end(&r->fetch);
	if (++r->done < r->order.n_from)
		return;
	r->wanted = false;
	r->made = r->order.kind == RESTORE_AVERAGE;
	a->held.committed = r->order.iteration;
	a->held.standing = STAND_MEASURING;
}

bool restore_piece_arrived(struct agent *a, const struct msg *m, int64_t now_us)
{
	const struct msg_tensor *t = &m->u.tensor;
	struct restore *r = a->modules.restore;

	if (a->held.standing != STAND_RESTORING || r->fetch.n == 0 || t->from != r->fetch.source ||
	    t->stage != r->fetch.stage)
		return false;
	if (t->iteration != r->order.iteration ||
	    t->hash != fetch_hash(m->body, m->body_size / sizeof(float)) ||
	    fetch_take(&r->fetch, t->index, t->iteration, m->body, m->body_size, now_us) < 0)
		a->tell.tally.refused++;
	return true;
}

void restore_turn(struct agent *a, int64_t now_us)
{
	struct fetch *f = &a->modules.restore->fetch;
	uint32_t piece;

	while (a->held.standing == STAND_RESTORING && f->n > 0 &&
	       fetch_next(f, now_us, &piece) == 0)
		links_fetch(&a->modules.links, f->source, f->stage, piece, now_us);
}

bool restore_wanted(const struct agent *a)
{
	return a->modules.restore->wanted;
}

bool restore_unused(const struct agent *a)
{
	return a->modules.restore->made && a->progress.iteration == 0 &&
	       a->held.committed == a->modules.restore->order.iteration;
}

void restore_cancel(struct agent *a)
{
	if (a->modules.restore->file == FILE_FETCHING)
		files_cancel(a);
	a->modules.restore->file = FILE_NOT_SOUGHT;
	a->modules.restore->wanted = false;
}

int64_t restore_deadline_us(const struct agent *a)
{
	return fetch_deadline_us(&a->modules.restore->fetch);
}
