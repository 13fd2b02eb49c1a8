/* standby.c - keeps a second copy of a stage on this node. The copy is a reserve for a stage with
 * one replica, or it has the weights with which this node will move to another stage or join its
 * own stage.
 *
 * The copy is fetched while the run continues. From its first piece on, the copy follows the run:
 * it gets the sum of every reduction, as replicas do, and steps with every commit. AdamW works
 * element by element, so the pieces that have arrived step without the missing ones. A piece
 * whose iteration is later than the copy's iteration waits until the copy reaches the iteration
 * of the piece.
 *
 * The controller does not commit before every complete copy has the sum too. After every commit,
 * a stage with one replica and one copy therefore exists on two nodes. The controller does not
 * wait for a copy that is still being fetched. The sums of such a copy may arrive after the
 * commit, and orders.c queues further orders for the copy.
 */
#include "agent/weights/standby_private.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/job.h"
#include "base/stage_set.h"
#include "base/alloc.h"

/* SUM_PATIENCE_US limits the wait for a sum, in addition to the sum's transfer time.
 * MORE_PATIENCE_US limits the wait for further pieces, in addition to the transfer time of
 * PIECES_PATIENCE pieces. */
enum { SUM_PATIENCE_US = 5000000, MORE_PATIENCE_US = 20000000, PIECES_PATIENCE = 8 };

static void apply(struct standby *k, enum standby_event event)
{
	bool is_possible = standby_sum_apply(&k->sum, event);

	assert(is_possible);
	(void)is_possible;
}

static void forget_reduce(struct standby *k)
{
	apply(k, STANDBY_FORGET);
	slices_free(k->slices);
	k->slices = NULL;
}

struct standby *standby_new(const struct standby_uses *uses)
{
	struct standby *x = alloc_new(sizeof(*x));

	x->uses = *uses;
	x->stage = x->order.stage = MSG_NO_STAGE;
	return x;
}

void standby_free(struct standby *x)
{
	if (!x)
		return;
	fetch_end(&x->fetch);
	slices_free(x->slices);
	free(x->taken);
	free(x);
}

void standby_forget(struct standby *k)
{
	fetch_end(&k->fetch);
	slices_free(k->slices);
	free(k->taken);
	*k = (struct standby){ .stage = MSG_NO_STAGE,
			       .order = { .stage = MSG_NO_STAGE },
			       .uses = k->uses };
}

/* Returns true while the worker runs a job of the copy. The job uses the memory of the copy, its
 * pieces and its sum, which must not be freed meanwhile. */
static bool job_runs(const struct standby *k)
{
	return k->standing == STANDBY_MAKING || standby_sum_is_in_use(k->sum);
}

static uint64_t find_iteration(const struct standby *k)
{
	return k->standing == STANDBY_WHOLE ? k->iteration : k->fetch.iteration;
}

uint64_t standby_iteration(const struct standby *k)
{
	return find_iteration(k);
}

static void tell_kept(struct standby *k, const char *why, int64_t now_us)
{
	struct msg m = { .type = MSG_KEPT };

	m.u.kept = (struct msg_kept){ .assignment = k->order.assignment,
				      .stage = k->order.stage,
				      .iteration = k->iteration,
				      .hash = why ? 0 : k->hash };
	snprintf(m.u.kept.text, sizeof(m.u.kept.text), "%s", why ? why : "");
	tell_controller(k->uses.tell, &m, POST_RELIABLE, now_us);
}

/* Reports the reason to the controller, and drops the copy. */
static void drop_copy(struct standby *k, const char *why, int64_t now_us)
{
	assert(!job_runs(k));
	tell_kept(k, why, now_us);
	standby_forget(k);
}

static void tell_committed(struct standby *k, int64_t now_us)
{
	struct msg m = { .type = MSG_COMMITTED };

	m.u.committed = (struct msg_committed){ .iteration = k->iteration,
						      .stage = k->stage,
						      .hash = k->hash,
						      .copy = 1 };
	tell_controller(k->uses.tell, &m, POST_RELIABLE, now_us);
}

static void begin_copy(struct standby *k, const struct msg_keep *m)
{
	if (m->assignment < k->order.assignment) {
		k->uses.tell->tally.dropped++;
		return;
	}
	if (m->stage != MSG_NO_STAGE && (m->stage >= k->uses.run->limits.n_stages ||
					 m->source >= k->uses.run->welcome.n_nodes)) {
		tell_trouble(k->uses.tell, false,
			     "cannot copy stage %u from node %u: there is no such "
			     "stage or node",
			     m->stage, m->source);
		return;
	}
	if (m->stage == MSG_NO_STAGE)
		log_line(k->uses.tell->log, LOG_INFO, "dropping the copy");
	else
		log_line(k->uses.tell->log, LOG_INFO, "copying stage %u from node %u", m->stage,
			 m->source);
	fetch_end(&k->fetch);
	forget_reduce(k);
	k->order = *m;
	k->standing = STANDBY_WANTED;
}

/* ---- pieces ---- */

/* Decides if the copy may begin with a piece of this iteration. Returns false if the sum that is
 * being received is two or more iterations ahead of the piece, because the copy would lack the
 * sums in between. A sum that is not ahead of the piece is useless. Drops such a sum, or returns
 * false if a job uses it. */
static bool add_to_sums_of(struct standby *k, uint64_t iteration)
{
	if (!k->slices || iteration + 1 == slices_iteration(k->slices))
		return true;
	if (iteration < slices_iteration(k->slices) || standby_sum_is_in_use(k->sum))
		return false;
	forget_reduce(k);
	return true;
}

void standby_piece_arrived(struct standby *k, const struct msg *m, int64_t now_us)
{
	const struct msg_tensor *t = &m->u.tensor;
	struct fetch *f = &k->fetch;
	int rc = -EINVAL;

	if (k->standing != STANDBY_FETCHING || t->from != f->source || t->stage != f->stage ||
	    t->hash != fetch_hash(m->body, m->body_size / sizeof(float))) {
		k->uses.tell->tally.refused++;
		return;
	}
	if (standby_sum_is_followed(k->sum) ||
	    (f->n_held == 0 && !add_to_sums_of(k, t->iteration))) {
		/* The piece is requested again, for one of two reasons. A job is storing or
		 * stepping pieces, so the copy's next iteration is uncertain. Or the copy would
		 * lack a sum. */
		fetch_refuse(f, t->index, now_us);
	} else {
		if (f->n_held > 0 && t->iteration > f->iteration && !standby_sum_is_due(k->sum) &&
		    !(k->slices && slices_iteration(k->slices) == f->iteration + 1))
			fetch_void(f); /* the copy has missed a commit, so its pieces are too old */
		rc = fetch_take(f, t->index, t->iteration, m->body, m->body_size, now_us);
	}
	k->uses.tell->tally.dropped += rc < 0;
}

/* Returns how long to wait for a sum, us. The transfer time of the sum is a third of the time of
 * all pieces, because pieces also have the moments. */
static int64_t sum_patience_us(const struct standby *k)
{
	int64_t pieces = (int64_t)(k->parameters / fetch_piece_floats(k->parameters)) + 1;

	return SUM_PATIENCE_US + k->piece_us * pieces / 3;
}

/* Drops a copy that cannot be completed. There are two cases. First, the sum of a committed
 * iteration does not arrive, because a node that had to send a slice of the sum is dead. Second,
 * the number of pieces does not grow, because commits come faster than the link carries
 * pieces. */
static void check_sum(struct standby *k, int64_t now_us)
{
	if (k->standing == STANDBY_FETCHING && k->fetch.n_held > k->most_held) {
		k->most_held = k->fetch.n_held;
		k->last_growth_us = now_us;
		k->piece_us = k->fetch.took_us;
	}
	if (job_runs(k))
		return;
	if (k->standing == STANDBY_FETCHING && !fetch_whole(&k->fetch) &&
	    now_us - k->last_growth_us > MORE_PATIENCE_US + PIECES_PATIENCE * k->piece_us)
		drop_copy(k, "its link is too slow for the sums of the commits", now_us);
	else if (k->sum == STANDBY_SUM_DUE && now_us - k->heard_us >= sum_patience_us(k))
		drop_copy(k, "its sums did not arrive in time", now_us);
}

void standby_turn(struct standby *k, int64_t now_us)
{
	uint32_t piece;

	check_sum(k, now_us);
	while (k->standing == STANDBY_FETCHING && fetch_next(&k->fetch, now_us, &piece) == 0)
		links_fetch(k->uses.links, k->fetch.source, k->fetch.stage, piece, now_us);
}

/* ---- sums ---- */

static void watch_sum(struct standby *k, const struct msg_reduce *m)
{
	struct sum_codec codec = k->uses.run->sum_codecs[k->stage];
	int rc;

	codec.format = (enum tensor_format)m->sum_wire;
	if (k->slices && m->attempt <= slices_attempt(k->slices) &&
	    m->iteration == slices_iteration(k->slices)) {
		k->uses.tell->tally.dropped++;
		return;
	}
	forget_reduce(k);
	rc = slices_watch(&k->slices, m->iteration, m->attempt, m->nodes, m->n_nodes, k->parameters,
			  &codec);
	if (rc)
		tell_trouble(k->uses.tell, rc == -ENOMEM, "cannot receive the sum of stage %u: %s",
			     m->stage,
			     rc == -ENOMEM ? "no memory" : "its nodes are not in ascending order");
	else
		apply(k, STANDBY_REDUCE);
}

static void begin_sum(struct standby *k, const struct msg_reduce *m)
{
	if (k->standing == STANDBY_NONE) {
		/* The controller sent this order before it knew that the copy was dropped. */
		k->uses.tell->tally.dropped++;
		return;
	}
	if (k->order.stage != m->stage) {
		tell_trouble(k->uses.tell, false,
			     "a sum for a copy of stage %u, but this node has no such copy",
			     m->stage);
		return;
	}
	watch_sum(k, m);
	k->uses.requests->look_again = true;
}

bool standby_sum_arrived(struct standby *k, const struct msg *m, int *rc)
{
	const struct msg_tensor *t = &m->u.tensor;

	if (!k->slices || t->kind != TENSOR_SUM || t->stage != k->stage ||
	    t->iteration != slices_iteration(k->slices) ||
	    t->attempt != slices_attempt(k->slices))
		return false;
	k->heard_us = k->uses.tell->now_us;
	*rc = slices_put_sum(k->slices, t->from, t->index, t->offset, m->body, m->body_size);
	k->uses.tell->tally.dropped += *rc == -EALREADY;
	if (*rc == -EALREADY)
		*rc = 0;
	return true;
}

bool standby_wants(const struct standby *k, const struct msg_tensor *t)
{
	return t->kind == TENSOR_SUM && k->standing != STANDBY_NONE && t->stage == k->order.stage;
}

static void tell_reduced(struct standby *k, int64_t now_us)
{
	struct msg m = { .type = MSG_REDUCED };

	m.u.reduced = (struct msg_reduced){ .iteration = slices_iteration(k->slices),
					    .attempt = slices_attempt(k->slices),
					    .stage = k->stage,
					    .sum_squares = k->sum_squares,
					    .n_slices = slices_count(k->slices),
					    .slices = slices_hashes(k->slices) };
	tell_controller(k->uses.tell, &m, POST_RELIABLE, now_us);
}

/* ---- commits ---- */

static void take_commit(struct standby *k, const struct msg_commit *m, int64_t now_us)
{
	bool mine = k->slices && slices_iteration(k->slices) == m->iteration &&
		    slices_attempt(k->slices) == m->attempt;

	if (k->standing == STANDBY_WHOLE && m->iteration <= k->iteration) {
		tell_committed(k, now_us);
		return;
	}
	if (m->stack_from && !stage_set_has(m->stack_from, k->order.stage)) {
		drop_copy(k, "its stage took the layers of another one", now_us);
		return;
	}
	if (k->standing == STANDBY_WHOLE && (!mine || m->iteration != k->iteration + 1)) {
		drop_copy(k, "it missed a commit", now_us);
		return;
	}
	if (mine && k->standing == STANDBY_FETCHING && k->fetch.n_held > 0 &&
	    find_iteration(k) + 1 != m->iteration) {
		/* The pieces that have arrived cannot use the sum. They are of a later iteration
		 * than the sum, or too old for it. */
		forget_reduce(k);
		return;
	}
	if (mine) {
		k->commit = *m;
		k->commit.scale = hyper_stage_scale(m->scale, &m->visits, k->order.stage);
		apply(k, STANDBY_COMMIT);
		k->heard_us = now_us;
	}
}

/* ---- jobs ---- */

static bool begin_follow(struct standby *k, struct job *job)
{
	const struct msg_commit *m = &k->commit;
	bool step = k->sum == STANDBY_SUM_READY_DUE &&
		    (k->standing == STANDBY_WHOLE || k->fetch.n_held > 0);
	bool whole = k->standing == STANDBY_WHOLE || fetch_whole(&k->fetch);

	if (!step && (k->standing == STANDBY_WHOLE || !whole))
		return false;
	*job = (struct job){ .kind = JOB_FOLLOW,
			     .follow = { .state = k->fetch.state, .whole = whole } };
	if (k->standing == STANDBY_FETCHING) {
		for (uint32_t i = 0; i < k->fetch.n; i++)
			k->taken[i] = fetch_fits(&k->fetch, i);
		job->follow.fresh = k->taken;
	}
	if (step) {
		job->slices = k->slices;
		job->step = (struct job_step){ m->scale, { m->lr, m->beta1, m->beta2, m->eps,
							   m->weight_decay } };
		job->iteration = m->iteration;
	}
	apply(k, step ? STANDBY_STEP : STANDBY_STORE);
	return true;
}

bool standby_settled(const struct standby *k)
{
	return k->standing != STANDBY_WANTED && !standby_sum_is_due(k->sum) && !job_runs(k);
}

void standby_abandon(struct standby *k)
{
	apply(k, STANDBY_ABANDON);
}

void standby_control(struct standby *k, const struct msg *m, int64_t now_us)
{
	if (m->type == MSG_KEEP)
		begin_copy(k, &m->u.keep);
	else if (m->type == MSG_REDUCE)
		begin_sum(k, &m->u.reduce);
	else
		take_commit(k, &m->u.commit, now_us);
}

bool standby_next_job(struct standby *k, struct job *job)
{
	if (k->standing == STANDBY_WANTED) {
		*job = (struct job){ .kind = JOB_KEEP, .prepare = { .stage = k->order.stage } };
		k->standing = STANDBY_MAKING;
		return true;
	}
	if (k->standing != STANDBY_FETCHING && k->standing != STANDBY_WHOLE)
		return false;
	if (begin_follow(k, job))
		return true;
	if ((k->sum == STANDBY_SUM_ARRIVING || k->sum == STANDBY_SUM_DUE) &&
	    slices_complete(k->slices)) {
		*job = (struct job){ .kind = JOB_NORM, .slices = k->slices, .of_copy = true };
		apply(k, STANDBY_NORM);
		return true;
	}
	return false;
}

/* If the worker has allocated the copy, begins to request pieces. If the allocation has failed,
 * reports the error. */
static void begin_fetch(struct standby *k, const struct job *job, int64_t now_us)
{
	k->stage = k->order.stage;
	k->standing = STANDBY_FETCHING;
	if (job->rc < 0) {
		drop_copy(k, job->err.text, now_us);
		return;
	}
	if (k->stage == MSG_NO_STAGE) {
		standby_forget(k);
		return;
	}
	k->parameters = job->prepare.parameters;
	k->iteration = 0;
	k->most_held = 0;
	k->piece_us =
		peers_piece_us(k->uses.peers, k->order.source, fetch_piece_floats(k->parameters));
	k->last_growth_us = now_us;
	free(k->taken);
	k->taken = NULL;
	if (fetch_begin(&k->fetch, k->order.source, k->stage, k->parameters, now_us) == 0)
		k->taken = alloc_array(k->fetch.n, sizeof(k->taken[0]));
	fetch_expect(&k->fetch, k->piece_us);
	if (!k->taken)
		drop_copy(k, "no memory for the copy", now_us);
}

static void take_followed(struct standby *k, const struct job *job, int64_t now_us)
{
	apply(k, STANDBY_FOLLOWED);
	if (job->slices) {
		k->iteration = k->fetch.iteration = job->iteration;
		forget_reduce(k);
	}
	for (uint32_t i = 0; job->follow.fresh && i < k->fetch.n; i++)
		k->fetch.fresh[i] = k->fetch.fresh[i] && !k->taken[i];
	if (!job->follow.whole)
		return;
	k->hash = job->hash;
	if (k->standing == STANDBY_FETCHING) {
		k->iteration = k->fetch.iteration;
		k->standing = STANDBY_WHOLE;
		fetch_end(&k->fetch);
		log_line(k->uses.tell->log, LOG_INFO,
			 "the copy of stage %u is complete as of iteration %" PRIu64, k->stage,
			 k->iteration);
		tell_kept(k, NULL, now_us);
	}
	if (job->slices)
		tell_committed(k, now_us);
}

void standby_job_done(struct standby *k, const struct job *job, int64_t now_us)
{
	if (job->kind == JOB_KEEP) {
		begin_fetch(k, job, now_us);
	} else if (job->kind == JOB_FOLLOW) {
		take_followed(k, job, now_us);
	} else {
		k->sum_squares = job->sum_squares;
		apply(k, STANDBY_NORMED);
		tell_reduced(k, now_us);
	}
}

enum standby_standing standby_standing(const struct standby *k)
{
	return k->standing;
}

bool standby_ordered(const struct standby *k)
{
	return k->order.stage != MSG_NO_STAGE;
}

bool standby_holds(const struct standby *k, uint8_t stage)
{
	return k->standing == STANDBY_WHOLE && k->stage == stage;
}

uint8_t standby_stage(const struct standby *k)
{
	return k->stage;
}

uint64_t standby_hash(const struct standby *k)
{
	return k->hash;
}

size_t standby_parameters(const struct standby *k)
{
	return k->parameters;
}

int64_t standby_deadline_us(const struct standby *k)
{
	return k->standing == STANDBY_FETCHING ? fetch_deadline_us(&k->fetch) : INT64_MAX;
}

void standby_accept_any_order(struct standby *k)
{
	k->order.assignment = 0;
}
