/* What peers send. Everything is checked against the state: who sends it, whether it belongs
 * here, its size. What does not fit is counted and dropped; what is only too early is kept.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "model/bf16.h"

enum fate {
	TAKEN,   /* or worthless, and counted as dropped */
	EARLY,
	REFUSED
};

/* The sender must be the node that it says it is. */
static bool sender_fits(const struct agent *a, post_peer_id peer, uint16_t node)
{
	struct post_peer_info info;

	return node < a->run.n_nodes && a->peers[node].known &&
	       post_peer(a->tensors, peer, &info) == 0 &&
	       keys_equal(&info.key, &a->peers[node].key);
}

/* Whether the tensor's route, position and size are what this node's stage can work on. */
static bool chain_fits(const struct agent *a, const struct msg *m, struct route *r)
{
	const struct msg_tensor *t = &m->u.tensor;

	if (t->n_routes != 1 || route_read(r, &t->routes[0], &a->limits) || t->index == 0 ||
	    t->index > route_last(r, t->evaluate))
		return false;
	return (t->kind == TENSOR_ACTIVATION) == (t->index <= r->n_hops) &&
	       route_node(r, t->index) == a->run.node &&
	       route_stage(r, t->index) == a->stage &&
	       route_node(r, t->index - 1) == t->from &&
	       m->body_size == links_activation_bytes(a);
}

/* (B, T, C) floats, malloc; NULL: no memory. */
static float *unpack_input(const struct agent *a, const struct msg *m)
{
	float *input = malloc(a->activation * sizeof(*input));

	if (input && a->run.bf16)
		bf16_unpack(input, m->body, a->activation);
	else if (input)
		memcpy(input, m->body, m->body_size);
	return input;
}

static enum fate take_chain(struct agent *a, const struct msg *m, int64_t now_us)
{
	const struct msg_tensor *t = &m->u.tensor;
	uint64_t current = t->evaluate ? a->committed : a->committed + 1;
	const struct route *known;
	struct route r;
	float *input;

	if (t->iteration < current) {
		a->dropped++;
		return TAKEN;
	}
	if (t->iteration > current || (!t->evaluate && t->iteration != a->iteration))
		return EARLY;
	if (!chain_fits(a, m, &r))
		return REFUSED;
	if (!t->evaluate) {
		/* The controller tells everybody of every attempt; until it has, this one waits.
		 * What is known must be the same to the last hop. */
		known = &a->routes[r.microbatch];
		if (!known->n_hops || known->attempt < r.attempt)
			return EARLY;
		if (r.attempt < known->attempt && route_goes_on(&r, known) &&
		    route_node(known, t->index - 1) == t->from &&
		    route_node(known, t->index) == a->run.node)
			r = *known;
		if (known->attempt == r.attempt && !route_equal(known, &r))
			return EARLY; /* of a plan that is yet to come */
	}
	input = unpack_input(a, m);
	if (!input) {
		agent_trouble(a, true, "no memory for an activation");
		return TAKEN;
	}
	tasks_arrive(a, &r, t->index, t->evaluate, input, now_us);
	return TAKEN;
}

/* Finite, and of a size that a computation that is any good can have: parts and sums of gradients are
 * held to it too, so that who made an absurd one is told before it is in anybody's sum. */
static const float absurd = 1e9f;

static bool plausible_floats(const void *body, size_t size)
{
	const char *at = body;
	float x;

	for (size_t i = 0; i + sizeof(x) <= size; i += sizeof(x)) {
		memcpy(&x, at + i, sizeof(x));
		if (!(fabsf(x) < absurd))
			return false;
	}
	return true;
}

static bool plausible_halves(const void *body, size_t size)
{
	float some[1024];
	const size_t most = sizeof(some) / sizeof(some[0]), n = size / sizeof(uint16_t);

	for (size_t i = 0; i < n; i += most) {
		size_t left = n - i < most ? n - i : most;

		bf16_unpack(some, (const char *)body + i * sizeof(uint16_t), left);
		if (!plausible_floats(some, left * sizeof(some[0])))
			return false;
	}
	return true;
}

static bool plausible(const struct agent *a, const struct msg *m)
{
	bool chained = m->u.tensor.kind == TENSOR_ACTIVATION || m->u.tensor.kind == TENSOR_GRADIENT;

	return a->run.bf16 && chained ? plausible_halves(m->body, m->body_size)
				      : plausible_floats(m->body, m->body_size);
}

static enum fate take_tensor(struct agent *a, const struct msg *m, int64_t now_us)
{
	const struct msg_tensor *t = &m->u.tensor;
	int rc;

	if (keep_sum_arrived(a, m, &rc))
		return rc < 0 ? REFUSED : TAKEN;
	if (a->standing != STAND_READY)
		return EARLY;
	if ((t->kind == TENSOR_PART || t->kind == TENSOR_SUM) && t->stage != a->stage) {
		/* For the copy, whose reduction is yet to come; or too late for it. */
		uint64_t past = keep_wants(a, t) ? keep_iteration(a) : a->committed;

		a->dropped += t->iteration <= past;
		return t->iteration <= past ? TAKEN : EARLY;
	}
	if (!plausible(a, m)) {
		agent_accuse(a, t->from, t->kind == TENSOR_ACTIVATION ? "an activation" : "a gradient",
			     now_us);
		return REFUSED;
	}
	switch (t->kind) {
	case TENSOR_ACTIVATION:
	case TENSOR_GRADIENT:
		return take_chain(a, m, now_us);
	case TENSOR_PART:
	case TENSOR_SUM:
		rc = reduction_put(a, m);
		return rc == -EAGAIN ? EARLY : rc < 0 ? REFUSED : TAKEN;
	default:
		return REFUSED;
	}
}

/* Half of the room is anybody's; of the rest each node has its share, so that one that is far ahead, or ill,
 * keeps nobody else out. */
static bool early_fits(const struct agent *a, uint16_t from, size_t size)
{
	size_t share = EARLY_MOST_BYTES / (a->run.n_nodes ? a->run.n_nodes : 1);

	if (a->n_early == EARLY_MOST || size > EARLY_MOST_BYTES - a->early_bytes)
		return false;
	return a->early_bytes + size <= EARLY_MOST_BYTES / 2 ||
	       a->peers[from].early_bytes + size <= share;
}

/* Sums are as long as the stage, and come when this node may be busy for long: where they fill a good
 * part of the room they wait at their sender's. */
static void defer_sums(struct agent *a, uint16_t from, post_peer_id peer)
{
	if (a->early_bytes < EARLY_MOST_BYTES / 4)
		return;
	if (post_defer(a->tensors, peer, POST_CLASS_SUMS, true) == 0) {
		a->peers[from].deferred = peer;
		a->early_full = true;
	}
}

static void take_sums_again(struct agent *a)
{
	if (!a->early_full || a->early_bytes > EARLY_MOST_BYTES / 8)
		return;
	for (uint32_t i = 0; i < a->run.n_nodes; i++) {
		if (a->peers[i].deferred)
			(void)post_defer(a->tensors, a->peers[i].deferred, POST_CLASS_SUMS, false);
		a->peers[i].deferred = 0;
	}
	a->early_full = false;
}

static void keep_early(struct agent *a, struct post_message *p, uint16_t from)
{
	if (!early_fits(a, from, p->size)) {
		a->dropped++;
		if (!a->early_told)
			agent_trouble(a, false, "too many tensors ahead of their time: dropped");
		a->early_told = true;
		return;
	}
	post_keep(a->tensors, p);
	a->early[a->n_early++] = (struct early){ *p, from };
	a->early_bytes += p->size;
	a->peers[from].early_bytes += p->size;
	defer_sums(a, from, p->peer);
}

static void forget_early(struct agent *a, struct early *e)
{
	a->early_bytes -= e->message.size;
	a->peers[e->from].early_bytes -= e->message.size;
	post_release(&e->message);
}

/* MSG_NOBODY: it is no message between agents. */
static uint16_t sender_of(const struct msg *m)
{
	switch (m->type) {
	case MSG_TENSOR: return m->u.tensor.from;
	case MSG_FETCH: return m->u.fetch.from;
	case MSG_TRAIN: return m->u.train.from;
	case MSG_TRAIN_HEARD: return m->u.train_heard.from;
	default: return MSG_NOBODY;
	}
}

static void refuse(struct agent *a, const struct msg *m)
{
	a->refused++;
	log_line(a->options.log, LOG_WARN, "a %s of node %u that does not fit: refused",
		 msg_name(m->type), sender_of(m));
}

void tensors_arrived(struct agent *a, struct post_message *p, int64_t now_us)
{
	enum fate fate = TAKEN;
	struct msg m;
	uint16_t from;

	if (!a->welcomed || msg_decode(&m, p->data, p->size) < 0) {
		a->refused++;
		return;
	}
	from = sender_of(&m);
	if (from == MSG_NOBODY || !sender_fits(a, p->peer, from))
		fate = REFUSED;
	else if (m.type == MSG_FETCH)
		serve_ask(a, &m.u.fetch, now_us);
	else if (m.type == MSG_TRAIN)
		trains_announced(a, &m.u.train, p->peer, now_us);
	else if (m.type == MSG_TRAIN_HEARD)
		trains_answered(a, &m.u.train_heard);
	else if (m.u.tensor.kind == TENSOR_PROBE)
		log_line(a->options.log, LOG_DEBUG, "a probe of node %u", from);
	else if (m.u.tensor.kind != TENSOR_STATE)
		fate = take_tensor(a, &m, now_us);
	else if (!restore_piece_arrived(a, &m, now_us))
		keep_piece_arrived(a, &m, now_us);
	if (fate == REFUSED)
		refuse(a, &m);
	else if (fate == EARLY)
		keep_early(a, p, from);
	msg_clear(&m);
}

void tensors_look_again(struct agent *a, int64_t now_us)
{
	size_t kept = 0, n = a->n_early;
	enum fate fate;
	struct msg m;

	for (size_t i = 0; i < n; i++) {
		struct post_message *p = &a->early[i].message;

		fate = REFUSED;
		if (msg_decode(&m, p->data, p->size) == 0) { /* it did before */
			fate = take_tensor(a, &m, now_us);
			if (fate == REFUSED)
				refuse(a, &m);
			msg_clear(&m);
		}
		if (fate == EARLY) {
			a->early[kept++] = a->early[i];
			continue;
		}
		forget_early(a, &a->early[i]);
	}
	a->n_early = kept;
	if (kept == 0)
		a->early_told = false;
	take_sums_again(a);
}

/* Those for the copy stay: it is not the copy that begins anew. */
void tensors_forget_early(struct agent *a)
{
	size_t kept = 0, n = a->n_early;
	struct msg m;

	for (size_t i = 0; i < n; i++) {
		struct post_message *p = &a->early[i].message;
		bool wanted = false;

		if (msg_decode(&m, p->data, p->size) == 0) {
			wanted = keep_wants(a, &m.u.tensor);
			msg_clear(&m);
		}
		if (wanted) {
			a->early[kept++] = a->early[i];
			continue;
		}
		a->dropped++;
		forget_early(a, &a->early[i]);
	}
	a->n_early = kept;
	take_sums_again(a);
}
