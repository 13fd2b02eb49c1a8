/* peers.c - sends each agent the addresses and keys of all other agents.
 *
 * Agents connect to each other directly and admit only keys that the controller has sent. This
 * module therefore also withdraws the key of a node that was expelled or excluded. */
#include "controller/members/peers.h"

#include <stdio.h>
#include <string.h>

#include "controller/members/members.h"
#include "controller/members/member.h"
#include "wire/address.h"

void member_disown(struct members *members, struct member *m)
{
	if (m->peers.key_revoked)
		return;
	m->peers.key_revoked = true;
	m->peers.arrival = ++members->arrivals;
}

void member_shun(struct members *members, struct member *m, bool is_excluded)
{
	if (m->peers.is_excluded == is_excluded)
		return;
	m->peers.is_excluded = is_excluded;
	m->peers.arrival = ++members->arrivals;
}

/* Returns true if the two agents are certainly on different machines, or in different networks of
 * one machine. */
static bool are_apart(const struct msg_hello *a, const struct msg_hello *b)
{
	return a->machine[0] && b->machine[0] &&
	       (strcmp(a->machine, b->machine) != 0 || a->network != b->network);
}

/* Returns true if the addresses of both agents as seen from outside have the same host. */
static bool share_address(const struct msg_hello *a, const struct msg_hello *b)
{
	char host_a[LINK_ADDRESS_SIZE], host_b[LINK_ADDRESS_SIZE], port[8];

	return address_split(a->address, host_a, port) && address_split(b->address, host_b, port) &&
	       strcmp(host_a, host_b) == 0;
}

/* Writes the addresses at which `to` should try to connect to m. Many routers cannot pass a
 * connection from inside to their own outside address. Two agents behind one router therefore try
 * the inside addresses first. */
static void write_addresses(const struct msg_hello *m, const struct msg_hello *to, char *out,
			    size_t room)
{
	bool fits = strlen(m->inside) + strlen(m->address) + 2 <= room;

	if (m->inside[0] && fits && share_address(m, to))
		snprintf(out, room, "%s %s", m->inside, m->address);
	else
		snprintf(out, room, "%s", m->address);
}

static enum peer_absence absence_of(const struct members *members, const struct member *m)
{
	if (m->peers.is_excluded)
		return PEER_EXCLUDED;
	if (!m->peers.key_revoked)
		return PEER_PRESENT;
	return keys_list_find(members->run->keys.admitted, &m->key) ? PEER_AWAY : PEER_EXPELLED;
}

/* Sends to the node `to` the addresses and keys that have changed since its last MSG_PEERS. */
static void send_peers_to(struct members *members, struct member *to)
{
	struct msg_peer peers[MSG_NODES];
	struct msg p = { .type = MSG_PEERS };
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];
		enum peer_absence absence = absence_of(members, m);

		if (m->peers.arrival <= to->peers.arrivals_sent ||
		    (m->peer == 0 && absence == PEER_PRESENT))
			continue;
		peers[n] = (struct msg_peer){ .node = m->id,
					      .absence = (uint8_t)absence,
					      .elsewhere = are_apart(&m->hello, &to->hello) };
		if (absence == PEER_PRESENT) {
			memcpy(peers[n].key, m->key.bytes, sizeof(peers[n].key));
			write_addresses(&m->hello, &to->hello, peers[n].address,
					sizeof(peers[n].address));
		}
		n++;
	}
	p.u.peers = (struct msg_peers){ n, peers };
	if (n == 0 || member_send(members->run, to, &p) == 0)
		to->peers.arrivals_sent = members->arrivals;
}

/* Nodes that are away get the changes when they return. */
void members_tell_peers(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (m->peers.arrivals_sent < members->arrivals && m->assigned.is_welcomed &&
		    member_alive(m))
			send_peers_to(members, m);
	}
}
