/* failed_links.c - records the links that are cut, and the nodes' reports about them.
 *
 * Planning, rerouting and admission read this state. link_failures.c decides which links count as
 * cut. */
#include "controller/network/failed_links.h"

#include <string.h>

#include "controller/members/members.h"
#include "controller/run/journal.h"

enum { HEALED_US = 400000 }; /* a cut link without reports for this time is healed */

struct link_failure *link_failures_find(const struct members *members, uint16_t a, uint16_t b)
{
	for (uint32_t i = 0; i < members->failed_links.n; i++) {
		struct link_failure *k = &members->failed_links.of[i];

		if ((k->from == a && k->to == b) || (k->from == b && k->to == a))
			return k;
	}
	return NULL;
}

bool link_failures_between(const struct members *members, uint16_t a, uint16_t b)
{
	const struct link_failure *k = link_failures_find(members, a, b);

	return k && k->active;
}

/* Returns true if m's last heartbeat reported that the link to the node loses large messages. */
static bool lost_large(const struct member *m, uint16_t to)
{
	for (uint32_t i = 0; i < m->stuck.n; i++)
		if (m->stuck.links[i].to == to)
			return m->stuck.links[i].large_lost;
	return false;
}

/* Records that the link loses large messages. An agent finds this out over a new connection, some
 * seconds after the cut. */
static void note_lost_large(struct run *run, const struct member *m, const struct msg_heartbeat *h)
{
	for (uint32_t i = 0; i < h->n_stuck; i++)
		if (h->stuck[i].large_lost && !lost_large(m, h->stuck[i].to))
			note(run, NOTE_WARNING, m->id, 0,
			     "n%02u > n%02u: small messages pass, large ones do not: MTU?", m->id,
			     h->stuck[i].to);
}

void link_failures_hear(struct members *members, struct member *m, const struct msg_heartbeat *h)
{
	note_lost_large(members->run, m, h);
	m->stuck.n = h->n_stuck;
	if (h->n_stuck)
		memcpy(m->stuck.links, h->stuck, h->n_stuck * sizeof(*h->stuck));
	for (uint32_t i = 0; i < h->n_stuck; i++) {
		struct link_failure *k;

		if (h->stuck[i].to >= members->n)
			continue;
		m->stuck.seen_us = members->run->now_us;
		members->list[h->stuck[i].to].stuck.seen_us = members->run->now_us;
		k = link_failures_find(members, m->id, h->stuck[i].to);
		if (k)
			k->seen_us = members->run->now_us;
	}
}

bool link_failures_doubted(const struct members *members, const struct member *m)
{
	for (uint32_t i = 0; i < m->stuck.n; i++) {
		uint16_t to = m->stuck.links[i].to;

		if (to < members->n && member_is_replica(&members->list[to]) &&
		    !link_failures_between(members, m->id, to))
			return true;
	}
	return false;
}

bool link_failures_healed(const struct run *run, const struct member *m)
{
	return !m->stuck.is_cut_off ||
	       run->now_us - m->stuck.seen_us >
		       (m->heard.allowed_us > HEALED_US ? m->heard.allowed_us : HEALED_US);
}
