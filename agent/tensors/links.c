/* links.c - sends tensors to peers, through an emulated network if the run has one.
 *
 * Every tensor passes through the delay queue, even a tensor that is due at once. Delays, losses,
 * partitions and the wait for a busy peer therefore act in one place.
 */
#include "agent/tensors/links.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Pause before the next attempt to send to a peer that is cut off or whose buffer is
	 * full. */
	RETRY_US = 5000,
	RESEND_US = 200000, /* delay that an injected loss adds */
	LOSSES_MOST = 50,
	/* Delay on which faults act if the network is not emulated: a fault with factor f adds (f -
	 * 1) times this delay. */
	SLOW_LINK_US = 5000,
	PUMP_MOST = 64, /* limit of tensors sent in a turn */
	PUMP_US = 3000, /* after this time a turn sends no more tensors */
	/* A sum that waits to be sent is kept for this many iterations, because a standby copy
	 * may be late. */
	SUMS_BEHIND = 8,
	PIECE_BYTES = 2 << 20, /* default size of a message with a piece of a slice */
	BIG_BYTES = 256 << 10, /* only transfers of at least this size measure the bandwidth */
	/* When a transfer is queued, other bytes may be under way. If these bytes exceed
	 * 1 / BEHIND_PART of the transfer's bytes, the transfer counts as delayed by other
	 * transfers. */
	BEHIND_PART = 8,
	/* For each peer, one output of every SNR_EVERY outputs is used to measure the
	 * signal-to-noise ratio. */
	SNR_EVERY = 64,
	/* Threads encode and decode activations of at least this size. The event loop encodes and
	 * decodes smaller activations. */
	INLINE_BYTES = 256 << 10
};

static bool is_to(const struct parcel *p, const void *node)
{
	return p->to == *(const uint16_t *)node;
}

void links_forget_peer(struct links *l, uint16_t node)
{
	struct peer *p = &l->peers->list[node];

	l->tell->tally.dropped += delay_queue_drop(l->delay_queue, is_to, &node);
	peers_close(l->peers, node);
	p->link_free_us = 0;
	p->n_probes = 0;
}

/* Returns the delay that is emulated for an activation, without losses, us. */
static int64_t delay_us(const struct links *l, uint16_t to)
{
	double factor = fault_link_factor(l->faults, to), us;

	if (l->run->welcome.time_scale > 0)
		us = run_delay_s(l->run, l->progress->wire, to) * l->run->welcome.time_scale *
		     factor * 1e6;
	else
		us = (factor - 1) * SLOW_LINK_US;
	return us < 1e12 ? (int64_t)us : (int64_t)1e12;
}

/* Returns how long an activation occupies the emulated link, us. This time is a part of the
 * activation's delay. */
static int64_t occupied_us(const struct links *l, uint16_t to)
{
	double delay_s, bytes_s;

	if (l->run->welcome.serialise > 0)
		return delay_us(l, to);
	if (!(l->run->welcome.time_scale > 0))
		return 0;
	delay_s = run_delay_s(l->run, l->progress->wire, to);
	bytes_s = tensor_format_activation_share(l->progress->wire) *
		  (double)l->run->times.bytes_s[to];
	return delay_s > 0 ? (int64_t)((double)delay_us(l, to) * fmin(1, bytes_s / delay_s)) : 0;
}

int64_t links_sync_us(const struct links *l, uint16_t to, uint32_t replicas)
{
	double us;

	if (!(l->run->welcome.time_scale > 0) || !(l->run->times.sync_s[to] > 0))
		return 0;
	us = (double)l->run->times.sync_s[to] * l->run->welcome.time_scale / replicas *
	     fault_link_factor(l->faults, to) * 1e6;
	return us < 1e12 ? (int64_t)us : (int64_t)1e12;
}

static int64_t losses_us(struct links *l, uint16_t to)
{
	double p = fault_loss(l->faults, to);
	int64_t us = 0;

	for (int i = 0; p > 0 && i < LOSSES_MOST && rng_uniform(&l->peers->rng) < p; i++)
		us += RESEND_US;
	return us;
}

static void hold_parcel(struct links *l, const struct parcel *p)
{
	if (delay_queue_add(l->delay_queue, p) < 0)
		tell_trouble(l->tell, true, "no memory for a tensor to send");
}

struct codec links_codec(const struct links *l, enum tensor_kind kind, bool evaluate)
{
	enum tensor_format format = evaluate ? l->progress->evaluation_wire : l->progress->wire;

	return kind == TENSOR_ACTIVATION ? codec_of_activation(format, l->run->config.dim)
					 : codec_of_gradient(format);
}

size_t links_chain_bytes(const struct links *l, enum tensor_kind kind, bool evaluate)
{
	struct codec codec = links_codec(l, kind, evaluate);

	return codec_bytes(&codec, l->held->activation);
}

bool links_use_threads(const struct links *l)
{
	size_t least = l->threads_from_bytes ? l->threads_from_bytes : INLINE_BYTES;

	return l->codec_threads && l->held->activation * sizeof(float) >= least;
}

static enum tensor_kind kind_of(const struct route *r, uint32_t position)
{
	return position + 1 <= r->n_hops ? TENSOR_ACTIVATION : TENSOR_GRADIENT;
}

static void drop_encoding(struct codec_job *job)
{
	free(job->floats);
	stage_output_drop(job->leaving);
	body_drop(job->owner);
}

void links_encoded(struct links *l, const struct codec_job *job)
{
	struct body *body = job->owner;

	if (job->rc < 0) {
		tell_trouble(l->tell, true, "an output: %s", job->err.text);
		body_drop(body);
		return;
	}
	body->ready = true;
	body->ready_us = l->tell->now_us;
	link_times_add(&l->link_times->encode, body->ready_us - job->computed_us);
	if (job->measures && l->peers->list && job->node < l->run->welcome.n_nodes)
		l->peers->list[job->node].snr_db[job->of_gradient] = job->snr_db;
	delay_queue_ready(l->delay_queue, body);
	free(job->floats);
	body_drop(body);
}

/* Returns true if the signal-to-noise ratio must be measured for the next output of this kind to
 * the node. */
static bool measures_next(const struct links *l, uint16_t to, enum tensor_kind kind)
{
	return l->peers->list[to].n_outputs[kind == TENSOR_GRADIENT] % SNR_EVERY == 0;
}

bool links_output_leaves(const struct links *l, const struct route *r, uint32_t position,
			 bool evaluate, struct codec *codec)
{
	enum tensor_kind kind = kind_of(r, position);
	uint16_t to;

	*codec = (struct codec){ .format = FORMAT_FP32 };
	if (!l->held->takes_encoded || position == route_last(r, evaluate))
		return false;
	to = route_node(r, position + 1);
	if (to == l->run->welcome.node || fault_corrupt(l->faults))
		return false;
	*codec = links_codec(l, kind, evaluate);
	/* fp32 rounds nothing, so there is no noise to measure. */
	if (codec->format == FORMAT_FP32 || !measures_next(l, to, kind))
		return true;
	codec->format = FORMAT_FP32;
	return false;
}

/* Lets a thread encode the output, or encodes a small output at once. A thread also collects an
 * output that leaves a device, because the event loop never waits for a device. Numbers are
 * rounded only here, so a tensor that stays on the node is not rounded. */
static struct body *begin_encoding(struct links *l, struct codec_job *job)
{
	size_t bytes = codec_bytes(&job->codec, job->n);
	struct body *body;

	job->bytes = malloc(bytes);
	if (!job->bytes) {
		free(job->floats);
		stage_output_drop(job->leaving);
		tell_trouble(l->tell, true, "no memory for a tensor to send");
		return NULL;
	}
	body = body_new(job->bytes, bytes, false);
	job->owner = body_hold(body);
	if (links_use_threads(l) || (job->leaving && l->codec_threads)) {
		codec_threads_add(l->codec_threads, job);
	} else {
		codec_job_run(NULL, job);
		links_encoded(l, job);
	}
	return body;
}

struct body *links_encode(struct links *l, const struct route *r, uint32_t position, bool evaluate,
			  struct tensor_bytes output, struct stage_output *leaving)
{
	enum tensor_kind kind = kind_of(r, position);
	uint16_t to = route_node(r, position + 1);
	struct codec_job job = { .encodes = true,
				 .node = to,
				 .floats = output.at,
				 .of_gradient = kind == TENSOR_GRADIENT,
				 .computed_us = l->tell->now_us,
				 .leaving = leaving,
				 .measures = !leaving && measures_next(l, to, kind),
				 .codec = links_codec(l, kind, evaluate),
				 .n = l->held->activation,
				 .drop = drop_encoding };

	if (fault_corrupt(l->faults) && output.at)
		/* An injected fault spoils one number. Odd nodes send a huge number and even nodes
		 * a NaN, because the receiver must detect both. */
		((float *)output.at)[job.n / 2] = l->run->welcome.node % 2 ? 1e30f : NAN;
	if (job.codec.format != FORMAT_FP32)
		l->peers->list[to].n_outputs[job.of_gradient]++;
	if (leaving && output.codec.format != job.codec.format) {
		stage_output_drop(leaving);
		l->tell->tally.dropped++;
		return NULL;
	}
	if (!leaving && job.codec.format == FORMAT_FP32)
		return body_new(output.at, codec_bytes(&job.codec, job.n), true);
	return begin_encoding(l, &job);
}

void links_send_output(struct links *l, const struct route *r, uint32_t position,
		       bool evaluate, struct body *body, int64_t ended_us)
{
	uint16_t to = route_node(r, position + 1);
	struct peer *peer = &l->peers->list[to];
	struct parcel p = {
		.to = to,
		.head = {
			.kind = (uint8_t)kind_of(r, position),
			.evaluate = evaluate,
			.from = l->run->welcome.node,
			.iteration = evaluate ? l->held->committed : l->progress->iteration,
			.index = position + 1,
			.n_routes = 1,
		},
		.route = *r,
		.body = body,
		.ready_us = ended_us,
		.computed_us = ended_us,
		.due_us = ended_us,
	};

	if (!evaluate) {
		if (peer->link_free_us > p.due_us)
			p.ready_us = p.due_us = peer->link_free_us;
		peer->link_free_us = p.due_us + occupied_us(l, to);
		p.due_us += delay_us(l, to) + losses_us(l, to);
	}
	hold_parcel(l, &p);
}

void links_send(struct links *l, uint16_t to, const struct msg_tensor *head, struct body *body,
		int64_t ready_us, int64_t due_us)
{
	struct parcel p = { .to = to, .head = *head, .body = body, .ready_us = ready_us,
			    .computed_us = ready_us,
			    .due_us = due_us + losses_us(l, to) };

	hold_parcel(l, &p);
}

void links_send_piece(struct links *l, uint16_t to, const struct msg_tensor *head, float *body,
		      size_t floats, size_t parameters, int64_t now_us)
{
	struct peer *peer = &l->peers->list[to];
	double part = (double)floats / (double)parameters;
	int64_t due = peer->piece_free_us > now_us ? peer->piece_free_us : now_us;

	due += (int64_t)(part * (double)links_sync_us(l, to, 1));
	peer->piece_free_us = due;
	links_send(l, to, head, body_new(body, floats * sizeof(float), true), now_us, due);
}

/* Sends a request. The request is small and its answer is delayed, so the request needs no
 * emulated delay. */
void links_fetch(struct links *l, uint16_t from, uint8_t stage, uint32_t piece, int64_t now_us)
{
	struct msg m = { .type = MSG_FETCH };
	struct post_part part;
	char bytes[128];
	long size;

	m.u.fetch.from = l->run->welcome.node;
	m.u.fetch.stage = stage;
	m.u.fetch.piece = piece;
	m.sequence = ++l->tell->tally.sequence;
	size = msg_encode(&m, bytes, sizeof(bytes));
	if (size < 0 || !peers_dial(l->peers, from))
		return; /* the caller repeats the request when no piece arrives */
	part = (struct post_part){ bytes, (size_t)size };
	if (post_send(l->peers->post, l->peers->list[from].dial, &part, 1, POST_RELIABLE, now_us) <
	    0)
		l->tell->tally.dropped++;
}

static enum post_flags class_of(const struct parcel *p)
{
	switch (p->head.kind) {
	case TENSOR_ACTIVATION:
	case TENSOR_GRADIENT:
		return POST_ACTIVATIONS;
	case TENSOR_PART:
	case TENSOR_SUM:
		return POST_SUMS;
	case TENSOR_STATE:
		return POST_WEIGHTS;
	default:
		return POST_CONTROL;
	}
}

size_t links_message_bytes(const struct links *l)
{
	return l->message_bytes ? l->message_bytes : MSG_TENSOR_MOST;
}

size_t links_slice_bytes(const struct links *l)
{
	return l->piece_bytes ? l->piece_bytes : PIECE_BYTES;
}

/* Returns the size of the next message, bytes. A slice is sent in pieces. Other messages then need
 * not wait behind the whole slice, and the length of slices is not limited. */
static size_t piece_of(const struct links *l, const struct parcel *p)
{
	size_t left = parcel_bytes(p) - p->gone, most = links_slice_bytes(l);
	bool slice = p->head.kind == TENSOR_PART || p->head.kind == TENSOR_SUM;

	return slice && left > most ? most : left;
}

/* Returns the time from which the encoded tensor could leave. Until this time this node's host
 * worked on the tensor. */
static int64_t encoded_us(const struct parcel *p)
{
	int64_t ready_us = p->body ? p->body->ready_us : 0;

	return ready_us > p->computed_us ? ready_us : p->computed_us;
}

/* Sends one message, which has the whole tensor or the next piece of a slice. */
static int send_piece(struct links *l, struct parcel *p, size_t bytes, int64_t now_us)
{
	struct msg m = { .type = MSG_TENSOR, .sequence = ++l->tell->tally.sequence };
	struct post_part part;
	struct post_loan loan = { .size = bytes, .release = body_drop, .context = p->body };
	char head[LINKS_HEAD_BYTES];
	long size;
	int rc;

	m.u.tensor = p->head;
	m.u.tensor.computed_us = tell_to_controller_us(l->tell, p->computed_us);
	m.u.tensor.encoded_us = tell_to_controller_us(l->tell, encoded_us(p));
	m.u.tensor.offset = p->gone;
	if (p->head.n_routes)
		m.u.tensor.routes = &p->route;
	size = msg_encode(&m, head, sizeof(head));
	if (size < 0)
		return (int)size;
	part = (struct post_part) { head, (size_t)size };
	if (bytes == 0)
		return post_send(l->peers->post, l->peers->list[p->to].dial, &part, 1,
				 POST_RELIABLE | class_of(p), now_us);
	loan.data = (const char *)p->body->data + p->gone;
	body_hold(p->body);
	rc = post_lend(l->peers->post, l->peers->list[p->to].dial, &part, &loan, class_of(p),
		       now_us);
	if (rc < 0)
		body_drop(p->body);
	return rc;
}

static int send_now(struct links *l, struct parcel *p, int64_t now_us)
{
	int rc;

	do {
		size_t bytes = piece_of(l, p);

		rc = send_piece(l, p, bytes, now_us);
		p->gone += rc == 0 ? bytes : 0;
	} while (rc == 0 && p->gone < parcel_bytes(p));
	return rc;
}

static bool is_chained(const struct parcel *p)
{
	return p->head.kind == TENSOR_ACTIVATION || p->head.kind == TENSOR_GRADIENT;
}

/* ---- delays and rates of completed transfers ---- */

static uint16_t node_of(const struct links *l, post_peer_id peer)
{
	uint16_t i = 0;

	while (i < l->run->welcome.n_nodes && l->peers->list[i].dial != peer)
		i++;
	return i;
}

/* Records the delay of an activation's transfer: from queueing to acknowledgement, minus half a
 * round trip. For a large transfer of another class, measures the bandwidth if the delay was
 * mostly the transfer time of the bytes. Ignores a transfer that was delayed by other transfers,
 * because predictions add such a delay separately. Ignores the first transfer of a connection,
 * because its time includes connecting. */
static void take_transfer(struct links *l, uint16_t to, const struct post_transfer *t,
			  int64_t now_us)
{
	struct peer *p = &l->peers->list[to];
	struct post_peer_info info;
	double delay_s, bytes_s;

	if (post_peer(l->peers->post, p->dial, &info) < 0 || info.least_round_trip_us == 0 ||
	    t->first || t->under_way_bytes > t->bytes / BEHIND_PART)
		return;
	delay_s = (double)(t->acked_us - t->queued_us - info.least_round_trip_us / 2) * 1e-6;
	bytes_s = delay_s - (double)info.least_round_trip_us * 0.5e-6;
	if (delay_s > 0 && t->class == POST_CLASS_ACTIVATIONS)
		link_times_delay(l->link_times, to, delay_s, now_us);
	else if (t->bytes >= BIG_BYTES && bytes_s > delay_s * 0.5)
		p->bandwidth = (float)((double)t->bytes / bytes_s);
}

static void take_transfers(struct links *l, int64_t now_us)
{
	struct post_transfer t;

	while (l->peers->post && post_transfer(l->peers->post, &t) == 0) {
		uint16_t to = node_of(l, t.peer);

		if (to < l->run->welcome.n_nodes && !(l->run->welcome.time_scale > 0))
			take_transfer(l, to, &t, now_us);
	}
}

/* Sends the parcel. If the peer cannot take it now, puts it back into the delay queue. */
static void send_or_hold(struct links *l, struct parcel *p, int64_t now_us)
{
	struct peer *peer = &l->peers->list[p->to];
	bool of_chain = is_chained(p) && !p->head.evaluate;
	int rc = -EAGAIN;

	/* Drops a piece of weights for a node whose address is unknown. The node will request the
	 * piece again later. */
	if (!peer->known && p->head.kind == TENSOR_STATE) {
		parcel_free(p);
		l->tell->tally.dropped++;
		return;
	}
	/* The link is blocked if an injected fault cuts it, or if the node cannot be dialed. */
	peer->blocked = fault_partitioned(l->faults, p->to) || !peers_dial(l->peers, p->to);
	if (!peer->blocked)
		rc = send_now(l, p, now_us);
	if (rc == -EAGAIN) {
		/* The time in which the link is blocked is not part of the link's delay. */
		if (peer->blocked)
			p->ready_us += now_us + RETRY_US - p->due_us;
		p->due_us = now_us + RETRY_US;
		hold_parcel(l, p);
		return;
	}
	parcel_free(p);
	if (rc < 0) {
		l->tell->tally.dropped++;
		tell_log(l->tell, LOG_ERROR, "a tensor for node %u dropped: %s", p->to,
			 strerror(-rc));
		return;
	}
	peer->used = true;
	if (of_chain && l->run->welcome.time_scale > 0)
		link_times_delay(l->link_times, p->to, (double)(now_us - p->ready_us) * 1e-6,
				 now_us);
}

void links_pump(struct links *l, int64_t now_us)
{
	const int64_t began_us = clock_monotonic_us();
	struct parcel p;

	take_transfers(l, now_us);
	for (int i = 0; i < PUMP_MOST && clock_monotonic_us() - began_us < PUMP_US &&
			delay_queue_take(l->delay_queue, now_us, &p) == 0;
	     i++)
		send_or_hold(l, &p, now_us);
}

static bool of_old(const struct parcel *p, const void *context)
{
	uint64_t iteration = *(const uint64_t *)context;

	if (p->head.kind == TENSOR_STATE)
		return false;
	/* Keeps sums of a few older iterations. The holder of a standby copy that is still being
	 * fetched may need them. */
	if (p->head.kind == TENSOR_SUM)
		return p->head.iteration + SUMS_BEHIND <= iteration;
	return p->head.evaluate ? p->head.iteration < iteration : p->head.iteration <= iteration;
}

void links_drop_old(struct links *l, uint64_t iteration)
{
	l->tell->tally.dropped += delay_queue_drop(l->delay_queue, of_old, &iteration);
}
