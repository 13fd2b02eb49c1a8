/* The copy of a stage that this node keeps beside its own: for a stage with one replica, for a
 * move to another stage, or to join its own.
 *
 * It is fetched while the run goes on, and follows the run from the first piece: it gets every
 * reduction's sum, as replicas do, and steps with every commit. AdamW works element by element,
 * so the pieces that are there can step without the others; a piece that comes later is of a
 * later iteration and waits until the copy has come so far. The controller commits when the sum is
 * with the whole copies too: a stage with one replica and one copy is in two places after every
 * commit. For one that is still being fetched nobody waits: its sums may come after the commit, and
 * what the controller orders meanwhile waits here in line.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"

enum { SUM_PATIENCE_US = 5000000, MORE_PATIENCE_US = 20000000, PIECES_PATIENCE = 8 };

static void forget_reduce(struct keeping *k)
{
	reduce_free(k->reduce);
	k->reduce = NULL;
	k->reducing = REDUCE_NONE;
}

void keep_forget(struct agent *a)
{
	struct keeping *k = &a->keep;

	fetch_end(&k->fetch);
	forget_reduce(k);
	free(k->taken);
	memset(k, 0, sizeof(*k));
	k->stage = k->order.stage = MSG_NO_STAGE;
}

static uint64_t iteration_of(const struct keeping *k)
{
	return k->standing == KEEP_WHOLE ? k->iteration : k->fetch.iteration;
}

uint64_t keep_iteration(const struct agent *a)
{
	return iteration_of(&a->keep);
}

static void tell_kept(struct agent *a, const char *why, int64_t now_us)
{
	struct msg m = { .type = MSG_KEPT };

	m.u.kept = (struct msg_kept){ .assignment = a->keep.order.assignment,
				      .stage = a->keep.order.stage,
				      .iteration = a->keep.iteration,
				      .hash = why ? 0 : a->keep.hash };
	snprintf(m.u.kept.text, sizeof(m.u.kept.text), "%s", why ? why : "");
	agent_tell(a, &m, POST_RELIABLE, now_us);
}

static void tell_committed(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_COMMITTED };

	m.u.committed =
		(struct msg_committed){ a->keep.iteration, a->keep.stage, a->keep.hash };
	agent_tell(a, &m, POST_RELIABLE, now_us);
}

static void keep_begin(struct agent *a, const struct msg_keep *m)
{
	struct keeping *k = &a->keep;

	if (m->assignment < k->order.assignment) {
		a->dropped++;
		return;
	}
	if (m->stage != MSG_NO_STAGE &&
	    (m->stage >= a->limits.n_stages || m->source >= a->run.n_nodes)) {
		agent_trouble(a, false,
			      "a copy of stage %u from node %u: there is no such stage "
			      "or node",
			      m->stage, m->source);
		return;
	}
	log_line(a->options.log, LOG_INFO, "copy of stage %u, from node %u", m->stage,
		 m->source);
	fetch_end(&k->fetch);
	forget_reduce(k);
	k->step_wanted = false;
	k->order = *m;
	k->standing = KEEP_WANTED;
}

/* ---- pieces ---- */

/* The first piece says where in the row of sums the copy begins: those up to it are not needed, and
 * one must not be missing. */
static bool joins_the_sums(struct keeping *k, uint64_t iteration)
{
	if (!k->reduce || iteration + 1 == reduce_iteration(k->reduce))
		return true;
	if (iteration < reduce_iteration(k->reduce) || k->reducing == REDUCE_NORMING)
		return false;
	forget_reduce(k);
	k->step_wanted = false;
	return true;
}

void keep_piece_arrived(struct agent *a, const struct msg *m, int64_t now_us)
{
	const struct msg_tensor *t = &m->u.tensor;
	struct keeping *k = &a->keep;
	struct fetch *f = &k->fetch;
	int rc = -EINVAL;

	if (k->standing != KEEP_FETCHING || t->from != f->source || t->stage != f->stage ||
	    t->hash != fetch_hash(m->body, m->body_size / sizeof(float))) {
		a->refused++;
		return;
	}
	if (k->following || (f->n_held == 0 && !joins_the_sums(k, t->iteration))) {
		fetch_refuse(f, t->index, now_us); /* which iteration will be ours? */
	} else {
		if (f->n_held > 0 && t->iteration > f->iteration && !k->step_wanted &&
		    !(k->reduce && reduce_iteration(k->reduce) == f->iteration + 1))
			fetch_void(f); /* a commit passed us by */
		rc = fetch_take(f, t->index, t->iteration, m->body, m->body_size, now_us);
	}
	a->dropped += rc < 0;
}

/* A sum is a third of the bytes of all pieces. */
static int64_t sum_patience_us(const struct keeping *k)
{
	int64_t pieces = (int64_t)(k->parameters / MSG_PIECE_FLOATS) + 1;

	return SUM_PATIENCE_US + k->piece_us * pieces / 3;
}

/* The copy's sum of an iteration that is committed does not come: who had it is gone. Or sums come
 * more slowly than commits, and what was fetched is of no use again and again. */
static void check_sum(struct agent *a, int64_t now_us)
{
	struct keeping *k = &a->keep;

	if (k->standing == KEEP_FETCHING && k->fetch.n_held > k->most_held) {
		k->most_held = k->fetch.n_held;
		k->more_us = now_us;
		k->piece_us = k->fetch.took_us;
	}
	if (k->standing == KEEP_FETCHING && !fetch_whole(&k->fetch) && !k->following &&
	    k->reducing != REDUCE_NORMING &&
	    now_us - k->more_us > MORE_PATIENCE_US + PIECES_PATIENCE * k->piece_us) {
		tell_kept(a, "commits come faster than its link carries their sums", now_us);
		keep_forget(a);
		return;
	}
	if (!k->step_wanted || k->reducing != REDUCE_SUMS || now_us - k->heard_us < sum_patience_us(k))
		return;
	tell_kept(a, "its sums do not come, or too late", now_us);
	keep_forget(a);
}

void keep_turn(struct agent *a, int64_t now_us)
{
	uint32_t piece;

	check_sum(a, now_us);
	while (a->keep.standing == KEEP_FETCHING &&
	       fetch_next(&a->keep.fetch, now_us, &piece) == 0)
		links_fetch(a, a->keep.fetch.source, a->keep.fetch.stage, piece, now_us);
}

/* ---- sums ---- */

static void watch(struct agent *a, const struct msg_reduce *m)
{
	struct keeping *k = &a->keep;
	int rc;

	if (k->reduce && m->attempt <= reduce_attempt(k->reduce) &&
	    m->iteration == reduce_iteration(k->reduce)) {
		a->dropped++;
		return;
	}
	forget_reduce(k);
	rc = reduce_watch(&k->reduce, m->iteration, m->attempt, m->nodes, m->n_nodes,
			  k->parameters);
	if (rc)
		agent_trouble(a, rc == -ENOMEM, "the sum of stage %u: %s", m->stage,
			      rc == -ENOMEM ? "no memory" : "its nodes must ascend");
	else
		k->reducing = REDUCE_SUMS;
}

static void keep_reduce(struct agent *a, const struct msg_reduce *m)
{
	struct keeping *k = &a->keep;

	if (k->standing == KEEP_NONE) {
		a->dropped++; /* given up, and the controller is told */
		return;
	}
	if (k->order.stage != m->stage) {
		agent_trouble(a, false,
			      "a sum for the copy of stage %u, which is not kept here",
			      m->stage);
		return;
	}
	watch(a, m);
	early_look_again(a, clock_monotonic_us());
}

/* A sum for the copy: whether it is one. Then *rc: 0 taken, -EINVAL. */
bool keep_sum_arrived(struct agent *a, const struct msg *m, int *rc)
{
	const struct msg_tensor *t = &m->u.tensor;
	struct keeping *k = &a->keep;

	if (!k->reduce || t->kind != TENSOR_SUM || t->stage != k->stage ||
	    t->iteration != reduce_iteration(k->reduce) ||
	    t->attempt != reduce_attempt(k->reduce))
		return false;
	k->heard_us = clock_monotonic_us();
	*rc = reduce_put_sum(k->reduce, t->from, t->index, t->offset, m->body, m->body_size);
	a->dropped += *rc == -EALREADY;
	if (*rc == -EALREADY)
		*rc = 0;
	return true;
}

bool keep_wants(const struct agent *a, const struct msg_tensor *t)
{
	return t->kind == TENSOR_SUM && a->keep.standing != KEEP_NONE &&
	       t->stage == a->keep.order.stage;
}

static void tell_reduced(struct agent *a, int64_t now_us)
{
	struct keeping *k = &a->keep;
	struct msg m = { .type = MSG_REDUCED };

	m.u.reduced = (struct msg_reduced){ .iteration = reduce_iteration(k->reduce),
					    .attempt = reduce_attempt(k->reduce),
					    .stage = k->stage,
					    .sum_squares = k->sum_squares,
					    .n_slices = reduce_count(k->reduce),
					    .slices = reduce_hashes(k->reduce) };
	agent_tell(a, &m, POST_RELIABLE, now_us);
}

/* ---- commits ---- */

static void keep_commit(struct agent *a, const struct msg_commit *m, int64_t now_us)
{
	struct keeping *k = &a->keep;
	bool mine = k->reduce && reduce_iteration(k->reduce) == m->iteration &&
		    reduce_attempt(k->reduce) == m->attempt;

	if (k->standing == KEEP_WHOLE && m->iteration <= k->iteration) {
		tell_committed(a, now_us);
		return;
	}
	if (k->standing == KEEP_WHOLE && (!mine || m->iteration != k->iteration + 1)) {
		tell_kept(a, "it missed a commit", now_us);
		keep_forget(a);
		return;
	}
	if (mine && k->standing == KEEP_FETCHING && k->fetch.n_held > 0 &&
	    iteration_of(k) + 1 != m->iteration) {
		forget_reduce(k); /* what is held is newer, or cannot step */
		return;
	}
	if (mine) {
		k->commit = *m;
		k->step_wanted = true;
		k->heard_us = now_us;
	}
}

/* ---- jobs ---- */

static bool begin_follow(struct agent *a)
{
	struct keeping *k = &a->keep;
	const struct msg_commit *m = &k->commit;
	bool step = k->step_wanted && k->reducing == REDUCE_DONE &&
		    (k->standing == KEEP_WHOLE || k->fetch.n_held > 0);
	bool whole = k->standing == KEEP_WHOLE || fetch_whole(&k->fetch);

	if (!step && (k->standing == KEEP_WHOLE || !whole))
		return false;
	a->job = (struct job){ .kind = JOB_FOLLOW, .state = k->fetch.state, .whole = whole };
	if (k->standing == KEEP_FETCHING) {
		for (uint32_t i = 0; i < k->fetch.n; i++)
			k->taken[i] = fetch_fits(&k->fetch, i);
		a->job.fresh = k->taken;
	}
	if (step) {
		a->job.reduce = k->reduce;
		a->job.scale = m->scale;
		a->job.adamw =
			(struct adamw){ m->lr, m->beta1, m->beta2, m->eps, m->weight_decay };
		a->job.iteration = m->iteration;
	}
	k->following = true;
	return true;
}

/* Whether nothing of the copy is with the worker, or about to be. */
bool keep_settled(const struct agent *a)
{
	const struct keeping *k = &a->keep;

	return k->standing != KEEP_WANTED && k->standing != KEEP_MAKING && !k->following &&
	       !k->step_wanted && k->reducing != REDUCE_NORMING;
}

void keep_abandon(struct agent *a)
{
	if (!a->keep.following)
		a->keep.step_wanted = false;
}

/* Orders that wait until then. */
void keep_control(struct agent *a, const struct msg *m, int64_t now_us)
{
	if (m->type == MSG_KEEP)
		keep_begin(a, &m->u.keep);
	else if (m->type == MSG_REDUCE)
		keep_reduce(a, &m->u.reduce);
	else
		keep_commit(a, &m->u.commit, now_us);
}

bool keep_next_job(struct agent *a)
{
	struct keeping *k = &a->keep;

	if (k->standing == KEEP_WANTED) {
		a->job = (struct job){ .kind = JOB_KEEP, .stage = k->order.stage };
		k->standing = KEEP_MAKING;
		return true;
	}
	if (k->standing != KEEP_FETCHING && k->standing != KEEP_WHOLE)
		return false;
	if (begin_follow(a))
		return true;
	if (k->reducing == REDUCE_SUMS && reduce_complete(k->reduce)) {
		a->job = (struct job){ .kind = JOB_NORM, .reduce = k->reduce, .kept = true };
		k->reducing = REDUCE_NORMING;
		return true;
	}
	return false;
}

static void made(struct agent *a, int64_t now_us)
{
	struct keeping *k = &a->keep;

	k->stage = k->order.stage;
	if (a->job.rc < 0) {
		tell_kept(a, a->job.err.text, now_us);
		keep_forget(a);
		return;
	}
	if (k->stage == MSG_NO_STAGE) {
		keep_forget(a);
		return;
	}
	k->parameters = a->job.parameters;
	k->standing = KEEP_FETCHING;
	k->iteration = 0;
	k->most_held = 0;
	k->piece_us = links_piece_us(a, k->order.source);
	k->more_us = now_us;
	free(k->taken);
	k->taken = NULL;
	if (fetch_begin(&k->fetch, k->order.source, k->stage, k->parameters, now_us) == 0)
		k->taken = calloc(k->fetch.n, sizeof(k->taken[0]));
	fetch_expect(&k->fetch, k->piece_us);
	if (!k->taken) {
		tell_kept(a, "no memory for the copy", now_us);
		keep_forget(a);
		return;
	}
}

static void followed(struct agent *a, int64_t now_us)
{
	struct keeping *k = &a->keep;

	k->following = false;
	if (a->job.reduce) {
		k->iteration = k->fetch.iteration = a->job.iteration;
		forget_reduce(k);
		k->step_wanted = false;
	}
	for (uint32_t i = 0; a->job.fresh && i < k->fetch.n; i++)
		k->fetch.fresh[i] = k->fetch.fresh[i] && !k->taken[i];
	if (!a->job.whole)
		return;
	k->hash = a->job.hash;
	if (k->standing == KEEP_FETCHING) {
		k->iteration = k->fetch.iteration;
		k->standing = KEEP_WHOLE;
		fetch_end(&k->fetch);
		log_line(a->options.log, LOG_INFO, "the copy of stage %u is whole: it %" PRIu64,
			 k->stage, k->iteration);
		tell_kept(a, NULL, now_us);
	}
	if (a->job.reduce)
		tell_committed(a, now_us);
}

void keep_job_done(struct agent *a, int64_t now_us)
{
	struct keeping *k = &a->keep;

	if (a->job.kind == JOB_KEEP) {
		made(a, now_us);
	} else if (a->job.kind == JOB_FOLLOW) {
		followed(a, now_us);
	} else {
		k->sum_squares = a->job.sum_squares;
		k->reducing = REDUCE_DONE;
		tell_reduced(a, now_us);
	}
}
