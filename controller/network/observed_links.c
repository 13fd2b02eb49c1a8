/* observed_links.c - stores each link as consoles show it.
 *
 * Reports and measurements arrive more often than consoles are updated. The records here hold the
 * newest values until the next update. */
#include "controller/network/observed_links.h"

#include "base/array.h"
#include "controller/members/members.h"
#include "controller/network/link_table.h"

struct observed_link *observed_link(struct member *m, uint16_t to)
{
	for (uint32_t i = 0; i < m->links.n; i++)
		if (m->links.list[i].link.to == to)
			return &m->links.list[i];
	array_reserve(&m->links.list, &m->links.room, m->links.n + 1, sizeof(*m->links.list));
	m->links.list[m->links.n] = (struct observed_link){ .strikes = 0 };
	return &m->links.list[m->links.n++];
}

void members_link_observed(struct members *members, struct member *m, uint16_t to)
{
	const struct link_seen *l = link_table_at(members->links, m->id, to);
	struct observed_link *s = observed_link(m, to);

	s->link.from = m->id;
	s->link.to = to;
	s->link.latency_s = l->unreachable ? -1 : l->latency_s;
	s->link.spread_s = l->spread_s;
	s->link.bandwidth_bytes_per_s = (float)l->bandwidth;
	members->run->stream.links_changed = true;
}
