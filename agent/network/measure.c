/* measure.c - measures links on the controller's order (MSG_MEASURE), and probes round trips. The
 * planner needs the delay and the bandwidth of each link.
 *
 * The states of an order:
 *
 *     CONNECTING  dialed, no session yet
 *     PROBING     until the round trip is known
 *     TRAINS      trains of packets measure the bandwidth (packet_trains.c)
 *     FILLING     if no train is answered: bulk data, as urgent as activations, fills the link
 *                 until the acknowledged rate stops rising, the time is over, or a train is
 *                 answered late
 *
 * The post measures the acknowledged rate and the round trips (wire/delivery/flow.h). An unused
 * link is probed from time to time. An order for MSG_NOBODY probes all links as fast as answers
 * arrive.
 */
#include "agent/network/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/address.h"

/* How CONNECT_US and PROBE_FIRST_US were chosen. Connecting takes three round trips, which are
 * 1.8 s if the one-way delay is 300 ms. CONNECT_US is well above this. The post recognises the
 * answers to its last 16 probes. With one probe every PROBE_FIRST_US, the post can measure round
 * trips of up to 2.4 s. */
enum {
	CONNECT_US = 4000000, /* time limit for connecting */
	/* Time limit for connecting if the link had no session when the order arrived, and has had
	 * none for CONNECT_US. With the longer limit, a closed port would delay every round of
	 * measurements by 4 s. */
	CONNECT_MORE_US = 300000,
	/* Time between two probes of a link in a small run. In larger runs this time is
	 * multiplied by 1 + n_nodes / PROBE_EVERY_NODES. */
	PROBE_EVERY_US = 2000000,
	PROBE_EVERY_NODES = 24,
	/* Least time between two probes of a link while an order measures round trips. */
	PROBE_AGAIN_US = 20000,
	PROBE_FIRST_US = 150000, /* time between two probes while the round trip is unknown */
	PROBES = 2,              /* number of probes before the bandwidth is measured */
	PROBES_OF_ALL = 5,
	TURN_US = 2000,        /* time between two turns while a link is measured */
	IDLE_TURN_US = 100000, /* time between two turns while no link is measured */
	PIECE_BYTES = 64 << 10,
	/* FIRST_BYTES limits the unacknowledged bulk data before the first acknowledgement. Later
	 * the limit is at least WINDOW_BYTES. */
	FIRST_BYTES = 64 << 10,
	WINDOW_BYTES = 512 << 10,
	LEAST_LOOK_US = 60000,
	/* Least time for which bulk data fills the link; four round trips are added to it. */
	FILL_LEAST_US = 150000,
	LARGE_US = 2500000 /* time limit for the first acknowledgement of bulk data */
};

/* The order under way. */
struct measure {
	struct peers *peers;
	struct packet_trains *trains;
	struct link_times *link_times;
	enum {
		MEASURE_NONE,
		MEASURE_CONNECTING,
		MEASURE_PROBING,
		MEASURE_TRAINS,
		MEASURE_FILLING
	} standing;
	struct msg_measure order;
	int64_t ordered_us;   /* time at which the order arrived */
	int64_t until_us;     /* time limit of the present state */
	/* Time until which all links are probed; 0: there is no order to probe all links. */
	int64_t all_until_us;
	uint64_t all_id;
	int64_t wake_us, looked_us;
	int64_t filling_us;   /* time at which bulk data was first sent */
	double best;          /* highest rate seen so far, bytes per second */
	uint32_t n_level;     /* number of successive checks in which the rate has not risen */
};

/* A rate that grows by less than this factor from check to check counts as not rising. */
static const double level = 1.05;

struct measure *measure_new(struct peers *peers, struct packet_trains *trains,
			    struct link_times *link_times)
{
	struct measure *x = alloc_new(sizeof(*x));

	x->peers = peers;
	x->trains = trains;
	x->link_times = link_times;
	return x;
}

void measure_free(struct measure *x)
{
	free(x);
}

/* ---- round trips ---- */

static bool is_hurried(const struct measure *w, uint16_t to)
{
	return w->all_until_us || (w->standing == MEASURE_PROBING && w->order.to == to);
}

/* Returns the time between two probes of a link. This time grows with the number of nodes in the
 * run. Emulated links are probed only on the controller's order. */
static int64_t probe_every_us(const struct measure *w, uint16_t to, int64_t round_trip_us)
{
	if (is_hurried(w, to))
		return round_trip_us == 0               ? PROBE_FIRST_US
		       : round_trip_us > PROBE_AGAIN_US ? round_trip_us
							: PROBE_AGAIN_US;
	if (w->peers->run->welcome.time_scale > 0)
		return INT64_MAX / 2;
	return (int64_t)PROBE_EVERY_US * (w->peers->run->welcome.n_nodes / PROBE_EVERY_NODES + 1);
}

static void probe_round_trip(struct measure *w, uint16_t to, int64_t now_us)
{
	struct peer *p = &w->peers->list[to];
	struct post_peer_info info;

	if (!p->dial || post_peer(w->peers->post, p->dial, &info) < 0 || !info.up ||
	    fault_partitioned(w->peers->faults, to) ||
	    now_us - p->probed_us < probe_every_us(w, to, info.round_trip_us))
		return;
	p->probed_us = now_us;
	p->n_probes += post_probe(w->peers->post, p->dial, false, now_us) == 0;
}

/* ---- one link ---- */

static void answer_order(struct measure *w, const struct post_peer_info *info, double bandwidth,
			 int64_t now_us, const char *why)
{
	struct msg m = { .type = MSG_MEASURED };

	m.u.measured = (struct msg_measured){
		.id = w->order.id, .to = w->order.to, .reached = info != NULL,
		.latency_s = info ? (float)info->least_round_trip_us * 0.5e-6f : -1,
		.spread_s = info ? (float)info->round_trip_var_us * 0.5e-6f : 0,
		.bandwidth_bytes_per_s = (float)bandwidth,
	};
	snprintf(m.u.measured.text, sizeof(m.u.measured.text), "%s", why);
	tell_controller(w->peers->tell, &m, POST_RELIABLE, now_us);
	if (info)
		w->peers->list[w->order.to].bandwidth = (float)bandwidth;
	w->standing = MEASURE_NONE;
}

/* Reports that only small messages pass. Then dials again, which drops the bulk data that is
 * queued on the old connection. Otherwise the link would be reported as stuck because of this
 * data. The link stays doubted (probe.c), so the controller avoids it. */
static void tell_only_small(struct measure *w, int64_t now_us)
{
	uint16_t to = w->order.to;

	answer_order(w, NULL, 0, now_us, "small messages pass, large ones do not: MTU?");
	peers_redial(w->peers, to);
}

static void tell_unreached(struct measure *w, int64_t now_us)
{
	const struct peer *p = &w->peers->list[w->order.to];
	struct post_peer_info info = { .trouble = "", .address = "" };
	char why[160];

	(void)post_peer(w->peers->post, p->dial, &info);
	if (!p->known)
		snprintf(why, sizeof(why), "its address is not known here");
	else if (p->place.elsewhere &&
		 (address_is_own(p->place.address) || address_is_here(info.address)))
		snprintf(why, sizeof(why), "%.60s means this machine itself", p->place.address);
	else if (info.trouble[0])
		snprintf(why, sizeof(why), "%s", info.trouble);
	else
		snprintf(why, sizeof(why), "no connection to %.100s within %.1f s",
			 p->place.address, (double)(now_us - w->ordered_us) * 1e-6);
	answer_order(w, NULL, 0, now_us, why);
}

static bool send_piece(struct measure *w, uint16_t to, int64_t now_us)
{
	static const float zeros[PIECE_BYTES / sizeof(float)];
	struct msg m = { .type = MSG_TENSOR,
			 .sequence = ++w->peers->tell->tally.sequence,
			 .u.tensor = { .kind = TENSOR_PROBE,
				       .from = w->peers->run->welcome.node } };
	char head[256];
	long size = msg_encode(&m, head, sizeof(head));
	struct post_part parts[2] = { { head, (size_t)size }, { zeros, PIECE_BYTES } };

	return size > 0 && post_send(w->peers->post, w->peers->list[to].dial, parts, 2,
				     POST_ACTIVATIONS, now_us) == 0;
}

/* Checks the rate every two round trips, but at most once in LEAST_LOOK_US. Returns true if the
 * rate has not risen in two successive checks. */
static bool has_levelled(struct measure *w, const struct post_peer_info *info, int64_t now_us)
{
	int64_t look_us = 2 * info->least_round_trip_us;
	double rate = (double)info->delivery_bytes_per_s;
	bool levelled;

	if (look_us < LEAST_LOOK_US)
		look_us = LEAST_LOOK_US;
	if (now_us < w->looked_us + look_us)
		return false;
	levelled = rate < w->best * level;
	w->n_level = levelled ? w->n_level + 1 : 0;
	w->best = rate > w->best ? rate : w->best;
	w->looked_us = now_us;
	return w->n_level >= 2;
}

/* Returns the limit of unacknowledged bulk data, bytes. The limit is WINDOW_BYTES plus twice the
 * bytes that the link carries in a round trip, so that the rate can double. Before the first
 * acknowledgement the limit is small. On a slow link a larger limit would delay all
 * acknowledgements, and the link would look as if it lost large messages. */
static size_t window_bytes(const struct post_peer_info *info)
{
	if (info->delivery_bytes_per_s == 0)
		return FIRST_BYTES;
	return WINDOW_BYTES + (size_t)(2e-6 * (double)info->delivery_bytes_per_s *
				       (double)info->least_round_trip_us);
}

static void fill_link(struct measure *w, struct post_peer_info *info, int64_t now_us)
{
	bool unanswered = info->stalled_us && info->stalled_us <= w->filling_us;
	double late = packet_trains_rate(w->trains);

	if (late > 0) {
		answer_order(w, info, late, now_us, "");
		return;
	}
	if (unanswered && now_us >= w->filling_us + LARGE_US) {
		tell_only_small(w, now_us);
		return;
	}
	if (!unanswered && (now_us >= w->until_us || has_levelled(w, info, now_us))) {
		answer_order(w, info, (double)info->delivery_bytes_per_s, now_us, "");
		return;
	}
	while (info->retained_bytes < window_bytes(info) && send_piece(w, w->order.to, now_us))
		info->retained_bytes += PIECE_BYTES;
}

/* Begins to fill the link with bulk data. Extends the time limit, because the wait for unanswered
 * trains may have used it up. */
static void begin_filling(struct measure *w, const struct post_peer_info *info, int64_t now_us)
{
	int64_t least_us = FILL_LEAST_US + 4 * info->least_round_trip_us;

	if (w->until_us < now_us + least_us)
		w->until_us = now_us + least_us;
	w->standing = MEASURE_FILLING;
	w->looked_us = w->filling_us = now_us;
	w->best = 0;
	w->n_level = 0;
}

static void begin_bandwidth(struct measure *w, const struct post_peer_info *info, int64_t now_us)
{
	if (packet_trains_begin(w->trains, w->order.to, now_us))
		w->standing = MEASURE_TRAINS;
	else
		begin_filling(w, info, now_us);
}

static void ask_trains(struct measure *w, const struct post_peer_info *info, int64_t now_us)
{
	double rate = 0;
	enum packet_trains_standing standing =
		packet_trains_turn(w->trains, now_us >= w->until_us, &rate, now_us);

	if (standing == TRAINS_ANSWERED)
		answer_order(w, info, rate, now_us, "");
	else if (standing == TRAINS_UNANSWERED)
		begin_filling(w, info, now_us);
}

static void follow_order(struct measure *w, int64_t now_us)
{
	struct peer *p = &w->peers->list[w->order.to];
	struct post_peer_info info = { .up = false };
	bool up = peers_dial(w->peers, w->order.to) &&
		  post_peer(w->peers->post, p->dial, &info) == 0 && info.up &&
		  !fault_partitioned(w->peers->faults, w->order.to);

	if (!up) {
		if (now_us >= w->until_us || !p->known)
			tell_unreached(w, now_us);
		return;
	}
	if (w->standing == MEASURE_CONNECTING) {
		w->standing = MEASURE_PROBING;
		w->until_us = now_us + (int64_t)w->order.most_ms * 1000;
	}
	if (w->standing == MEASURE_PROBING && p->n_probes >= PROBES && info.least_round_trip_us > 0)
		begin_bandwidth(w, &info, now_us);
	else if (w->standing == MEASURE_PROBING && now_us >= w->until_us + CONNECT_US)
		tell_unreached(w, now_us);
	if (w->standing == MEASURE_TRAINS)
		ask_trains(w, &info, now_us);
	if (w->standing == MEASURE_FILLING)
		fill_link(w, &info, now_us);
}

/* Returns the time limit for connecting. A link that has lost its session a moment ago gets the
 * limit CONNECT_US, even if it was dialed long ago. */
static int64_t connect_limit_us(const struct measure *w, uint16_t to, int64_t now_us)
{
	const struct peer *p = &w->peers->list[to];
	struct post_peer_info info = { .down_us = 0 };
	int64_t since_us = p->dialed_us;

	if (!p->dial)
		return CONNECT_US;
	if (post_peer(w->peers->post, p->dial, &info) == 0 && info.down_us > since_us)
		since_us = info.down_us;
	return now_us - since_us > CONNECT_US ? CONNECT_MORE_US : CONNECT_US;
}

void measure_begin(struct measure *w, const struct msg_measure *m, int64_t now_us)
{
	w->wake_us = now_us;
	packet_trains_open(w->trains);
	if (m->to == MSG_NOBODY) {
		w->all_until_us = now_us + (int64_t)m->most_ms * 1000;
		w->all_id = m->id;
		for (uint32_t i = 0; i < w->peers->run->welcome.n_nodes; i++)
			w->peers->list[i].n_probes = 0;
		return;
	}
	if (m->to >= w->peers->run->welcome.n_nodes || m->to == w->peers->run->welcome.node) {
		w->peers->tell->tally.refused++;
		return;
	}
	w->order = *m;
	w->standing = MEASURE_CONNECTING;
	w->ordered_us = now_us;
	w->until_us = now_us + connect_limit_us(w, m->to, now_us);
}

/* ---- all links ---- */

static bool are_all_probed(const struct measure *w)
{
	for (uint32_t i = 0; i < w->peers->run->welcome.n_nodes; i++) {
		const struct peer *p = &w->peers->list[i];
		struct post_peer_info info;

		if (i == w->peers->run->welcome.node)
			continue;
		if (!p->dial || p->n_probes <= PROBES_OF_ALL ||
		    post_peer(w->peers->post, p->dial, &info) < 0 || info.least_round_trip_us == 0)
			return false;
	}
	return true;
}

static void answer_all(struct measure *w, int64_t now_us)
{
	struct msg m = { .type = MSG_MEASURED,
			 .u.measured = { .id = w->all_id, .to = MSG_NOBODY } };

	link_times_tell(w->link_times, now_us);
	tell_controller(w->peers->tell, &m, POST_RELIABLE, now_us);
	w->all_until_us = 0;
}

void measure_turn(struct measure *w, int64_t now_us)
{
	bool awaited = packet_trains_answer(w->trains, now_us);

	if (w->standing != MEASURE_NONE)
		follow_order(w, now_us);
	if (now_us < w->wake_us)
		return;
	for (uint16_t i = 0; i < w->peers->run->welcome.n_nodes; i++)
		probe_round_trip(w, i, now_us);
	if (w->all_until_us && (now_us >= w->all_until_us || are_all_probed(w)))
		answer_all(w, now_us);
	w->wake_us = now_us + (w->standing != MEASURE_NONE || w->all_until_us || awaited
				       ? TURN_US
				       : IDLE_TURN_US);
}

void measure_forget(struct measure *w)
{
	*w = (struct measure){ .peers = w->peers,
			       .trains = w->trains,
			       .link_times = w->link_times,
			       .standing = MEASURE_NONE };
	packet_trains_forget(w->trains);
}

void measure_soon(struct measure *w, int64_t now_us)
{
	w->wake_us = now_us;
}

int64_t measure_deadline_us(const struct measure *w)
{
	return w->wake_us;
}
