/* cut_links.c - which links are cut, and what was complained of. Who judges that: cuts.c. */
#include "controller/network/cut_links.h"

#include <string.h>

#include "controller/controller.h"

enum { HEALED_US = 400000 }; /* without a complaint */

struct cut *cuts_find(const struct controller *c, uint16_t a, uint16_t b)
{
	for (uint32_t i = 0; i < c->cuts.n; i++) {
		struct cut *k = &c->cuts.of[i];

		if ((k->from == a && k->to == b) || (k->from == b && k->to == a))
			return k;
	}
	return NULL;
}

bool cuts_between(const struct controller *c, uint16_t a, uint16_t b)
{
	const struct cut *k = cuts_find(c, a, b);

	return k && k->active;
}

void cuts_hear(struct controller *c, struct member *m, const struct msg_heartbeat *h)
{
	m->n_stuck = h->n_stuck;
	if (h->n_stuck)
		memcpy(m->stuck, h->stuck, h->n_stuck * sizeof(*h->stuck));
	for (uint32_t i = 0; i < h->n_stuck; i++) {
		struct cut *k;

		if (h->stuck[i].to >= c->n_members)
			continue;
		m->cut_seen_us = c->now_us;
		c->members[h->stuck[i].to].cut_seen_us = c->now_us;
		k = cuts_find(c, m->id, h->stuck[i].to);
		if (k)
			k->seen_us = c->now_us;
	}
}

bool cuts_healed(const struct controller *c, const struct member *m)
{
	return !m->cut || c->now_us - m->cut_seen_us > (m->allowed_us > HEALED_US ? m->allowed_us : HEALED_US);
}
