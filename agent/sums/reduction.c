/* reduction.c - runs one reduction at a time through the states of reduction.h. next_job gives the
 * job of a state whose wait is over; job_done sends the job's result and enters the next state. A
 * newer attempt drops everything except the gradient, which the worker holds.
 */
#include "agent/sums/reduction.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/alloc.h"

struct reduction {
	struct slices *slices; /* slices of the reduction; NULL: none is under way */
	enum reducing standing;
	uint16_t copies[MSG_NODES]; /* (n_copies) holders of standby copies, who get the sum too */
	uint32_t n_copies;
	uint32_t counts; /* number of gradients that the queue had counted at the last check */
	int64_t began_us;
	double sum_squares;
};

struct reduction *reduction_new(void)
{
	struct reduction *x = alloc_new(sizeof(*x));

	return x;
}

void reduction_free(struct reduction *x)
{
	if (x)
		slices_free(x->slices);
	free(x);
}

void reduction_forget(struct agent *a)
{
	slices_free(a->modules.reduction->slices);
	a->modules.reduction->slices = NULL;
	a->modules.reduction->standing = REDUCE_NONE;
}

bool reduction_ready(const struct agent *a, uint64_t iteration, uint32_t attempt)
{
	return a->modules.reduction->standing == REDUCE_DONE &&
	       slices_iteration(a->modules.reduction->slices) == iteration &&
	       slices_attempt(a->modules.reduction->slices) == attempt;
}

static void tell_reduced(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_REDUCED };

	m.u.reduced.iteration = slices_iteration(a->modules.reduction->slices);
	m.u.reduced.attempt = slices_attempt(a->modules.reduction->slices);
	m.u.reduced.stage = a->held.stage;
	m.u.reduced.sum_squares = a->modules.reduction->sum_squares;
	m.u.reduced.elapsed_us = now_us - a->modules.reduction->began_us;
	m.u.reduced.n_slices = slices_count(a->modules.reduction->slices);
	m.u.reduced.slices = slices_hashes(a->modules.reduction->slices);
	report_flush(a->modules.report, now_us);
	tell_controller(&a->tell, &m, POST_RELIABLE, now_us);
}

static bool is_older_slice(const struct parcel *p, const void *context)
{
	const struct slices *r = context;

	return (p->head.kind == TENSOR_PART || p->head.kind == TENSOR_SUM) &&
	       p->head.iteration == slices_iteration(r) &&
	       p->head.attempt < slices_attempt(r);
}

/* Refuses an invalid order, answers one that is done, and begins a newer one. */
void reduction_begin(struct agent *a, const struct msg_reduce *m, int64_t now_us)
{
	struct sum_codec codec;
	struct slices *r;
	int rc;

	if (m->iteration != a->held.committed + 1) {
		tell_trouble(&a->tell, false,
			     "reduction of iteration %" PRIu64 ": %" PRIu64 " committed here",
			     m->iteration, a->held.committed);
		return;
	}
	if (a->modules.reduction->slices &&
	    m->attempt <= slices_attempt(a->modules.reduction->slices)) {
		if (reduction_ready(a, m->iteration, m->attempt))
			tell_reduced(a, now_us);
		else
			a->tell.tally.dropped++;
		return;
	}
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (m->nodes[i] >= a->run.welcome.n_nodes) {
			tell_trouble(&a->tell, false,
				     "reduction with node %u: there is no such node", m->nodes[i]);
			return;
		}
	codec = a->run.sum_codecs[a->held.stage];
	codec.format = (enum tensor_format)m->sum_wire;
	rc = slices_new(&r, m->iteration, m->attempt, m->nodes, m->n_nodes, a->run.welcome.node,
			a->held.parameters, &codec);
	if (rc) {
		tell_trouble(&a->tell, rc == -ENOMEM, "reduction %u of iteration %" PRIu64 ": %s",
			     m->attempt, m->iteration,
			     rc == -ENOMEM ? "no memory"
					   : "its nodes must ascend and include this node");
		return;
	}
	reduction_forget(a);
	a->modules.reduction->n_copies = 0;
	for (uint32_t i = 0; i < m->n_copies; i++)
		if (m->copies[i] < a->run.welcome.n_nodes && m->copies[i] != a->run.welcome.node)
			a->modules.reduction->copies[a->modules.reduction->n_copies++] =
				m->copies[i];
	a->modules.reduction->slices = r;
	a->modules.reduction->standing = m->when_counted ? REDUCE_COUNTING : REDUCE_GRADIENT;
	a->modules.reduction->counts = queue_counts(a->iteration.queue) - 1;
	a->modules.reduction->began_us = now_us;
	a->tell.tally.dropped += delay_queue_drop(a->modules.delay_queue, is_older_slice, r);
}

/* Adds the slice's emulated time to *due, and sends the slice at *due. A node therefore sends the
 * slices of a phase one after another. body is given; with `users` several messages share the body
 * (delay_queue.h). */
static void send_slice(struct agent *a, enum tensor_kind kind, uint32_t slice, uint16_t to,
		       void *body, uint32_t *users, int64_t now_us, int64_t *due)
{
	struct slices *r = a->modules.reduction->slices;
	size_t bytes = slices_bytes(r, slice);
	struct msg_tensor head = { .kind = (uint8_t)kind,
				   .from = a->run.welcome.node,
				   .stage = a->held.stage,
				   .iteration = slices_iteration(r),
				   .attempt = slices_attempt(r),
				   .index = slice };
	size_t from, floats;

	slices_range(r, slice, &from, &floats);
	if (floats) /* the emulated time is that of a sum sent as floats */
		*due += (int64_t)((double)links_sync_us(a, to, slices_count(r)) * (double)bytes /
				  (double)(floats * sizeof(float)));
	links_send(a, to, &head, body, users, bytes, now_us, *due);
}

/* Sends each other replica its part. Each node begins with the next replica, so that not all begin
 * with the same one. */
static void send_parts(struct agent *a, void **bodies, int64_t now_us)
{
	uint32_t n = slices_count(a->modules.reduction->slices),
		 mine = slices_mine(a->modules.reduction->slices);
	int64_t due = now_us;

	for (uint32_t i = 1; i < n; i++) {
		uint32_t k = (mine + i) % n;

		send_slice(a, TENSOR_PART, k, slices_owner(a->modules.reduction->slices, k),
			   bodies[k], NULL, now_us, &due);
		bodies[k] = NULL;
	}
}

/* Sends the sum of this node's slice to the other replicas and to the holders of standby copies.
 * All messages share one body. */
static void send_sums(struct agent *a, int64_t now_us)
{
	uint32_t n = slices_count(a->modules.reduction->slices),
		 mine = slices_mine(a->modules.reduction->slices);
	int64_t due = now_us;
	size_t bytes;
	uint32_t *users;
	void *body;

	if (n + a->modules.reduction->n_copies == 1)
		return;
	bytes = slices_bytes(a->modules.reduction->slices, mine);
	body = malloc(bytes + 1);
	if (!body) {
		tell_trouble(&a->tell, true, "no memory for the sums");
		return;
	}
	users = alloc_new(sizeof(*users));
	memcpy(body, slices_own_sum(a->modules.reduction->slices), bytes);
	*users = n + a->modules.reduction->n_copies - 1;
	for (uint32_t i = 1; i < n + a->modules.reduction->n_copies; i++) {
		uint16_t to = i < n ? slices_owner(a->modules.reduction->slices, (mine + i) % n)
				    : a->modules.reduction->copies[i - n];

		send_slice(a, TENSOR_SUM, mine, to, body, users, now_us, &due);
	}
}

/* The answer changes only when the queue has counted another gradient. */
bool reduction_asks_for_count(struct agent *a)
{
	struct reduction *x = a->modules.reduction;

	if (x->standing != REDUCE_COUNTING || x->counts == queue_counts(a->iteration.queue))
		return false;
	x->counts = queue_counts(a->iteration.queue);
	return a->progress.iteration == slices_iteration(x->slices);
}

void reduction_counted(struct agent *a)
{
	a->modules.reduction->standing = REDUCE_GRADIENT;
	a->modules.reduction->began_us = a->tell.now_us;
}

bool reduction_next_job(struct agent *a, struct job *job)
{
	enum job_kind kind;

	if (a->modules.reduction->standing == REDUCE_GRADIENT) {
		a->modules.reduction->standing = REDUCE_COPYING;
		kind = JOB_GRADIENT;
	} else if (a->modules.reduction->standing == REDUCE_PARTS &&
		   slices_parts_in(a->modules.reduction->slices)) {
		a->modules.reduction->standing = REDUCE_SUMMING;
		kind = JOB_SUM;
	} else if (a->modules.reduction->standing == REDUCE_SUMS &&
		   slices_complete(a->modules.reduction->slices)) {
		a->modules.reduction->standing = REDUCE_NORMING;
		kind = JOB_NORM;
	} else {
		return false;
	}
	*job = (struct job) { .kind = kind, .slices = a->modules.reduction->slices };
	return true;
}

void reduction_job_done(struct agent *a, struct job *job, int64_t now_us)
{
	uint32_t mine;

	if (!a->modules.reduction->slices)
		return;
	mine = slices_mine(a->modules.reduction->slices);
	if (job->kind == JOB_GRADIENT) {
		slices_put_part(a->modules.reduction->slices, a->run.welcome.node, mine, 0,
				job->bodies[mine],
				slices_bytes(a->modules.reduction->slices, mine));
		send_parts(a, job->bodies, now_us);
		a->modules.reduction->standing = REDUCE_PARTS;
		a->requests.look_again = true;
	} else if (job->kind == JOB_SUM) {
		slices_summed(a->modules.reduction->slices);
		send_sums(a, now_us);
		a->modules.reduction->standing = REDUCE_SUMS;
	} else {
		a->modules.reduction->sum_squares = job->sum_squares;
		a->modules.reduction->standing = REDUCE_DONE;
		tell_reduced(a, now_us);
	}
}

int reduction_put(struct agent *a, const struct msg *m)
{
	const struct msg_tensor *t = &m->u.tensor;
	int rc;

	if (t->iteration > a->held.committed &&
	    (!a->modules.reduction->slices ||
	     t->iteration != slices_iteration(a->modules.reduction->slices) ||
	     t->attempt > slices_attempt(a->modules.reduction->slices)))
		return -EAGAIN;
	if (t->iteration <= a->held.committed ||
	    t->attempt < slices_attempt(a->modules.reduction->slices))
		rc = -EALREADY;
	else if (t->kind == TENSOR_PART)
		rc = slices_put_part(a->modules.reduction->slices, t->from, t->index, t->offset,
				     m->body, m->body_size);
	else
		rc = slices_put_sum(a->modules.reduction->slices, t->from, t->index, t->offset,
				    m->body, m->body_size);
	a->tell.tally.dropped += rc == -EALREADY;
	return rc == -EALREADY ? 0 : rc;
}

struct slices *reduction_slices(const struct agent *a)
{
	return a->modules.reduction->slices;
}

int reduction_awaits(const struct agent *a)
{
	bool waits = a->modules.reduction->standing == REDUCE_PARTS ||
		     a->modules.reduction->standing == REDUCE_SUMS;

	return waits ? slices_awaits(a->modules.reduction->slices) : -1;
}
