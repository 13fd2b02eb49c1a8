/* reduction.c - runs one reduction at a time through the states of reduction.h.
 * reduction_next_job gives the worker's job of the present state. reduction_job_done sends the
 * job's result and enters the next state. A newer attempt drops all results of the older attempt,
 * but not the gradient, which belongs to the stage.
 */
#include "agent/sums/reduction.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/job.h"
#include "base/alloc.h"

struct reduction {
	struct slices *slices; /* slices of the reduction; NULL: no reduction is under way */
	enum reducing standing;
	/* The n_copies nodes that have a standby copy of the stage. These nodes get the sum
	 * too. */
	uint16_t copies[MSG_NODES];
	uint32_t n_copies;
	uint32_t counts; /* number of gradients that the queue had counted at the last check */
	int64_t began_us;
	double sum_squares;
	struct reduction_uses uses;
};

struct reduction *reduction_new(const struct reduction_uses *uses)
{
	struct reduction *x = alloc_new(sizeof(*x));

	x->uses = *uses;
	return x;
}

void reduction_free(struct reduction *x)
{
	if (x)
		slices_free(x->slices);
	free(x);
}

void reduction_forget(struct reduction *x)
{
	slices_free(x->slices);
	x->slices = NULL;
	x->standing = REDUCE_NONE;
}

bool reduction_ready(const struct reduction *x, uint64_t iteration, uint32_t attempt)
{
	return x->standing == REDUCE_DONE && slices_iteration(x->slices) == iteration &&
	       slices_attempt(x->slices) == attempt;
}

static void tell_reduced(struct reduction *x, int64_t now_us)
{
	struct msg m = { .type = MSG_REDUCED };

	m.u.reduced.iteration = slices_iteration(x->slices);
	m.u.reduced.attempt = slices_attempt(x->slices);
	m.u.reduced.stage = x->uses.held->stage;
	m.u.reduced.sum_squares = x->sum_squares;
	m.u.reduced.elapsed_us = now_us - x->began_us;
	m.u.reduced.n_slices = slices_count(x->slices);
	m.u.reduced.slices = slices_hashes(x->slices);
	report_flush(x->uses.report, now_us);
	tell_controller(x->uses.tell, &m, POST_RELIABLE, now_us);
}

static bool is_older_slice(const struct parcel *p, const void *context)
{
	const struct slices *r = context;

	return (p->head.kind == TENSOR_PART || p->head.kind == TENSOR_SUM) &&
	       p->head.iteration == slices_iteration(r) &&
	       p->head.attempt < slices_attempt(r);
}

/* Begins the reduction of a new order. If the ordered reduction is already done, repeats the
 * report. Refuses an invalid order. */
void reduction_begin(struct reduction *x, const struct msg_reduce *m, uint32_t counts,
		     int64_t now_us)
{
	struct sum_codec codec;
	struct slices *r;
	int rc;

	if (m->iteration != x->uses.held->committed + 1) {
		tell_trouble(x->uses.tell, false,
			     "reduction of iteration %" PRIu64 ": %" PRIu64 " committed here",
			     m->iteration, x->uses.held->committed);
		return;
	}
	if (x->slices && m->attempt <= slices_attempt(x->slices)) {
		if (reduction_ready(x, m->iteration, m->attempt))
			tell_reduced(x, now_us);
		else
			x->uses.tell->tally.dropped++;
		return;
	}
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (m->nodes[i] >= x->uses.run->welcome.n_nodes) {
			tell_trouble(x->uses.tell, false,
				     "reduction with node %u: there is no such node", m->nodes[i]);
			return;
		}
	codec = x->uses.run->sum_codecs[x->uses.held->stage];
	codec.format = (enum tensor_format)m->sum_wire;
	rc = slices_new(&r, m->iteration, m->attempt, m->nodes, m->n_nodes,
			x->uses.run->welcome.node, x->uses.held->parameters, &codec);
	if (rc) {
		tell_trouble(x->uses.tell, rc == -ENOMEM,
			     "reduction %u of iteration %" PRIu64 ": %s", m->attempt, m->iteration,
			     rc == -ENOMEM ? "no memory"
					   : "its nodes must ascend and include this node");
		return;
	}
	reduction_forget(x);
	x->n_copies = 0;
	for (uint32_t i = 0; i < m->n_copies; i++)
		if (m->copies[i] < x->uses.run->welcome.n_nodes &&
		    m->copies[i] != x->uses.run->welcome.node)
			x->copies[x->n_copies++] = m->copies[i];
	x->slices = r;
	x->standing = m->when_counted ? REDUCE_COUNTING : REDUCE_GRADIENT;
	x->counts = counts - 1;
	x->began_us = now_us;
	x->uses.tell->tally.dropped += delay_queue_drop(x->uses.delay_queue, is_older_slice, r);
}

/* Adds the slice's emulated transfer time to *due. The slice leaves at the new time *due. Each
 * slice of a phase thus leaves after the previous slice. Drops one user of the body. */
static void send_slice(struct reduction *x, enum tensor_kind kind, uint32_t slice, uint16_t to,
		       struct body *body, int64_t now_us, int64_t *due)
{
	struct slices *r = x->slices;
	size_t bytes = slices_bytes(r, slice);
	struct msg_tensor head = { .kind = (uint8_t)kind,
				   .from = x->uses.run->welcome.node,
				   .stage = x->uses.held->stage,
				   .iteration = slices_iteration(r),
				   .attempt = slices_attempt(r),
				   .index = slice };
	size_t from, floats;

	slices_range(r, slice, &from, &floats);
	if (floats) /* links_sync_us is the time of a sum in fp32; an encoded sum takes less */
		*due += (int64_t)((double)links_sync_us(x->uses.links, to, slices_count(r)) *
				  (double)bytes / (double)(floats * sizeof(float)));
	links_send(x->uses.links, to, &head, body, now_us, *due);
}

/* Sends each other replica its part of the gradient. Each node begins with the replica that
 * follows it in the list of replicas. Otherwise all nodes would send to the first replica at the
 * same time. */
static void send_parts(struct reduction *x, void **bodies, int64_t now_us)
{
	uint32_t n = slices_count(x->slices), mine = slices_mine(x->slices);
	int64_t due = now_us;

	for (uint32_t i = 1; i < n; i++) {
		uint32_t k = (mine + i) % n;

		send_slice(x, TENSOR_PART, k, slices_owner(x->slices, k),
			   body_new(bodies[k], slices_bytes(x->slices, k), true), now_us, &due);
		bodies[k] = NULL;
	}
}

/* Sends the sum of this node's slice to the other replicas and to the holders of standby copies.
 * All messages share one body. */
static void send_sums(struct reduction *x, void **bodies, int64_t now_us)
{
	uint32_t n = slices_count(x->slices), mine = slices_mine(x->slices);
	int64_t due = now_us;
	struct body *body;

	if (n + x->n_copies == 1)
		return;
	body = body_new(bodies[mine], slices_bytes(x->slices, mine), true);
	bodies[mine] = NULL;
	for (uint32_t i = 1; i < n + x->n_copies; i++) {
		uint16_t to = i < n ? slices_owner(x->slices, (mine + i) % n) : x->copies[i - n];

		send_slice(x, TENSOR_SUM, mine, to, body_hold(body), now_us, &due);
	}
	body_drop(body);
}

/* Returns false if the count has not changed since the last call, because the caller's check would
 * have the same result. */
bool reduction_asks_for_count(struct reduction *x, uint64_t iteration, uint32_t counts)
{
	if (x->standing != REDUCE_COUNTING || x->counts == counts)
		return false;
	x->counts = counts;
	return iteration == slices_iteration(x->slices);
}

void reduction_counted(struct reduction *x, int64_t now_us)
{
	x->standing = REDUCE_GRADIENT;
	x->began_us = now_us;
}

bool reduction_next_job(struct reduction *x, struct job *job)
{
	enum job_kind kind;

	if (x->standing == REDUCE_GRADIENT) {
		x->standing = REDUCE_COPYING;
		kind = JOB_GRADIENT;
	} else if (x->standing == REDUCE_PARTS && slices_parts_in(x->slices)) {
		x->standing = REDUCE_SUMMING;
		kind = JOB_SUM;
	} else if (x->standing == REDUCE_SUMS && slices_complete(x->slices)) {
		x->standing = REDUCE_NORMING;
		kind = JOB_NORM;
	} else {
		return false;
	}
	*job = (struct job){ .kind = kind, .slices = x->slices };
	return true;
}

void reduction_job_done(struct reduction *x, struct job *job, int64_t now_us)
{
	if (!x->slices)
		return;
	if (job->kind == JOB_GRADIENT) {
		(void)slices_own_part_in(x->slices);
		send_parts(x, job->bodies, now_us);
		x->standing = REDUCE_PARTS;
		x->uses.requests->look_again = true;
	} else if (job->kind == JOB_SUM) {
		slices_summed(x->slices);
		send_sums(x, job->bodies, now_us);
		x->standing = REDUCE_SUMS;
	} else {
		x->sum_squares = job->sum_squares;
		x->standing = REDUCE_DONE;
		tell_reduced(x, now_us);
	}
}

int reduction_put(struct reduction *x, const struct msg *m)
{
	const struct msg_tensor *t = &m->u.tensor;
	int rc;

	if (t->iteration > x->uses.held->committed &&
	    (!x->slices || t->iteration != slices_iteration(x->slices) ||
	     t->attempt > slices_attempt(x->slices)))
		return -EAGAIN;
	if (t->iteration <= x->uses.held->committed || t->attempt < slices_attempt(x->slices))
		rc = -EALREADY;
	else if (t->kind == TENSOR_PART)
		rc = slices_put_part(x->slices, t->from, t->index, t->offset, m->body,
				     m->body_size);
	else
		rc = slices_put_sum(x->slices, t->from, t->index, t->offset, m->body, m->body_size);
	x->uses.tell->tally.dropped += rc == -EALREADY;
	return rc == -EALREADY ? 0 : rc;
}

struct slices *reduction_slices(const struct reduction *x)
{
	return x->slices;
}

int reduction_awaits(const struct reduction *x)
{
	bool waits = x->standing == REDUCE_PARTS || x->standing == REDUCE_SUMS;

	return waits ? slices_awaits(x->slices) : -1;
}
