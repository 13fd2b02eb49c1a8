/* One reduction at a time, as a row of standings: some wait for the worker (the gradient's copy, my
 * slice's sum, the norm), some for peers (parts, then sums). Each next_job is due when its wait is
 * over; job_done sends what the job made and moves on. Nothing here waits or blocks, and a newer
 * attempt throws away all but the gradient, which is the worker's.
 */
#include "agent/sums/reduction.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"

struct reduction {
	struct slices *slices; /* NULL: none is under way */
	enum reducing standing;
	uint16_t copies[MSG_NODES]; /* (n_copies) who gets the sum besides */
	uint32_t n_copies;
	uint32_t counts; /* the queue's, when they were looked at last */
	int64_t began_us;
	double sum_squares;
};

int reduction_new(struct reduction **out)
{
	struct reduction *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	*out = x;
	return 0;
}

void reduction_free(struct reduction *x)
{
	if (x)
		slices_free(x->slices);
	free(x);
}

void reduction_forget(struct agent *a)
{
	slices_free(a->reduction->slices);
	a->reduction->slices = NULL;
	a->reduction->standing = REDUCE_NONE;
}

bool reduction_ready(const struct agent *a, uint64_t iteration, uint32_t attempt)
{
	return a->reduction->standing == REDUCE_DONE && slices_iteration(a->reduction->slices) == iteration &&
	       slices_attempt(a->reduction->slices) == attempt;
}

static void tell_reduced(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_REDUCED };

	m.u.reduced.iteration = slices_iteration(a->reduction->slices);
	m.u.reduced.attempt = slices_attempt(a->reduction->slices);
	m.u.reduced.stage = a->stage;
	m.u.reduced.sum_squares = a->reduction->sum_squares;
	m.u.reduced.elapsed_us = now_us - a->reduction->began_us;
	m.u.reduced.n_slices = slices_count(a->reduction->slices);
	m.u.reduced.slices = slices_hashes(a->reduction->slices);
	report_flush(a, now_us);
	tell_controller(a, &m, POST_RELIABLE, now_us);
}

static bool is_older_slice(const struct parcel *p, const void *context)
{
	const struct slices *r = context;

	return (p->head.kind == TENSOR_PART || p->head.kind == TENSOR_SUM) &&
	       p->head.iteration == slices_iteration(r) &&
	       p->head.attempt < slices_attempt(r);
}

/* Refuses what makes no sense, answers what is done, and begins what is newer. */
void reduction_begin(struct agent *a, const struct msg_reduce *m, int64_t now_us)
{
	struct slices *r;
	int rc;

	if (m->iteration != a->committed + 1) {
		tell_trouble(a, false, "reduction of iteration %" PRIu64 ": %" PRIu64
			      " committed here", m->iteration, a->committed);
		return;
	}
	if (a->reduction->slices && m->attempt <= slices_attempt(a->reduction->slices)) {
		if (reduction_ready(a, m->iteration, m->attempt))
			tell_reduced(a, now_us);
		else
			a->dropped++;
		return;
	}
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (m->nodes[i] >= a->run.n_nodes) {
			tell_trouble(a, false, "reduction with node %u: there is no such node",
				      m->nodes[i]);
			return;
		}
	rc = slices_new(&r, m->iteration, m->attempt, m->nodes, m->n_nodes, a->run.node,
			a->parameters);
	if (rc) {
		tell_trouble(a, rc == -ENOMEM, "reduction %u of iteration %" PRIu64 ": %s",
			      m->attempt, m->iteration,
			      rc == -ENOMEM ? "no memory"
					    : "its nodes must ascend, this one among them");
		return;
	}
	reduction_forget(a);
	a->reduction->n_copies = 0;
	for (uint32_t i = 0; i < m->n_copies; i++)
		if (m->copies[i] < a->run.n_nodes && m->copies[i] != a->run.node)
			a->reduction->copies[a->reduction->n_copies++] = m->copies[i];
	a->reduction->slices = r;
	a->reduction->standing = m->when_counted ? REDUCE_COUNTING : REDUCE_GRADIENT;
	a->reduction->counts = queue_counts(a->queue) - 1;
	a->reduction->began_us = now_us;
	a->dropped += delay_queue_drop(a->delay_queue, is_older_slice, r);
}

/* Sends a slice; body is given, with users by one of them. A node's sends of a phase go one after
 * another: *due. */
static void send_slice(struct agent *a, enum tensor_kind kind, uint32_t slice, uint16_t to,
		       float *body, uint32_t *users, int64_t now_us, int64_t *due)
{
	struct msg_tensor head = { .kind = (uint8_t)kind,
				   .from = a->run.node,
				   .stage = a->stage,
				   .iteration = slices_iteration(a->reduction->slices),
				   .attempt = slices_attempt(a->reduction->slices),
				   .index = slice };
	size_t from, floats;

	slices_range(a->reduction->slices, slice, &from, &floats);
	*due += links_sync_us(a, to, slices_count(a->reduction->slices));
	links_send(a, to, &head, body, users, floats, now_us, *due);
}

/* To each of the other replicas its part, beginning after me so that not all begin with the
 * same one. */
static void send_parts(struct agent *a, float **bodies, int64_t now_us)
{
	uint32_t n = slices_count(a->reduction->slices), mine = slices_mine(a->reduction->slices);
	int64_t due = now_us;

	for (uint32_t i = 1; i < n; i++) {
		uint32_t k = (mine + i) % n;

		send_slice(a, TENSOR_PART, k, slices_owner(a->reduction->slices, k), bodies[k], NULL, now_us,
			   &due);
		bodies[k] = NULL;
	}
}

/* The sum of my slice, to each of the others and to those that keep a copy: one body for all. */
static void send_sums(struct agent *a, int64_t now_us)
{
	uint32_t n = slices_count(a->reduction->slices), mine = slices_mine(a->reduction->slices);
	int64_t due = now_us;
	size_t from, floats;
	uint32_t *users;
	float *body;

	if (n + a->reduction->n_copies == 1)
		return;
	slices_range(a->reduction->slices, mine, &from, &floats);
	body = malloc(floats * sizeof(float) + 1);
	users = malloc(sizeof(*users));
	if (!body || !users) {
		free(body);
		free(users);
		tell_trouble(a, true, "no memory for the sums");
		return;
	}
	memcpy(body, slices_staging(a->reduction->slices) + from, floats * sizeof(float));
	*users = n + a->reduction->n_copies - 1;
	for (uint32_t i = 1; i < n + a->reduction->n_copies; i++) {
		uint16_t to = i < n ? slices_owner(a->reduction->slices, (mine + i) % n) : a->reduction->copies[i - n];

		send_slice(a, TENSOR_SUM, mine, to, body, users, now_us, &due);
	}
}

/* Only what is counted changes the answer: where ways change, the order is void. */
static void look_whether_counted(struct agent *a)
{
	struct reduction *x = a->reduction;

	if (x->standing != REDUCE_COUNTING || x->counts == queue_counts(a->queue))
		return;
	x->counts = queue_counts(a->queue);
	if (a->iteration != slices_iteration(x->slices) || !iteration_counted(a))
		return;
	x->standing = REDUCE_GRADIENT;
	x->began_us = a->now_us;
}

bool reduction_next_job(struct agent *a, struct job *job)
{
	enum job_kind kind;

	look_whether_counted(a);
	if (a->reduction->standing == REDUCE_GRADIENT) {
		a->reduction->standing = REDUCE_COPYING;
		kind = JOB_GRADIENT;
	} else if (a->reduction->standing == REDUCE_PARTS && slices_parts_in(a->reduction->slices)) {
		a->reduction->standing = REDUCE_SUMMING;
		kind = JOB_SUM;
	} else if (a->reduction->standing == REDUCE_SUMS && slices_complete(a->reduction->slices)) {
		a->reduction->standing = REDUCE_NORMING;
		kind = JOB_NORM;
	} else {
		return false;
	}
	*job = (struct job) { .kind = kind, .slices = a->reduction->slices };
	return true;
}

void reduction_job_done(struct agent *a, struct job *job, int64_t now_us)
{
	uint32_t mine;
	size_t from, floats;

	if (!a->reduction->slices)
		return;
	mine = slices_mine(a->reduction->slices);
	if (job->kind == JOB_GRADIENT) {
		slices_range(a->reduction->slices, mine, &from, &floats);
		slices_put_part(a->reduction->slices, a->run.node, mine, 0, job->bodies[mine],
				floats * sizeof(float));
		send_parts(a, job->bodies, now_us);
		a->reduction->standing = REDUCE_PARTS;
		a->look_again = true;
	} else if (job->kind == JOB_SUM) {
		slices_summed(a->reduction->slices);
		send_sums(a, now_us);
		a->reduction->standing = REDUCE_SUMS;
	} else {
		a->reduction->sum_squares = job->sum_squares;
		a->reduction->standing = REDUCE_DONE;
		tell_reduced(a, now_us);
	}
}

int reduction_put(struct agent *a, const struct msg *m)
{
	const struct msg_tensor *t = &m->u.tensor;
	int rc;

	if (t->iteration > a->committed &&
	    (!a->reduction->slices || t->iteration != slices_iteration(a->reduction->slices) ||
	     t->attempt > slices_attempt(a->reduction->slices)))
		return -EAGAIN;
	if (t->iteration <= a->committed || t->attempt < slices_attempt(a->reduction->slices))
		rc = -EALREADY;
	else if (t->kind == TENSOR_PART)
		rc = slices_put_part(a->reduction->slices, t->from, t->index, t->offset, m->body,
				     m->body_size);
	else
		rc = slices_put_sum(a->reduction->slices, t->from, t->index, t->offset, m->body, m->body_size);
	a->dropped += rc == -EALREADY;
	return rc == -EALREADY ? 0 : rc;
}

struct slices *reduction_slices(const struct agent *a)
{
	return a->reduction->slices;
}

int reduction_awaits(const struct agent *a)
{
	bool waits = a->reduction->standing == REDUCE_PARTS || a->reduction->standing == REDUCE_SUMS;

	return waits ? slices_awaits(a->reduction->slices) : -1;
}
