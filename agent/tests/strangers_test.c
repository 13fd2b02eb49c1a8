/* Tests that complete agents withstand faulty or hostile peers: invalid messages under an admitted
 * key, an expelled key, and an invalid address. */

#include <stdlib.h>
#include <string.h>

#include "agent/execution/queue.h"
#include "agent/execution/tasks.h"
#include "agent/state.h"
#include "agent/tensors/early.h"
#include "agent/tests/cluster.h"
#include "base/clock.h"
#include "base/tests/test.h"

static void send_tensor(struct post *p, post_peer_id to, const struct msg_tensor *t, size_t body)
{
	struct msg m = { .type = MSG_TENSOR, .u.tensor = *t };
	char head[512], *zeros = calloc(1, body + 1);
	long n = msg_encode(&m, head, sizeof(head));
	struct post_part parts[2] = { { head, (size_t)n }, { zeros, body } };

	assert_non_null(zeros);
	assert_true(n > 0);
	assert_int_equal(post_send(p, to, parts, 2, POST_RELIABLE, clock_monotonic_us()), 0);
	free(zeros);
}

static void send_nonsense(struct cluster *c, struct post *p, post_peer_id to)
{
	size_t floats = stage_activation(c->twins[0]);
	size_t body = tensor_format_activation_bytes(c->options.wire, floats, c->config.dim);
	const struct route route = c->now.routes[3]; /* route of nodes 1, 2, 5 */
	struct route bad = c->now.routes[0];         /* route of nodes 0, 2 */
	const struct msg_tensor good = { .kind = TENSOR_ACTIVATION, .from = 1, .iteration = 1,
					 .index = 1, .n_routes = 1, .routes = &route };
	struct msg_tensor t;

	t = good, t.from = 0, t.routes = &bad;
	send_tensor(p, to, &t, body); /* the tensor is valid, but names another sender */
	t = good;
	send_tensor(p, to, &t, body - 4); /* a wrong size */
	send_tensor(p, to, &t, body * 2); /* the size of another format */
	send_tensor(p, to, &t, 0);
	t.index = 0;
	send_tensor(p, to, &t, body); /* these positions belong to other nodes */
	t.index = 2;
	send_tensor(p, to, &t, body);
	t.index = 60;
	send_tensor(p, to, &t, body);
	t.index = 5, t.kind = TENSOR_ACTIVATION;
	send_tensor(p, to, &t, body); /* a position in the backward pass */
	t = good, t.n_routes = 0;
	send_tensor(p, to, &t, body);
	t = good, t.kind = TENSOR_STATE;
	send_tensor(p, to, &t, body); /* weights that nobody has requested */
	bad = route;
	bad.n_hops = 1;
	t = good, t.routes = &bad;
	send_tensor(p, to, &t, body);
	t = good, t.iteration = 0;
	send_tensor(p, to, &t, body); /* a past iteration: dropped, not refused */
	t = good, t.iteration = 9;
	send_tensor(p, to, &t, body); /* an early tensor: kept */
	t = good, t.kind = TENSOR_PART, t.attempt = 1, t.index = 0;
	/* This tensor is kept as early, and refused when its reduction starts. */
	send_tensor(p, to, &t, body);
}

/* Runs one turn of the stranger and of the cluster. Returns true if the cluster refuses the
 * stranger. */
static bool turn(struct cluster *c, struct post *p)
{
	struct post_message m;
	bool is_refused = false;

	post_tick(p, clock_monotonic_us());
	while (post_receive(p, clock_monotonic_us(), &m) == 0)
		is_refused = is_refused ||
			     (m.kind == POST_REFUSED && m.reason == LINK_NOT_ADMITTED);
	cluster_turns(c, 1);
	return is_refused;
}

static void check_nonsense(enum tensor_format wire)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct keys_list *admitted;
	struct post_peer_info info;
	struct error err = { "" };
	struct post_options o = { 0 };
	struct keys_public key;
	uint64_t refused;
	bool is_refused = false;
	post_peer_id to;
	struct post *p;

	c->options.wire = wire;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_turns(c, 150);
	refused = c->nodes[2].beat.refused;
	/* Node 1 is dead, and a thief connects with its key. */
	cluster_kill(c, 1);
	admitted = keys_list_new();
	o.identity = c->nodes[1].identity;
	o.admitted = admitted;
	assert_int_equal(post_open(&p, &o, &err), 0);
	key = *keys_public_of(c->nodes[2].identity);
	assert_int_equal(post_dial(p, c->nodes[2].hello.address, &key, &to, &err), 0);
	cluster_start(c);
	send_nonsense(c, p, to);
	for (int i = 0; i < 400; i++)
		is_refused = turn(c, p) || is_refused;
	assert_false(is_refused);
	assert_int_equal(post_peer(p, to, &info), 0);
	assert_int_equal(info.retained_bytes, 0);
	assert_int_equal(c->nodes[2].beat.refused - refused, 11);
	assert_int_equal(c->nodes[2].troubles, 0);
	/* After node 1 is expelled, its session ends and no new session is accepted. */
	cluster_expel(c, 1);
	cluster_turns(c, 50);
	send_nonsense(c, p, to);
	for (int i = 0; i < 4000 && !is_refused; i++)
		is_refused = turn(c, p);
	assert_true(is_refused);
	for (int i = 0; i < 400; i++)
		turn(c, p);
	assert_int_equal(post_peer(p, to, &info), 0);
	assert_true(info.retained_bytes > 0);
	post_close(p);
	keys_list_free(admitted);
	cluster_unmake(c);
}

TEST(test_invalid_messages_are_refused)
{
	check_nonsense(FORMAT_FP32);
}

TEST(test_invalid_messages_are_refused_in_other_formats)
{
	check_nonsense(FORMAT_BF16);
	check_nonsense(FORMAT_Q6);
}

/* If a peer's address is invalid, the agent reports a stuck link. The agent must not report an
 * error at every attempt to send. Otherwise the controller could exclude the agent for the
 * errors, although only the peer's address is wrong. */
TEST(test_an_invalid_address)
{
	struct cluster *c = cluster_of_six();
	struct msg_peer peer = { .node = 2, .address = "nonsense" };
	struct msg m = { .type = MSG_PEERS, .u.peers = { 1, &peer } };

	memcpy(peer.key, keys_public_of(c->nodes[2].identity)->bytes, sizeof(peer.key));
	cluster_send(c, 0, &m);
	cluster_start(c); /* microbatches of nodes 0, 2 */
	for (int i = 0; i < 4000 && c->nodes[0].beat.n_stuck == 0; i++)
		cluster_turns(c, 1);
	assert_int_equal(c->nodes[0].beat.n_stuck, 1);
	assert_int_equal(c->nodes[0].troubles, 0);
	cluster_unmake(c);
}

/* A thief: a node that has stolen the key of the dead node 1, and is connected to node 2. */
struct thief {
	struct cluster *c;
	struct keys_list *admitted;
	struct post *p;
	post_peer_id to;
	float *body; /* a tensor's numbers, all equal */
	size_t floats;
};

static void thief_begin(struct thief *t, float value)
{
	struct post_options o = { 0 };
	struct error err = { "" };
	struct keys_public key;

	*t = (struct thief){ .c = cluster_make(6, cluster_six) };
	cluster_gather(t->c);
	cluster_route_six(t->c);
	cluster_turns(t->c, 150);
	cluster_kill(t->c, 1);
	t->admitted = keys_list_new();
	o.identity = t->c->nodes[1].identity;
	o.admitted = t->admitted;
	assert_int_equal(post_open(&t->p, &o, &err), 0);
	key = *keys_public_of(t->c->nodes[2].identity);
	assert_int_equal(post_dial(t->p, t->c->nodes[2].hello.address, &key, &t->to, &err), 0);
	t->floats = 1 << 18;
	t->body = malloc(t->floats * sizeof(*t->body));
	assert_non_null(t->body);
	for (size_t i = 0; i < t->floats; i++)
		t->body[i] = value;
	cluster_start(t->c);
	for (int i = 0; i < 200; i++)
		turn(t->c, t->p);
}

static void thief_sends(struct thief *t, const struct msg_tensor *head, size_t bytes)
{
	struct msg m = { .type = MSG_TENSOR, .u.tensor = *head };
	char text[512];
	long n = msg_encode(&m, text, sizeof(text));
	struct post_part parts[2] = { { text, (size_t)n }, { t->body, bytes } };

	assert_int_equal(post_send(t->p, t->to, parts, 2, POST_RELIABLE, clock_monotonic_us()), 0);
	if (early_count(t->c->nodes[2].agent->modules.early) % 8 == 0)
		turn(t->c, t->p);
}

/* Waits until all messages of the thief have arrived. */
static void thief_waits(struct thief *t)
{
	for (int i = 0; i < 20000 && !post_idle(t->p, 0); i++)
		turn(t->c, t->p);
	assert_true(post_idle(t->p, 0));
	for (int i = 0; i < 200; i++)
		turn(t->c, t->p);
}

static void thief_ends(struct thief *t)
{
	post_close(t->p);
	keys_list_free(t->admitted);
	free(t->body);
	cluster_unmake(t->c);
}

TEST(test_one_report_an_iteration)
{
	static const uint16_t replicas[] = { 2, 3 };
	const struct msg_tensor part = { .kind = TENSOR_PART,
					 .from = 1,
					 .stage = cluster_six[2],
					 .iteration = 1,
					 .attempt = 1 };
	struct msg m = { .type = MSG_REDUCE };
	struct thief t;

	thief_begin(&t, 1e30f);
	m.u.reduce = (struct msg_reduce){ .iteration = 1,
					  .attempt = 1,
					  .stage = cluster_six[2],
					  .n_nodes = 2,
					  .nodes = replicas };
	cluster_send(t.c, 2, &m);
	cluster_turns(t.c, 20);
	for (int i = 0; i < 300; i++)
		thief_sends(&t, &part, sizeof(float));
	thief_waits(&t);
	assert_int_equal(t.c->nodes[2].troubles, 1);
	assert_non_null(strstr(t.c->nodes[2].trouble, "n01 sent a gradient"));
	assert_true(misuse_reported(&t.c->nodes[2].agent->modules.misuse, 1));
	assert_false(misuse_reported(&t.c->nodes[2].agent->modules.misuse, 0));
	thief_ends(&t);
}

/* Returns the second input of a route in an evaluation, sent by node 1. */
static struct msg_tensor evaluation_input(const struct route *route)
{
	return (struct msg_tensor){ .kind = TENSOR_ACTIVATION,
				    .evaluate = 1,
				    .from = 1,
				    .index = 1,
				    .n_routes = 1,
				    .routes = route };
}

/* Node 1 sends inputs of evaluations that the controller has not ordered. Node 2 keeps these
 * inputs up to the share of node 1, and computes no evaluation. */
TEST(test_evaluations_without_an_order)
{
	struct route route = { .attempt = 1, .n_hops = 2, .nodes = { 1, 2 },
			       .stages = { cluster_six[1], cluster_six[2] } };
	const struct msg_tensor input = evaluation_input(&route);
	const struct agent *a;
	struct thief t;

	thief_begin(&t, 0);
	a = t.c->nodes[2].agent;
	for (route.microbatch = 0; route.microbatch < MSG_MICROBATCHES; route.microbatch++)
		thief_sends(&t, &input,
			    links_chain_bytes(&a->modules.links, TENSOR_ACTIVATION, false));
	thief_waits(&t);
	assert_true(early_bytes_of(a->modules.early, 1) <= early_share_of(a->modules.early));
	assert_true(early_count(a->modules.early) < MSG_MICROBATCHES);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 0);
	assert_int_equal(t.c->nodes[2].troubles, 1);
	assert_non_null(strstr(t.c->nodes[2].trouble, "n01 sent too many unsolicited messages"));
	thief_ends(&t);
}

/* The order to evaluate names the format. If an input arrives before the order, its correct size
 * is unknown, so an input of any size is kept. */
TEST(test_evaluations_in_a_format_that_is_not_known_yet)
{
	struct route route = { .attempt = 1, .n_hops = 2, .nodes = { 1, 2 },
			       .stages = { cluster_six[1], cluster_six[2] } };
	const struct msg_tensor input = evaluation_input(&route);
	const struct agent *a;
	struct thief t;

	thief_begin(&t, 0);
	a = t.c->nodes[2].agent;
	thief_sends(&t, &input, links_chain_bytes(&a->modules.links, TENSOR_ACTIVATION, false) / 4);
	thief_waits(&t);
	assert_int_equal(early_count(a->modules.early), 1);
	assert_int_equal(a->tell.tally.refused, 0);
	thief_ends(&t);
}

/* A tensor is refused if its iteration number exceeds the number of the newest announced commit by
 * more than two. Other early tensors of a peer are kept up to the peer's share, which leaves room
 * for other peers. */
TEST(test_shares_of_early_tensors)
{
	struct msg_tensor part = {
		.kind = TENSOR_PART, .from = 1, .stage = cluster_six[2], .attempt = 9
	};
	const struct agent *a;
	struct thief t;
	uint64_t refused;
	size_t n_early;

	thief_begin(&t, 0);
	a = t.c->nodes[2].agent;
	t.c->nodes[2].agent->held.announced = 5;
	refused = a->tell.tally.refused;
	n_early = early_count(a->modules.early);
	part.iteration = UINT64_C(1) << 62;
	thief_sends(&t, &part, 4);
	part.iteration = 8;
	thief_sends(&t, &part, 4);
	thief_waits(&t);
	assert_int_equal(a->tell.tally.refused - refused, 2);
	assert_int_equal(early_count(a->modules.early), n_early);
	part.iteration = 7;
	for (int i = 0; i < 40; i++)
		thief_sends(&t, &part, t.floats * sizeof(float));
	thief_waits(&t);
	assert_true(early_count(a->modules.early) > n_early);
	assert_true(early_bytes_of(a->modules.early, 1) <= early_share_of(a->modules.early));
	assert_true(early_bytes(a->modules.early) < 40 * t.floats * sizeof(float));
	assert_true(a->tell.tally.refused - refused > 2);
	/* When the key is expelled, all early tensors of the peer are dropped. */
	cluster_expel(t.c, 1);
	for (int i = 0; i < 400 && a->peers.list[1].known; i++)
		turn(t.c, t.p);
	assert_int_equal(early_bytes_of(a->modules.early, 1), 0);
	thief_ends(&t);
}
