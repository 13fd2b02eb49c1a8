/* Links that may be cut: something waits to get through, and nothing comes back.
 *
 * A link is stuck since something began to wait on it, or since its peer was last heard
 * meanwhile. Once that is longer than it may take (links_expected_us) it is doubted: it is told with
 * every heartbeat, and the controller decides what that means (controller/members/link_failures.c). What waited is
 * forgotten when its iteration is over or goes on without the link; so a doubted link gets a probe
 * with every heartbeat, and is believed again only once something has come back. If one packet was
 * lost, another gets through, or shows the system what was.
 */
#include <stdlib.h>

#include "agent/state.h"

/* Returns how long nothing may move on it. */
static int64_t look_at_link(struct agent *a, uint16_t to, int64_t now_us)
{
	struct peer *p = &a->peers[to];
	struct post_peer_info info = { .heard_us = 0 };
	int64_t expected_us = links_expected_us(a, to);
	bool blocked = p->blocked || (p->doubted && fault_partitioned(&a->faults, to));

	if (p->dial)
		post_peer(a->tensors, p->dial, &info);
	if (p->doubted && !blocked && info.heard_us > p->doubted_us)
		p->doubted = false;
	if (!blocked && !p->doubted && (!p->dial || post_idle(a->tensors, p->dial)))
		p->stuck_us = 0;
	else if (!p->stuck_us)
		p->stuck_us = now_us;
	else if (!blocked && info.heard_us > p->stuck_us)
		p->stuck_us = info.heard_us;
	p->blocked = false;
	/* Of whom nothing is known there is nobody to probe. */
	if (p->stuck_us && now_us - p->stuck_us > expected_us && p->known && !p->doubted) {
		p->doubted = true;
		p->doubted_us = now_us;
	}
	if (p->doubted && !blocked && links_dial(a, to))
		post_probe(a->tensors, p->dial, now_us);
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
						       (uint32_t)(expected_us / 1000) };
	}
	return n;
}
