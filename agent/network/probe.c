/* probe.c - finds links that may be cut: a message waits, and nothing is acknowledged.
 *
 * A link counts as stuck from the time at which a message begins to wait on it. Each
 * acknowledgement in the message's class restarts this time. A link that is stuck for longer than
 * expected (peers_expected_us) is doubted. Every heartbeat reports the doubted links, and the
 * controller decides what to do (controller/iteration/link_failures.c).
 *
 * The waiting message is dropped when its iteration ends or continues without the link. After the
 * message is dropped, only probes can show whether the link works. The doubt ends when a large
 * probe is answered. Small probes prove nothing, because some networks lose only full packets, for
 * example a tunnel with a smaller MTU. The heartbeat reports which links answer only small probes.
 * Each probe also makes the operating system detect that an earlier packet was lost. Lost probes
 * fill the connection's buffer, so the link is dialed again from time to time.
 *
 * If TCP waits on a connection after losses, the link seems to lose large messages: TCP doubles
 * its timeout, and small messages on other connections pass meanwhile. A new connection starts
 * with a short timeout. If a new connection answers only small probes for some seconds, the
 * network does lose large packets. A connection whose message still waits is not dialed again.
 * Such a connection is judged only after a longer time, in which TCP sends a packet about six
 * times.
 */
#include <stdlib.h>

#include "agent/network/probe.h"

/* Time between two attempts to dial a doubted link. A session over a long link takes about 1.5 s to
 * open. */
enum { REDIAL_US = 4000000 };

/* A link loses large messages if its connection answers only small probes for LOST_TIMES times the
 * expected time, and for at least LOST_LEAST_US. The connection on which the doubt began has the
 * longer limits OLD_TIMES and OLD_LEAST_US, because TCP may still be waiting on this
 * connection. */
enum { LOST_TIMES = 3, LOST_LEAST_US = 2000000, OLD_TIMES = 30, OLD_LEAST_US = 20000000 };

static bool is_new(const struct peer *p)
{
	return p->dial != p->trial.old;
}

/* Returns true if this connection has had enough time to answer a large probe. */
static bool is_judged(const struct peer *p, int64_t expected_us, int64_t now_us)
{
	int64_t times_us = (is_new(p) ? LOST_TIMES : OLD_TIMES) * expected_us;
	int64_t least_us = is_new(p) ? LOST_LEAST_US : OLD_LEAST_US;

	return p->trial.dial && p->trial.dial == p->dial &&
	       now_us - p->trial.since_us > (times_us > least_us ? times_us : least_us);
}

static void probe_doubted(struct peers *peers, uint16_t to, const struct post_peer_info *info,
			  int64_t expected_us, int64_t now_us)
{
	struct peer *p = &peers->list[to];
	bool is_on_trial = is_new(p) && p->trial.dial == p->dial &&
			   !is_judged(p, expected_us, now_us);

	if (info->up && !is_on_trial && now_us - p->dialed_us > REDIAL_US &&
	    post_idle(peers->post, p->dial))
		peers_redial(peers, to);
	if (!peers_dial(peers, to))
		return;
	post_probe(peers->post, p->dial, false, now_us);
	if (now_us - p->large_us < expected_us ||
	    post_probe(peers->post, p->dial, true, now_us) != 0)
		return;
	p->large_us = now_us;
	if (p->trial.dial != p->dial)
		p->trial.since_us = now_us;
	p->trial.dial = p->dial;
}

/* Updates the state of a link. Returns the time for which the link may be silent before probe.c
 * doubts it, us. */
static int64_t look_at_link(struct peers *peers, uint16_t to, int64_t now_us)
{
	struct peer *p = &peers->list[to];
	struct post_peer_info info = { .heard_us = 0 };
	int64_t expected_us = peers_expected_us(peers, to);
	bool blocked = p->blocked || (p->doubted && fault_partitioned(peers->faults, to));

	if (p->dial)
		post_peer(peers->post, p->dial, &info);
	if (p->doubted && !blocked && info.large_passed_us > p->doubted_us)
		p->doubted = p->trial.loses_large = false;
	if (!blocked && !p->doubted && !info.stalled_us)
		p->stuck_us = 0;
	else if (!p->stuck_us)
		p->stuck_us = info.stalled_us && !blocked ? info.stalled_us : now_us;
	else if (!blocked && info.stalled_us > p->stuck_us)
		p->stuck_us = info.stalled_us;
	p->blocked = false;
	p->small_passes = p->stuck_us && !blocked && info.heard_us > p->stuck_us;
	/* A node without a known address cannot be probed, so its link is not doubted. */
	if (p->stuck_us && now_us - p->stuck_us > expected_us && p->known && !p->doubted) {
		p->doubted = true;
		p->doubted_us = p->dialed_us = now_us;
		p->large_us = 0;
		p->trial = (struct large_trial){ .old = p->dial };
	}
	p->trial.loses_large |= p->doubted && !blocked && is_judged(p, expected_us, now_us) &&
			    now_us - info.heard_us < expected_us;
	if (p->doubted && !blocked)
		probe_doubted(peers, to, &info, expected_us, now_us);
	return expected_us;
}

uint32_t probe_links(struct peers *peers, struct msg_stuck *out, int64_t now_us)
{
	uint32_t n = 0;

	for (uint16_t i = 0; i < peers->run->welcome.n_nodes; i++) {
		const struct peer *p = &peers->list[i];
		int64_t expected_us = look_at_link(peers, i, now_us);

		if (n < MSG_STUCK && p->stuck_us && now_us - p->stuck_us > expected_us)
			out[n++] = (struct msg_stuck){ i, (uint32_t)((now_us - p->stuck_us) / 1000),
						       (uint32_t)(expected_us / 1000),
						       p->small_passes, p->trial.loses_large };
	}
	return n;
}
