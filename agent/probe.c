/* Links that may be cut: something waits to get through, and nothing comes back.
 *
 * A link is stuck since something began to wait on it, or since its peer was last heard
 * meanwhile. What stays stuck is told with every heartbeat, and the controller decides who is
 * cut off (controller/cuts.c). What waited is forgotten when its iteration is over or goes on
 * without the peer; so a doubted link gets a probe, a tensor of nothing, and is believed again
 * only when that is acknowledged.
 */
#include <stdlib.h>

#include "agent/state.h"

enum { DOUBT_US = 250000 };

static void probe(struct agent *a, uint16_t to, int64_t now_us)
{
	struct msg_tensor head = { .kind = TENSOR_PROBE, .from = a->run.node };

	if (!links_dial(a, to))
		return;
	a->peers[to].probing = true;
	links_send(a, to, &head, NULL, 0, now_us, now_us);
}

/* Since when nothing has moved on the link; 0: nothing waits. */
static int64_t stuck_since(struct agent *a, struct peer *p, int64_t now_us)
{
	struct post_peer_info info = { .heard_us = 0 };
	bool idle = !p->dial || post_idle(a->tensors, p->dial);
	bool waits = p->blocked || !idle || p->doubted;

	if (p->dial)
		post_peer(a->tensors, p->dial, &info);
	if (!waits)
		return 0;
	if (!p->stuck_us)
		return now_us;
	return !p->blocked && info.heard_us > p->stuck_us ? info.heard_us : p->stuck_us;
}

static void look(struct agent *a, uint16_t to, int64_t now_us)
{
	struct peer *p = &a->peers[to];

	if (p->probing && p->probed && post_idle(a->tensors, p->dial))
		p->doubted = p->probing = p->probed = false;
	p->stuck_us = stuck_since(a, p, now_us);
	p->blocked = false;
	if (p->stuck_us && now_us - p->stuck_us > DOUBT_US)
		p->doubted = p->known; /* else there is nobody to probe */
	if (p->doubted && !p->probing)
		probe(a, to, now_us);
}

uint32_t probe_links(struct agent *a, struct msg_stuck *out, int64_t now_us)
{
	uint32_t n = 0;

	for (uint16_t i = 0; i < a->run.n_nodes; i++) {
		struct peer *p = &a->peers[i];

		look(a, i, now_us);
		if (n < MSG_STUCK && p->stuck_us && now_us - p->stuck_us > DOUBT_US)
			out[n++] = (struct msg_stuck){ i, (uint32_t)((now_us - p->stuck_us) / 1000) };
	}
	return n;
}
