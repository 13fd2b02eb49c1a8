/* What is sent to peers: the emulated network, injected faults, and the connections.
 *
 * Everything goes through the heap of held tensors, also what is due at once: one place where
 * delays, losses and partitions act, and where a peer without room is waited for.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"

enum {
	RETRY_US = 5000,         /* a peer without room, or cut off */
	DIAL_AGAIN_US = 1000000, /* where that failed at once, as with an address that is none */
	RESEND_US = 200000,      /* an injected loss costs so long */
	LOSSES_MOST = 50,
	SLOW_LINK_US = 5000,     /* what a slow link slows down where nothing is emulated */
	PUMP_MOST = 64,          /* tensors a turn */
	SUMS_BEHIND = 8,         /* iterations that a copy may be behind */
	BIG_BYTES = 256 << 10    /* long enough on its way to tell the bandwidth */
};

bool links_dial(struct agent *a, uint16_t node)
{
	struct peer *p = &a->peers[node];
	struct error err = { "" };

	if (p->dial)
		return true;
	if (!p->known || (p->dial_again_us && clock_monotonic_us() < p->dial_again_us))
		return false;
	if (post_dial(a->tensors, p->address, &p->key, &p->dial, &err) < 0) {
		if (!p->dial_again_us) /* the controller hears of it as of a cut link */
			log_line(a->options.log, LOG_WARN, "node %u cannot be dialed: %s", node, err.text);
		p->dial_again_us = clock_monotonic_us() + DIAL_AGAIN_US;
		p->dial = 0;
		return false;
	}
	return true;
}

/* An activation's way, without losses. */
static int64_t delay_us(const struct agent *a, uint16_t to)
{
	double factor = fault_link_factor(&a->faults, to), us;

	if (a->run.time_scale > 0)
		us = a->delay_s[to] > 0
			     ? (double)a->delay_s[to] * a->run.time_scale * factor * 1e6
			     : 0;
	else
		us = (factor - 1) * SLOW_LINK_US;
	return us < 1e12 ? (int64_t)us : (int64_t)1e12;
}

int64_t links_sync_us(const struct agent *a, uint16_t to, uint32_t replicas)
{
	double us;

	if (!(a->run.time_scale > 0) || !(a->sync_s[to] > 0))
		return 0;
	us = (double)a->sync_s[to] * a->run.time_scale / replicas *
	     fault_link_factor(&a->faults, to) * 1e6;
	return us < 1e12 ? (int64_t)us : (int64_t)1e12;
}

static int64_t losses_us(struct agent *a, uint16_t to)
{
	double p = fault_loss(&a->faults, to);
	int64_t us = 0;

	for (int i = 0; p > 0 && i < LOSSES_MOST && rng_uniform(&a->rng) < p; i++)
		us += RESEND_US;
	return us;
}

static void put(struct agent *a, const struct parcel *p)
{
	if (hold_add(a->hold, p) < 0)
		agent_trouble(a, true, "no memory for a tensor to send");
}

void links_send_output(struct agent *a, const struct route *r, uint32_t position,
		       bool evaluate, float *body, int64_t ended_us)
{
	uint16_t to = route_node(r, position + 1);
	struct peer *peer = &a->peers[to];
	struct parcel p = {
		.to = to,
		.head = {
			.kind = position + 1 <= r->n_hops ? TENSOR_ACTIVATION : TENSOR_GRADIENT,
			.evaluate = evaluate,
			.from = a->run.node,
			.iteration = evaluate ? a->committed : a->iteration,
			.index = position + 1,
			.n_routes = 1,
		},
		.route = *r,
		.body = body,
		.floats = a->activation,
		.ready_us = ended_us,
		.due_us = ended_us,
	};

	if (fault_corrupt(&a->faults))
		body[a->activation / 2] = a->run.node % 2 ? 1e30f : NAN; /* both are to be found */
	if (!evaluate) {
		if (a->run.serialise > 0 && peer->link_free_us > p.due_us)
			p.due_us = peer->link_free_us;
		p.due_us += delay_us(a, to);
		peer->link_free_us = p.due_us;
		p.due_us += losses_us(a, to);
	}
	put(a, &p);
}

void links_send(struct agent *a, uint16_t to, const struct msg_tensor *head, float *body,
		size_t floats, int64_t ready_us, int64_t due_us)
{
	struct parcel p = { .to = to, .head = *head, .body = body, .floats = floats,
			    .ready_us = ready_us, .due_us = due_us + losses_us(a, to) };

	put(a, &p);
}

void links_send_piece(struct agent *a, uint16_t to, const struct msg_tensor *head, float *body,
		      size_t floats, size_t parameters, int64_t now_us)
{
	struct peer *peer = &a->peers[to];
	double part = (double)floats / (double)parameters;
	int64_t due = peer->piece_free_us > now_us ? peer->piece_free_us : now_us;

	due += (int64_t)(part * (double)links_sync_us(a, to, 1));
	peer->piece_free_us = due;
	links_send(a, to, head, body, floats, now_us, due);
}

/* Not held: it carries nothing, and a cut link keeps the answer. */
void links_fetch(struct agent *a, uint16_t from, uint8_t stage, uint32_t piece, int64_t now_us)
{
	struct msg m = { .type = MSG_FETCH };
	struct post_part part;
	char bytes[128];
	long size;

	m.u.fetch.from = a->run.node;
	m.u.fetch.stage = stage;
	m.u.fetch.piece = piece;
	m.sequence = ++a->sequence;
	size = msg_encode(&m, bytes, sizeof(bytes));
	if (size < 0 || !links_dial(a, from))
		return; /* asked for again when nothing comes */
	part = (struct post_part){ bytes, (size_t)size };
	if (post_send(a->tensors, a->peers[from].dial, &part, 1, POST_RELIABLE, now_us) < 0)
		a->dropped++;
}

static int send_now(struct agent *a, struct parcel *p, int64_t now_us)
{
	struct msg m = { .type = MSG_TENSOR, .sequence = ++a->sequence };
	struct post_part parts[2];
	struct msg_route route;
	char head[512]; /* a route of 64 hops takes less */
	long size;

	m.u.tensor = p->head;
	m.u.tensor.sent_us = now_us;
	if (p->head.n_routes) {
		route_write(&route, &p->route);
		m.u.tensor.routes = &route;
	}
	size = msg_encode(&m, head, sizeof(head));
	if (size < 0)
		return (int)size;
	parts[0] = (struct post_part) { head, (size_t)size };
	parts[1] = (struct post_part) { p->body, p->floats * sizeof(float) };
	return post_send(a->tensors, a->peers[p->to].dial, parts, p->floats ? 2 : 1, POST_RELIABLE, now_us);
}

static bool chained(const struct parcel *p)
{
	return p->head.kind == TENSOR_ACTIVATION || p->head.kind == TENSOR_GRADIENT;
}

/* ---- bandwidth: a big tensor, sent while nothing else is, until it is acknowledged ---- */

static void begin_big(struct agent *a, struct peer *peer, size_t bytes, int64_t now_us)
{
	peer->big_bytes = bytes;
	peer->big_from_us = now_us;
	a->n_big++;
}

void links_forget_big(struct agent *a, struct peer *p)
{
	if (p->big_bytes)
		a->n_big--;
	p->big_bytes = 0;
}

static void measure_big(struct agent *a, int64_t now_us)
{
	struct post_peer_info info;

	for (uint32_t i = 0; a->n_big && i < a->run.n_nodes; i++) {
		struct peer *p = &a->peers[i];
		int64_t us;

		if (!p->big_bytes || !post_idle(a->tensors, p->dial))
			continue;
		us = now_us - p->big_from_us;
		if (post_peer(a->tensors, p->dial, &info) == 0)
			us -= info.round_trip_us / 2;
		if (us > 0)
			p->bandwidth = (float)((double)p->big_bytes * 1e6 / (double)us);
		links_forget_big(a, p);
	}
}

/* Sends it, or puts it back for later. */
static void depart(struct agent *a, struct parcel *p, int64_t now_us)
{
	struct peer *peer = &a->peers[p->to];
	size_t bytes = p->floats * sizeof(float);
	bool alone = false;
	int rc = -EAGAIN;

	/* Who wants them asks again, once it is known. */
	if (!peer->known && (p->head.kind == TENSOR_STATE || p->head.kind == TENSOR_PROBE)) {
		free(p->body);
		a->dropped++;
		return;
	}
	/* A cut wire acknowledges nothing; of whom nothing is known nobody hears. */
	peer->blocked = fault_partitioned(&a->faults, p->to) || !links_dial(a, p->to);
	if (!peer->blocked) {
		alone = !peer->big_bytes && post_idle(a->tensors, peer->dial);
		rc = send_now(a, p, now_us);
	}
	if (rc == -EAGAIN) {
		if (peer->blocked) /* tells nothing of the way */
			p->ready_us += now_us + RETRY_US - p->due_us;
		p->due_us = now_us + RETRY_US;
		put(a, p);
		return;
	}
	free(p->body);
	if (rc < 0) {
		a->dropped++;
		log_line(a->options.log, LOG_ERROR, "a tensor for node %u dropped: %s", p->to,
			 strerror(-rc));
		return;
	}
	peer->used = true;
	peer->probed = peer->probed || p->head.kind == TENSOR_PROBE;
	if (alone && bytes >= BIG_BYTES)
		begin_big(a, peer, bytes, now_us);
	if (chained(p) && !p->head.evaluate)
		report_way(a, p->to, (double)(now_us - p->ready_us) * 1e-6, now_us);
}

void links_pump(struct agent *a, int64_t now_us)
{
	struct parcel p;

	measure_big(a, now_us);
	for (int i = 0; i < PUMP_MOST && hold_take(a->hold, now_us, &p) == 0; i++)
		depart(a, &p, now_us);
}

static bool of_old(const struct parcel *p, const void *context)
{
	uint64_t iteration = *(const uint64_t *)context;

	if (p->head.kind == TENSOR_STATE || p->head.kind == TENSOR_PROBE)
		return false;
	/* A copy that is being fetched may be behind with its sums. */
	if (p->head.kind == TENSOR_SUM)
		return p->head.iteration + SUMS_BEHIND <= iteration;
	return p->head.evaluate ? p->head.iteration < iteration : p->head.iteration <= iteration;
}

void links_drop_old(struct agent *a, uint64_t iteration)
{
	a->dropped += hold_drop(a->hold, of_old, &iteration);
}
