/* probe.c - finds links that may be cut: a message waits, and nothing comes back.
 *
 * A link is stuck since a message began to wait on it, or since its peer was last heard after that.
 * When this takes longer than expected (links_expected_us), the link is doubted. Every heartbeat
 * reports the doubted links, and the controller decides what to do
 * (controller/members/link_failures.c).
 *
 * The waiting message is dropped when its iteration ends or continues without the link. A doubted
 * link is therefore probed with every heartbeat, and the doubt ends only when an answer arrives. A
 * new packet also makes the system detect that an earlier one was lost.
 */
#include <stdlib.h>

#include "agent/state.h"

/* Updates the state of a link. Returns for how long it may normally be silent. */
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
	/* A node without an address cannot be probed. */
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
