/* link_times.c - averages the delays and rates of links, and decides when to report them.
 * The controller corrects its plans with these reports. */
#include "agent/network/link_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
	LINKS_US = 1000000,
	/* Time between reports if there are more than PEERS_DIAL_ALL nodes. */
	LINKS_MANY_US = 2000000,
	/* Least time between two reports, even if the delay of a link has changed. */
	LINKS_SOON_US = 100000,
	/* A report becomes due early after this many tensors whose delay clearly differs from the
	 * delay in the last report (link_times_delay). */
	UNLIKE = 2
};

/* Records a rate. If the sender had too little to send (`limited`), the bandwidth may be higher
 * than this rate. Such a rate can raise a known bandwidth. It never lowers the bandwidth, and
 * never becomes the first known bandwidth. */
void link_times_rate(struct peer *p, double bytes_per_s, bool limited)
{
	if (!limited || (p->bandwidth > 0 && bytes_per_s > (double)p->bandwidth))
		p->bandwidth = (float)bytes_per_s;
}

void link_times_add(struct mean_time *mean, int64_t us)
{
	mean->sum_s += (double)us * 1e-6;
	mean->n++;
}

/* Returns the mean of the times since the last report. If no time was added since the last
 * report, returns the mean of the last report again. */
static float report_mean(struct mean_time *mean)
{
	if (mean->n > 0)
		mean->reported_s = mean->sum_s / mean->n;
	mean->sum_s = 0;
	mean->n = 0;
	return (float)mean->reported_s;
}

static bool measure_link(struct link_times *t, uint16_t to, struct msg_link *l)
{
	struct peer *p = &t->peers->list[to];
	struct post_peer_info info;
	double latency, held;

	if (!p->dial || post_peer(t->peers->post, p->dial, &info) < 0 ||
	    (!p->used && info.least_round_trip_us == 0))
		return false;
	latency = (double)info.least_round_trip_us * 0.5e-6;
	memset(l, 0, sizeof(*l));
	l->from = t->peers->run->welcome.node;
	l->to = to;
	l->latency_s = (float)latency;
	l->spread_s = (float)info.round_trip_var_us * 0.5e-6f;
	link_times_rate(p, (double)info.delivery_bytes_per_s, info.delivery_limited);
	l->bandwidth_bytes_per_s = p->bandwidth;
	if (info.sent_messages)
		l->loss = (float)((double)info.resent_frames /
				  (double)(info.sent_messages + info.resent_frames));
	l->planned_delay_s = (float)run_delay_s(t->peers->run, t->progress->wire, to);
	l->snr_db = p->snr_db[0];
	if (p->snr_db[1] != 0 && (l->snr_db == 0 || p->snr_db[1] < l->snr_db))
		l->snr_db = p->snr_db[1];
	if (p->n_held) {
		held = p->held_s / (double)p->n_held;
		l->measured_delay_s =
			t->peers->run->welcome.time_scale > 0
				? (float)((held + latency) / t->peers->run->welcome.time_scale)
				: (float)held;
		/* From here on, delays count for the mean of the next report. */
		p->reported_s = held;
		p->held_s = 0;
		p->n_held = 0;
	}
	return true;
}

static const double unlike_s = 0.02; /* changes of a delay below this many seconds count as noise */

void link_times_forget(struct link_times *t)
{
	t->encode = t->decode = (struct mean_time){ .n = 0 };
	for (uint32_t i = 0; i < t->peers->run->welcome.n_nodes; i++) {
		struct peer *p = &t->peers->list[i];

		p->held_s = p->reported_s = 0;
		p->n_held = 0;
	}
}

/* Adds a delay to the mean. After UNLIKE tensors whose delay was at least twice or at most half
 * the reported delay, the next report is due early. */
void link_times_delay(struct link_times *t, uint16_t to, double delay_s, int64_t now_us)
{
	struct peer *p = &t->peers->list[to];
	double reported_s = p->reported_s;

	if (reported_s <= 0)
		reported_s = run_delay_s(t->peers->run, t->progress->wire, to) *
			     t->peers->run->welcome.time_scale;
	p->held_s += delay_s;
	p->n_held++;
	if (reported_s <= 0 || fabs(delay_s - reported_s) < unlike_s ||
	    (delay_s < 2 * reported_s && delay_s > reported_s / 2))
		return;
	if (++t->n_unlike < UNLIKE || t->due_us < t->reported_us + LINKS_SOON_US)
		return;
	t->due_us = t->reported_us + LINKS_SOON_US;
	if (t->due_us < now_us)
		t->due_us = now_us;
}

void link_times_tell(struct link_times *t, int64_t now_us)
{
	struct msg_link *links = alloc_array(t->peers->run->welcome.n_nodes, sizeof(links[0]));
	struct msg m = { .type = MSG_LINKS };

	for (uint16_t i = 0; i < t->peers->run->welcome.n_nodes; i++)
		if (measure_link(t, i, &links[m.u.links.n_links]))
			m.u.links.n_links++;
	m.u.links.links = links;
	m.u.links.wire = (uint8_t)t->progress->wire;
	m.u.links.encode_s = report_mean(&t->encode);
	m.u.links.decode_s = report_mean(&t->decode);
	if (m.u.links.n_links)
		tell_controller(t->peers->tell, &m, POST_RELIABLE, now_us);
	free(links);
}

void link_times_turn(struct link_times *t, int64_t now_us)
{
	if (now_us < t->due_us)
		return;
	link_times_tell(t, now_us);
	t->reported_us = now_us;
	t->n_unlike = 0;
	t->due_us = now_us +
		    (t->peers->run->welcome.n_nodes > PEERS_DIAL_ALL ? LINKS_MANY_US : LINKS_US);
}
