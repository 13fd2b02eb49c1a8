/* peers.c - dials the other nodes, and estimates how long answers take. */
#include "agent/network/peers.h"

#include <math.h>

#include "base/error.h"

enum {
	/* Pause after an attempt to dial that failed at once, for example because of an invalid
	 * address. */
	DIAL_AGAIN_US = 1000000,
	/* Least time limit for an answer. The peer's process may pause for this long. */
	EXPECTED_LEAST_US = 250000
};

bool peers_dial(struct peers *peers, uint16_t node)
{
	struct peer *p = &peers->list[node];
	struct error err = { "" };

	if (p->dial)
		return true;
	if (!p->known || (p->dial_again_us && peers->tell->now_us < p->dial_again_us))
		return false;
	if (post_dial(peers->post, p->place.address, &p->key, &p->dial, &err) < 0) {
		/* Repeated failures are not logged: the heartbeat reports the link as stuck. */
		if (!p->dial_again_us)
			tell_log(peers->tell, LOG_WARN, "node %u cannot be dialed: %s", node,
				 err.text);
		p->dial_again_us = peers->tell->now_us + DIAL_AGAIN_US;
		p->dial = 0;
		return false;
	}
	p->dialed_us = peers->tell->now_us;
	return true;
}

void peers_close(struct peers *peers, uint16_t node)
{
	struct peer *p = &peers->list[node];

	if (p->dial)
		post_forget(peers->post, p->dial);
	p->dial = 0;
}

void peers_redial(struct peers *peers, uint16_t node)
{
	peers_close(peers, node);
	peers_dial(peers, node);
}

/* Rates in bytes per second. For a link without measurements, slow_bytes_per_s is assumed. If a
 * link's measured bandwidth is lower than slow_bytes_per_s, the measured bandwidth is assumed,
 * but at least slowest_bytes_per_s. */
static const double slow_bytes_per_s = 1e6, slowest_bytes_per_s = 1e5;

/* Returns the rate that is assumed for the link, bytes per second. The measured delivery rate may
 * be too low if the link had little to carry. Therefore the assumed rate is at least
 * slow_bytes_per_s. If the link's measured bandwidth is lower than slow_bytes_per_s, the assumed
 * rate is at least this bandwidth. */
static double find_rate(const struct peer *p, const struct post_peer_info *info)
{
	double rate = (double)info->delivery_bytes_per_s, least = slow_bytes_per_s;

	if (p->bandwidth > 0)
		least = fmax(slowest_bytes_per_s, fmin(least, (double)p->bandwidth));

	return rate > 0 && (!info->delivery_limited || rate > least) ? rate : least;
}

int64_t peers_expected_us(const struct peers *peers, uint16_t to)
{
	struct post_peer_info info = { .rto_us = 0 };

	if (peers->list[to].dial)
		post_peer(peers->post, peers->list[to].dial, &info);
	return (info.rto_us > EXPECTED_LEAST_US ? info.rto_us : EXPECTED_LEAST_US) +
	       (int64_t)((double)info.under_way_bytes * 1e6 / find_rate(&peers->list[to], &info));
}

int64_t peers_piece_us(const struct peers *peers, uint16_t from, size_t floats)
{
	struct post_peer_info info;

	if (!peers->list[from].dial || post_peer(peers->post, peers->list[from].dial, &info) != 0 ||
	    info.delivery_bytes_per_s == 0)
		return 0;
	return info.rto_us +
	       (int64_t)(3.0 * (double)(floats * sizeof(float)) * 1e6 /
			 find_rate(&peers->list[from], &info));
}

