/* Tests when an agent reports that it is connected to the nodes of the next plan. The test replaces
 * the post below connections.c. */
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"

#define post_peer       played_peer
#define post_send       played_send
#define post_idle       played_idle
#define peers_dial played_dial
#define peers_close played_close
#define tell_controller played_tell
#include "agent/tests/lone_agent.h"

enum { NODES = 100, ME = 1, SECOND = 1000000 };

/* The simulated post's peers. Node i is peer i + 1. */
static struct {
	bool up[NODES], carried[NODES][POST_CLASSES], waits[NODES];
	uint32_t sent[NODES][POST_CLASSES];
	uint64_t reported;    /* number of the last CONNECTED; 0: none */
	uint32_t n_reports;
} wire;

int played_peer(const struct post *p, post_peer_id id, struct post_peer_info *out)
{
	(void)p;
	*out = (struct post_peer_info){ .up = wire.up[id - 1] };
	memcpy(out->carried, wire.carried[id - 1], sizeof(out->carried));
	return 0;
}

int played_send(struct post *p, post_peer_id id, const struct post_part *parts, size_t n,
		enum post_flags flags, int64_t now_us)
{
	struct msg m;

	(void)p;
	(void)now_us;
	assert_int_equal(n, 2);
	assert_int_equal(msg_decode(&m, parts[0].data, parts[0].size), 0);
	assert_int_equal(m.u.tensor.kind, TENSOR_PROBE);
	assert_true(wire.up[id - 1]);
	wire.sent[id - 1][(unsigned)flags >> 1]++;
	msg_clear(&m);
	return 0;
}

bool played_idle(const struct post *p, post_peer_id id)
{
	(void)p;
	return !wire.waits[id - 1];
}

bool played_dial(struct peers *peers, uint16_t node)
{
	peers->list[node].dial = node + 1u;
	return true;
}

void played_close(struct peers *peers, uint16_t node)
{
	peers->list[node].dial = 0;
}

void played_tell(struct tell *t, struct msg *m, enum post_flags flags, int64_t now_us)
{
	(void)t;
	(void)flags;
	(void)now_us;
	assert_int_equal(m->type, MSG_CONNECTED);
	wire.reported = m->u.connected.id;
	wire.n_reports++;
}

#include "agent/network/connections.c"

static int begin(void **state)
{
	struct agent *a = lone_agent_new(ME, NODES);

	memset(&wire, 0, sizeof(wire));
	*state = a;
	return 0;
}

static int end(void **state)
{
	struct agent *a = *state;

	lone_agent_free(a);
	return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, end)

static void order(struct agent *a, uint64_t id, uint32_t n, const struct msg_connect_to *nodes)
{
	connections_begin(a->modules.connections, &(struct msg_connect){ id, n, nodes });
	connections_turn(a->modules.connections, SECOND);
}

/* The agent answers when each node that the plan needs has received a message in the class that
 * the plan will use. The answer does not wait for substitutes. */
FIXTURE_TEST(the_answer_waits_for_messages)
{
	static const struct msg_connect_to nodes[] = { { 5, CONNECT_ACTIVATIONS },
						       { 6, CONNECT_SUMS },
						       { 7, CONNECT_SPARE } };
	struct agent *a = *state;

	order(a, 3, 3, nodes);
	assert_true(a->peers.list[5].dial && a->peers.list[6].dial && a->peers.list[7].dial);
	assert_int_equal(wire.sent[5][POST_CLASS_ACTIVATIONS], 0); /* node 5 has no session yet */
	wire.up[5] = wire.up[6] = true;
	connections_turn(a->modules.connections, SECOND);
	connections_turn(a->modules.connections, SECOND);
	assert_int_equal(wire.sent[5][POST_CLASS_ACTIVATIONS], 1);
	assert_int_equal(wire.sent[6][POST_CLASS_SUMS], 1);
	wire.carried[5][POST_CLASS_ACTIVATIONS] = wire.carried[6][POST_CLASS_ACTIVATIONS] = true;
	connections_turn(a->modules.connections, SECOND);
	assert_int_equal(wire.n_reports, 0);
	wire.carried[6][POST_CLASS_SUMS] = true;
	connections_turn(a->modules.connections, SECOND);
	assert_int_equal(wire.reported, 3);
	assert_true(connections_deadline_us(a->modules.connections) <
		    INT64_MAX); /* the substitute is not connected */
	wire.up[7] = true;
	connections_turn(a->modules.connections, SECOND);
	assert_int_equal(wire.sent[7][POST_CLASS_ACTIVATIONS], 1);
	wire.carried[7][POST_CLASS_ACTIVATIONS] = true;
	connections_turn(a->modules.connections, SECOND);
	assert_int_equal(wire.n_reports, 1);
	assert_true(connections_deadline_us(a->modules.connections) == INT64_MAX);
}

/* A node that has received a message gets no second message for the next order, so the agent
 * answers the next order at once. */
FIXTURE_TEST(what_is_connected_is_not_connected_again)
{
	static const struct msg_connect_to nodes[] = { { 5, CONNECT_ACTIVATIONS } };
	struct agent *a = *state;

	wire.up[5] = wire.carried[5][POST_CLASS_ACTIVATIONS] = true;
	order(a, 1, 1, nodes);
	assert_int_equal(wire.reported, 1);
	order(a, 2, 1, nodes);
	assert_int_equal(wire.reported, 2);
	assert_int_equal(wire.sent[5][POST_CLASS_ACTIVATIONS], 0);
}

/* An order that names the agent itself, or a node outside the run, is refused. */
FIXTURE_TEST(impossible_nodes_are_refused)
{
	static const struct msg_connect_to nodes[] = { { ME, CONNECT_SUMS },
						       { NODES, CONNECT_ACTIVATIONS } };
	struct agent *a = *state;

	order(a, 4, 2, nodes);
	assert_int_equal(a->tell.tally.refused, 2);
	assert_int_equal(wire.reported, 4);
}

/* In a run of many nodes, the agent closes the connection to a peer that is named in neither of
 * the last two orders. A connection with messages under way stays. */
FIXTURE_TEST(connections_are_bounded)
{
	struct msg_connect_to nodes[MSG_CONNECT_MOST];
	struct agent *a = *state;
	uint32_t n = 0;

	wire.waits[3] = true;
	played_dial(&a->peers, 3);
	for (uint64_t id = 1; id < 20; id++) {
		for (uint16_t i = 0; i < MSG_CONNECT_MOST; i++)
			nodes[i] = (struct msg_connect_to){ (uint16_t)(4 + (i + 17 * id) % 96),
							    CONNECT_ACTIVATIONS };
		order(a, id, MSG_CONNECT_MOST / 2, nodes);
	}
	for (uint16_t i = 0; i < NODES; i++)
		n += a->peers.list[i].dial != 0;
	assert_true(n <= MSG_CONNECT_MOST + 1);
	assert_true(a->peers.list[3].dial != 0);
	for (uint32_t i = 0; i < MSG_CONNECT_MOST / 2; i++)
		assert_true(a->peers.list[nodes[i].node].dial != 0);
}
