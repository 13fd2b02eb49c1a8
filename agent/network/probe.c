/* probe.c - finds links that may be cut: a message waits, and nothing comes back.
 *
 * A link is stuck since a message began to wait on it, or since the peer last acknowledged anything
 * of the message's class. When this takes longer than expected (links_expected_us), the link is
 * doubted. Every heartbeat reports the doubted links, and the controller decides what to do
 * (controller/members/link_failures.c).
 *
 * The waiting message is dropped when its iteration ends or continues without the link. A doubted
 * link is therefore probed, and the doubt ends only when a large probe is answered. A network that
 * loses full packets, as a tunnel with a smaller MTU can, still passes small ones: small answers
 * prove nothing, and are only reported. A new packet also makes the system detect that an earlier
 * one was lost. Lost probes fill the connections' buffers, so the link is dialed again from time to
 * time.
 */
#include <stdlib.h>

#include "agent/state.h"

/* Time between two dials of a doubted link: a session over a long link needs some 1.5 s. */
enum { REDIAL_US = 4000000 };

static void probe_doubted(struct agent *a, uint16_t to, const struct post_peer_info *info,
			  int64_t expected_us, int64_t now_us)
{
	struct peer *p = &a->peers[to];

	if (info->up && now_us - p->dialed_us > REDIAL_US && post_idle(a->tensors, p->dial)) {
		links_redial(a, to);
		p->dialed_us = now_us;
	}
	if (!links_dial(a, to))
		return;
	post_probe(a->tensors, p->dial, false, now_us);
	if (now_us - p->large_us >= expected_us &&
	    post_probe(a->tensors, p->dial, true, now_us) == 0)
		p->large_us = now_us;
}

/* Updates the state of a link. Returns for how long it may normally be silent. */
static int64_t look_at_link(struct agent *a, uint16_t to, int64_t now_us)
{
	struct peer *p = &a->peers[to];
	struct post_peer_info info = { .heard_us = 0 };
	int64_t expected_us = links_expected_us(a, to);
	bool blocked = p->blocked || (p->doubted && fault_partitioned(&a->faults, to));

	if (p->dial)
		post_peer(a->tensors, p->dial, &info);
	if (p->doubted && !blocked && info.large_passed_us > p->doubted_us)
		p->doubted = false;
	if (!blocked && !p->doubted && !info.stalled_us)
		p->stuck_us = 0;
	else if (!p->stuck_us)
		p->stuck_us = info.stalled_us && !blocked ? info.stalled_us : now_us;
	else if (!blocked && info.stalled_us > p->stuck_us)
		p->stuck_us = info.stalled_us;
	p->blocked = false;
	p->small_passes = p->stuck_us && !blocked && info.heard_us > p->stuck_us;
	/* A node without an address cannot be probed. */
	if (p->stuck_us && now_us - p->stuck_us > expected_us && p->known && !p->doubted) {
		p->doubted = true;
		p->doubted_us = p->dialed_us = now_us;
		p->large_us = 0;
	}
	if (p->doubted && !blocked)
		probe_doubted(a, to, &info, expected_us, now_us);
	return expected_us;
}

uint32_t probe_links(struct agent *a, struct msg_stuck *out, int64_t now_us)
{
	uint32_t n = 0;

	for (uint16_t i = 0; i < a->run.n_nodes; i++) {
		const struct peer *p = &a->peers[i];
		int64_t expected_us = look_at_link(a, i, now_us);

		if (n < MSG_STUCK && p->stuck_us && now_us - p->stuck_us > expected_us)
			out[n++] = (struct msg_stuck){ i, (uint32_t)((now_us - p->stuck_us) / 1000),
						       (uint32_t)(expected_us / 1000),
						       p->small_passes };
	}
	return n;
}
