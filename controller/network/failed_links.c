/* failed_links.c - which links are cut, and what was complained of. Who judges that: link_failures.c. */
#include "controller/network/failed_links.h"

#include <string.h>

#include "controller/controller.h"

enum { HEALED_US = 400000 }; /* without a complaint */

struct link_failure *link_failures_find(const struct controller *c, uint16_t a, uint16_t b)
{
	for (uint32_t i = 0; i < c->failed_links.n; i++) {
		struct link_failure *k = &c->failed_links.of[i];

		if ((k->from == a && k->to == b) || (k->from == b && k->to == a))
			return k;
	}
	return NULL;
}

bool link_failures_between(const struct controller *c, uint16_t a, uint16_t b)
{
	const struct link_failure *k = link_failures_find(c, a, b);

	return k && k->active;
}

void link_failures_hear(struct controller *c, struct member *m, const struct msg_heartbeat *h)
{
	m->n_stuck = h->n_stuck;
	if (h->n_stuck)
		memcpy(m->stuck, h->stuck, h->n_stuck * sizeof(*h->stuck));
	for (uint32_t i = 0; i < h->n_stuck; i++) {
		struct link_failure *k;

		if (h->stuck[i].to >= c->n_members)
			continue;
		m->cut_seen_us = c->now_us;
		c->members[h->stuck[i].to].cut_seen_us = c->now_us;
		k = link_failures_find(c, m->id, h->stuck[i].to);
		if (k)
			k->seen_us = c->now_us;
	}
}

bool link_failures_doubted(const struct controller *c, const struct member *m)
{
	for (uint32_t i = 0; i < m->n_stuck; i++) {
		uint16_t to = m->stuck[i].to;

		if (to < c->n_members && c->members[to].replica && !link_failures_between(c, m->id, to))
			return true;
	}
	return false;
}

bool link_failures_healed(const struct controller *c, const struct member *m)
{
	return !m->cut || c->now_us - m->cut_seen_us > (m->allowed_us > HEALED_US ? m->allowed_us : HEALED_US);
}
