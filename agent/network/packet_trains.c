/* packet_trains.c - sends trains of packets (wire/bandwidth/packet_train.h) to measure a link, and
 * times the trains of other nodes. A train measures a bandwidth with much less data than filling
 * the link would take.
 *
 * The measurement consists of passes of one or two trains. The pauses before and between the trains
 * are random, because many nodes begin at the same time. The receiver reports the rate of each
 * train. If the last two rates agree, the measurement ends. Otherwise another pass follows, with
 * longer trains unless the link is slow. A train ends with its last packet, or when no packet has
 * arrived for QUIET_US.
 */
#include "agent/network/packet_trains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/bandwidth/dispersion.h"
#include "wire/bandwidth/packet_train.h"

/* How the time limits below were chosen. At 1 MB/s a packet arrives every 1.4 ms, so QUIET_US is
 * the time of about seventy packets, and the longest train takes 0.36 s. At 0.125 MB/s (1 Mbit/s)
 * a short train takes 0.55 s. Its answer may wait another 0.55 s behind a short train in the other
 * direction. OVERDUE_US plus QUIET_US is longer than these 1.1 s. On a much slower link the answer
 * is late. By then measure.c fills the link, and the late answer ends the filling
 * (packet_trains_rate). */
enum {
	/* The pause between trains lasts PAUSE_US to 2 * PAUSE_US, and the pause before a pass
	 * lasts up to PAUSE_US. */
	PAUSE_US = 40000,
	QUIET_US = 100000,
	/* Time limit of an answer, in addition to the round trip and QUIET_US. */
	OVERDUE_US = 1500000,
	/* After this many successive peers have answered no train, no more trains are sent. */
	UNREACHED_MOST = 3,
	TRAINS_PASS = 2, /* limit of the trains in a pass */
	TRAINS_MOST = 12
};

/* The passes of a measurement, from first to last; the last pass is repeated. The first pass has
 * one short train, and is repeated while the rate is below `slow`. A long train would fill the
 * queue of a slow link for seconds, and delay all other traffic of the link. */
static const struct pass {
	uint32_t n, packets; /* number of trains, and number of packets in each train */
} passes[] = { { 1, 48 }, { TRAINS_PASS, 128 }, { TRAINS_PASS, 256 } };
static const double slow = 1e6;

/* A train that another node has announced. */
struct packet_train_awaited {
	bool used;
	uint16_t from;
	post_peer_id peer; /* the connection on which the train was announced */
	uint8_t token[PACKET_TRAIN_TOKEN_BYTES];
	uint32_t packets; /* number of packets of the train that have arrived so far */
	/* Time at which the train was announced, or at which its newest packet arrived. */
	int64_t since_us;
};

struct packet_trains {
	struct peers *peers;
	const char *bound;           /* address of the port for tensors */
	struct packet_train *socket; /* the UDP socket; NULL: not open */
	bool tried;                  /* packet_trains_open has been called */
	uint32_t unreached;          /* number of successive peers that answered no train */
	/* The fields below, except `awaited`, belong to the measurement of one peer. */
	uint16_t to;
	const struct pass *pass;
	/* tokens of the n_sent trains that were sent in this pass */
	uint8_t tokens[TRAINS_PASS][PACKET_TRAIN_TOKEN_BYTES];
	uint32_t n_sent, n_answered;
	/* Time at which the next train leaves, or at which the answers are overdue. */
	int64_t next_us;
	double rates[TRAINS_MOST]; /* the n_rates measured rates, bytes per second */
	uint32_t n_rates;
	struct packet_train_awaited awaited[PACKET_TRAIN_PLACES];
};

struct packet_trains *packet_trains_new(struct peers *peers, const char *bound)
{
	struct packet_trains *x = alloc_new(sizeof(*x));

	x->peers = peers;
	x->bound = bound;
	return x;
}

void packet_trains_free(struct packet_trains *x)
{
	if (x)
		packet_train_free(x->socket);
	free(x);
}

int packet_trains_fd(const struct packet_trains *t)
{
	return packet_train_fd(t->socket);
}

void packet_trains_hear(struct packet_trains *t)
{
	if (t->socket)
		packet_train_hear(t->socket);
}

void packet_trains_open(struct packet_trains *t)
{
	struct error err = { "" };

	if (t->tried)
		return;
	t->tried = true;
	if (packet_train_open(&t->socket, t->bound, &err) < 0)
		tell_log(t->peers->tell, LOG_WARN,
			 "%s: bandwidths are measured with less precision", err.text);
}

static int64_t draw_us(struct packet_trains *t, int64_t most_us)
{
	return (int64_t)(rng_uniform(&t->peers->rng) * (double)most_us);
}

static void begin_pass(struct packet_trains *t, const struct pass *pass, int64_t now_us)
{
	t->pass = pass;
	t->n_sent = t->n_answered = 0;
	t->next_us = now_us + draw_us(t, PAUSE_US);
}

/* Returns true if only the short train has given a rate so far, and the link is fast enough for
 * longer trains. The short train's rate is then discarded, because varying delays make it
 * inaccurate. */
static bool is_too_short(const struct packet_trains *t, double rate)
{
	return t->pass == passes && rate >= slow;
}

static void begin_next_pass(struct packet_trains *t, double rate, int64_t now_us)
{
	const struct pass *last = &passes[sizeof(passes) / sizeof(passes[0]) - 1];

	if (is_too_short(t, rate))
		t->n_rates = 0;
	begin_pass(t, rate < slow ? passes : t->pass < last ? t->pass + 1 : last, now_us);
}

bool packet_trains_begin(struct packet_trains *t, uint16_t to, int64_t now_us)
{
	t->to = to;
	t->n_rates = 0;
	begin_pass(t, passes, now_us);
	return t->socket && t->unreached < UNREACHED_MOST;
}

/* Announces a train in an encrypted message, then sends the train. The announcement has a token, by
 * which the receiver recognises the packets of the train. */
static void send_train(struct packet_trains *t, int64_t now_us)
{
	const struct peer *p = &t->peers->list[t->to];
	struct msg m = { .type = MSG_PACKET_TRAIN,
			 .sequence = ++t->peers->tell->tally.sequence,
			 .u.packet_train = { .from = t->peers->run->welcome.node } };
	struct post_peer_info info;
	char text[64];
	long size;

	packet_train_token(m.u.packet_train.token);
	memcpy(t->tokens[t->n_sent++], m.u.packet_train.token, PACKET_TRAIN_TOKEN_BYTES);
	size = msg_encode(&m, text, sizeof(text));
	if (size > 0)
		post_send(t->peers->post, p->dial, &(struct post_part){ text, (size_t)size }, 1,
			  POST_CONTROL, now_us);
	/* If the peer has several addresses, sends the packets to the address that the connection
	 * uses. */
	if (!strchr(p->place.address, ' ') || post_peer(t->peers->post, p->dial, &info) != 0)
		info.address = p->place.address;
	packet_train_send(t->socket, info.address, m.u.packet_train.token, t->pass->packets);
}

enum packet_trains_standing packet_trains_turn(struct packet_trains *t, bool last, double *rate,
					       int64_t now_us)
{
	struct post_peer_info info = { .rto_us = 0 };
	bool settled;

	if ((t->n_answered < t->n_sent || t->n_sent < t->pass->n) && !(last && t->n_rates > 0)) {
		if (now_us < t->next_us)
			return TRAINS_UNDER_WAY;
		if (t->n_sent < t->pass->n) {
			send_train(t, now_us);
			post_peer(t->peers->post, t->peers->list[t->to].dial, &info);
			t->next_us = now_us + (t->n_sent < t->pass->n
						       ? PAUSE_US + draw_us(t, PAUSE_US)
						       : info.rto_us + QUIET_US + OVERDUE_US);
			return TRAINS_UNDER_WAY;
		}
	}
	*rate = dispersion_settle(t->rates, t->n_rates, &settled);
	if (t->n_rates == 0) {
		t->unreached++;
		return TRAINS_UNANSWERED;
	}
	if (!is_too_short(t, *rate) && (settled || last || t->n_rates + TRAINS_PASS > TRAINS_MOST))
		return TRAINS_ANSWERED;
	begin_next_pass(t, *rate, now_us);
	return TRAINS_UNDER_WAY;
}

double packet_trains_rate(const struct packet_trains *t)
{
	bool settled;

	return dispersion_settle(t->rates, t->n_rates, &settled);
}

void packet_trains_answered(struct packet_trains *t, const struct msg_packet_train_heard *m)
{
	for (uint32_t i = 0; i < t->n_sent; i++) {
		if (m->from != t->to ||
		    memcmp(t->tokens[i], m->token, PACKET_TRAIN_TOKEN_BYTES) != 0)
			continue;
		/* Clears the token, because only the first answer to a train counts. */
		memset(t->tokens[i], 0, PACKET_TRAIN_TOKEN_BYTES);
		t->n_answered++;
		if (m->bytes_per_s > 0 && m->bytes_per_s < 1e12f && t->n_rates < TRAINS_MOST) {
			t->rates[t->n_rates++] = (double)m->bytes_per_s;
			t->unreached = 0;
		}
		return;
	}
}

/* ---- trains of other nodes ---- */

void packet_trains_announced(struct packet_trains *t, const struct msg_packet_train *m,
			     post_peer_id peer, int64_t now_us)
{
	struct packet_train_awaited *place = &t->awaited[0];

	packet_trains_open(t);
	for (int i = 0; i < PACKET_TRAIN_PLACES; i++) {
		struct packet_train_awaited *w = &t->awaited[i];

		if (!w->used || (place->used && w->since_us < place->since_us))
			place = w;
	}
	*place = (struct packet_train_awaited){
		.used = true, .from = m->from, .peer = peer, .since_us = now_us
	};
	memcpy(place->token, m->token, PACKET_TRAIN_TOKEN_BYTES);
	if (t->socket)
		packet_train_expect(t->socket, m->token);
}

static void tell_heard(struct packet_trains *t, struct packet_train_awaited *w,
		       const struct packet_train_heard *h, int64_t now_us)
{
	struct msg m = { .type = MSG_PACKET_TRAIN_HEARD,
			 .sequence = ++t->peers->tell->tally.sequence,
			 .u.packet_train_heard = { .from = t->peers->run->welcome.node,
						   .packets = h->packets,
						   .bytes_per_s = (float)h->bytes_per_s } };
	char text[64];
	long size;

	memcpy(m.u.packet_train_heard.token, w->token, PACKET_TRAIN_TOKEN_BYTES);
	size = msg_encode(&m, text, sizeof(text));
	if (size > 0)
		post_send(t->peers->post, w->peer, &(struct post_part){ text, (size_t)size }, 1,
			  POST_CONTROL, now_us);
	log_line(t->peers->tell->log, LOG_DEBUG, "a train of node %u: %u packets, %.2f MB/s",
		 w->from, h->packets, h->bytes_per_s * 1e-6);
	if (t->socket)
		packet_train_forget(t->socket, w->token);
	w->used = false;
}

bool packet_trains_answer(struct packet_trains *t, int64_t now_us)
{
	bool awaited = false;

	for (int i = 0; i < PACKET_TRAIN_PLACES; i++) {
		struct packet_train_awaited *w = &t->awaited[i];
		struct packet_train_heard h = { .packets = 0 };

		if (!w->used)
			continue;
		if (t->socket && packet_train_heard(t->socket, w->token, &h) &&
		    h.packets > w->packets) {
			w->packets = h.packets;
			w->since_us = now_us;
		}
		if (h.whole || now_us >= w->since_us + QUIET_US)
			tell_heard(t, w, &h, now_us);
		awaited = awaited || w->used;
	}
	return awaited;
}

void packet_trains_forget(struct packet_trains *t)
{
	memset(t->awaited, 0, sizeof(t->awaited));
	t->n_sent = t->n_answered = t->n_rates = 0;
	t->unreached = 0;
}
