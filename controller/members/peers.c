/* peers.c - what agents are told of one another: addresses and keys, and whose they are to forget. */
#include "controller/members/peers.h"

#include <stdio.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/members/member.h"

void member_disown(struct controller *c, struct member *m)
{
	if (m->disowned)
		return;
	m->disowned = true;
	m->arrival = ++c->arrivals;
}

void member_shun(struct controller *c, struct member *m, bool shunned)
{
	if (m->shunned == shunned)
		return;
	m->shunned = shunned;
	m->arrival = ++c->arrivals;
}

/* What this one has not been told yet of the others' keys and addresses. */
static void send_peers_to(struct controller *c, struct member *to)
{
	struct msg_peer peers[MSG_NODES];
	struct msg p = { .type = MSG_PEERS };
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		bool forgotten = m->disowned || m->shunned;

		if (m->arrival <= to->told_arrival || (m->peer == 0 && !forgotten))
			continue;
		peers[n] = (struct msg_peer){ .node = m->id };
		if (!forgotten) {
			memcpy(peers[n].key, m->key.bytes, sizeof(peers[n].key));
			snprintf(peers[n].address, sizeof(peers[n].address), "%s", m->hello.address);
		}
		n++;
	}
	p.u.peers = (struct msg_peers){ n, peers };
	if (n == 0 || member_send(c, to, &p) == 0)
		to->told_arrival = c->arrivals;
}

/* Whoever was not there when others came is told once it is. */
void members_tell_peers(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->told_arrival < c->arrivals && m->welcomed && member_alive(m))
			send_peers_to(c, m);
	}
}
