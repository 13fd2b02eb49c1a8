/* connections.c - connects to the nodes that the next plan needs, before the plan takes effect.
 *
 * Before two nodes can exchange tensors, they need a session, a connection for activations or
 * sums, and a first round trip on this connection. All this takes up to seven round trips. If the
 * first activation caused this work, its microbatch would wait, and the controller would take the
 * link for a slow one.
 *
 * On the order CONNECT the agent dials the nodes and sends each a message of zeros in the class
 * that the plan will use. A message of a class opens the connections of that class (wire/post.h).
 * When the messages are acknowledged, the agent answers with CONNECTED. Possible substitutes get a
 * message too, but the answer does not wait for them.
 *
 * In runs of many nodes an agent cannot stay connected to all other nodes. In such runs the agent
 * closes an idle connection to a peer that neither this order nor the previous order names.
 */
#include "agent/network/connections.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
	/* Size of the first message for activations. The parts of such a message travel on
	 * several connections, because TCP does not send so many bytes at once on a single
	 * connection after a pause. */
	ACTIVATION_BYTES = 16 << 10,
	/* Size of the first message for sums. A message of this size makes the connections of
	 * bulk data raise their rate above the initial rate. */
	SUM_BYTES = 64 << 10,
	AGAIN_US = 100000 /* time between two attempts to dial a node or to send to it */
};

struct target {
	struct msg_connect_to to;
	post_peer_id sent_by; /* the connection on which the message was sent; 0: not sent */
	bool is_done;
};

struct connections {
	struct peers *peers;
	uint64_t id; /* number of the order that the agent is carrying out; 0: none */
	bool is_answered;
	struct target targets[MSG_CONNECT_MOST];
	uint32_t n;
	uint16_t before[MSG_CONNECT_MOST]; /* the n_before nodes of the previous order */
	uint32_t n_before;
	int64_t again_us;
};

struct connections *connections_new(struct peers *peers)
{
	struct connections *c = alloc_new(sizeof(*c));

	c->peers = peers;
	return c;
}

void connections_free(struct connections *c)
{
	free(c);
}

void connections_forget(struct connections *c)
{
	*c = (struct connections){ .peers = c->peers };
}

static bool is_named(const struct connections *c, uint16_t node)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->targets[i].to.node == node)
			return true;
	for (uint32_t i = 0; i < c->n_before; i++)
		if (c->before[i] == node)
			return true;
	return false;
}

static void close_others(struct connections *c)
{
	for (uint32_t i = 0; i < c->peers->run->welcome.n_nodes; i++)
		if (c->peers->list[i].dial && !c->peers->list[i].doubted &&
		    post_idle(c->peers->post, c->peers->list[i].dial) && !is_named(c, (uint16_t)i))
			peers_close(c->peers, (uint16_t)i);
}

void connections_begin(struct connections *c, const struct msg_connect *m)
{
	for (c->n_before = 0; c->n_before < c->n; c->n_before++)
		c->before[c->n_before] = c->targets[c->n_before].to.node;
	c->id = m->id;
	c->is_answered = false;
	c->n = 0;
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (m->nodes[i].node < c->peers->run->welcome.n_nodes &&
		    m->nodes[i].node != c->peers->run->welcome.node)
			c->targets[c->n++] = (struct target){ .to = m->nodes[i] };
		else
			c->peers->tell->tally.refused++;
	c->again_us = 0;
	if (c->peers->run->welcome.n_nodes > PEERS_DIAL_ALL)
		close_others(c);
}

static bool send_first(struct connections *c, const struct msg_connect_to *to, int64_t now_us)
{
	static const uint8_t zeros[SUM_BYTES];
	struct msg m = { .type = MSG_TENSOR,
			 .sequence = ++c->peers->tell->tally.sequence,
			 .u.tensor = { .kind = TENSOR_PROBE,
				       .from = c->peers->run->welcome.node } };
	char head[256];
	long size = msg_encode(&m, head, sizeof(head));
	bool sums = to->use == CONNECT_SUMS;
	struct post_part parts[2] = { { head, (size_t)size },
				      { zeros, sums ? SUM_BYTES : ACTIVATION_BYTES } };

	return size > 0 && post_send(c->peers->post, c->peers->list[to->node].dial, parts, 2,
				     sums ? POST_SUMS : POST_ACTIVATIONS, now_us) == 0;
}

/* Takes the next step towards a node: dials it, sends the message as soon as a session exists, or
 * notes that the message arrived. On each connection the message is sent only once, because the
 * post repeats lost messages. */
static void approach(struct connections *c, struct target *t, int64_t now_us)
{
	const struct peer *p = &c->peers->list[t->to.node];
	struct post_peer_info info;

	if (fault_partitioned(c->peers->faults, t->to.node) || !peers_dial(c->peers, t->to.node) ||
	    post_peer(c->peers->post, p->dial, &info) < 0)
		return;
	t->is_done = info.carried[t->to.use == CONNECT_SUMS ? POST_CLASS_SUMS
							    : POST_CLASS_ACTIVATIONS];
	if (t->is_done || !info.up || t->sent_by == p->dial)
		return;
	if (send_first(c, &t->to, now_us))
		t->sent_by = p->dial;
}

void connections_turn(struct connections *c, int64_t now_us)
{
	struct msg m = { .type = MSG_CONNECTED, .u.connected.id = c->id };
	bool all = true, needed = true;

	if (!c->id)
		return;
	for (uint32_t i = 0; i < c->n; i++) {
		if (!c->targets[i].is_done)
			approach(c, &c->targets[i], now_us);
		all = all && c->targets[i].is_done;
		needed = needed && (c->targets[i].is_done || c->targets[i].to.use == CONNECT_SPARE);
	}
	c->again_us = now_us + AGAIN_US;
	if (needed && !c->is_answered)
		tell_controller(c->peers->tell, &m, POST_RELIABLE, now_us);
	c->is_answered = c->is_answered || needed;
	if (all)
		c->id = 0;
}

int64_t connections_deadline_us(const struct connections *c)
{
	return c->id ? c->again_us : INT64_MAX;
}
