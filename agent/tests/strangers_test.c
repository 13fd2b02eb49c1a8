/* Whole agents, and what they refuse of others or must not be led to by them: nonsense under an admitted
 * key, a key that was expelled, an address that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "agent/tests/cluster.h"
#include "base/clock.h"

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
	size_t floats = stage_activation(c->twins[0]), size = c->bf16 ? sizeof(uint16_t) : sizeof(float);
	size_t body = floats * size;
	struct msg_route route, bad;
	const struct msg_tensor good = { .kind = TENSOR_ACTIVATION, .from = 1, .iteration = 1,
					 .index = 1, .n_routes = 1, .routes = &route };
	struct msg_tensor t;

	route_write(&route, &c->routes[3]); /* 1 -> 2 -> 5 */
	route_write(&bad, &c->routes[0]); /* 0 -> 2 */
	t = good, t.from = 0, t.routes = &bad;
	send_tensor(p, to, &t, body); /* in another's name, all else as it should be */
	t = good;
	send_tensor(p, to, &t, body - 4); /* a size */
	send_tensor(p, to, &t, floats * (6 - size)); /* that of the other kind of run */
	send_tensor(p, to, &t, 0);
	t.index = 0;
	send_tensor(p, to, &t, body); /* positions that are not node 2's */
	t.index = 2;
	send_tensor(p, to, &t, body);
	t.index = 60;
	send_tensor(p, to, &t, body);
	t.index = 5, t.kind = TENSOR_ACTIVATION;
	send_tensor(p, to, &t, body); /* a gradient's place */
	t = good, t.n_routes = 0;
	send_tensor(p, to, &t, body);
	t = good, t.kind = TENSOR_STATE;
	send_tensor(p, to, &t, body); /* nobody asked */
	bad = route;
	bad.n_hops = 1;
	t = good, t.routes = &bad;
	send_tensor(p, to, &t, body);
	t = good, t.iteration = 0;
	send_tensor(p, to, &t, body); /* old: dropped, not refused */
	t = good, t.iteration = 9;
	send_tensor(p, to, &t, body); /* early: kept */
	t = good, t.kind = TENSOR_PART, t.attempt = 1, t.index = 0;
	send_tensor(p, to, &t, body); /* kept, and refused when its reduction comes */
}

/* Everybody's, the stranger's too. Whether it is told that its key is not let in. */
static bool turn(struct cluster *c, struct post *p)
{
	struct post_message m;
	bool told_no = false;

	post_tick(p, clock_monotonic_us());
	while (post_receive(p, clock_monotonic_us(), &m) == 0)
		told_no = told_no || (m.kind == POST_REFUSED && m.reason == LINK_NOT_ADMITTED);
	cluster_turns(c, 1);
	return told_no;
}

static void check_nonsense(bool bf16)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct keys_list *admitted;
	struct post_peer_info info;
	struct error err = { "" };
	struct post_options o = { 0 };
	struct keys_public key;
	uint64_t refused;
	bool told_no = false;
	post_peer_id to;
	struct post *p;

	c->bf16 = bf16;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_turns(c, 150);
	refused = c->nodes[2].beat.refused;
	/* Node 1 is dead and somebody has its key. */
	cluster_kill(c, 1);
	assert_int_equal(keys_list_new(&admitted), 0);
	o.identity = c->nodes[1].identity;
	o.admitted = admitted;
	assert_int_equal(post_open(&p, &o, &err), 0);
	key = *keys_public_of(c->nodes[2].identity);
	assert_int_equal(post_dial(p, c->nodes[2].hello.address, &key, &to, &err), 0);
	cluster_start(c);
	send_nonsense(c, p, to);
	for (int i = 0; i < 400; i++)
		told_no = turn(c, p) || told_no;
	assert_false(told_no);
	assert_int_equal(post_peer(p, to, &info), 0);
	assert_int_equal(info.retained_bytes, 0);
	assert_int_equal(c->nodes[2].beat.refused - refused, 11);
	assert_int_equal(c->nodes[2].troubles, 0);
	/* It is expelled: its session ends, and no other comes about. */
	cluster_disown(c, 1);
	cluster_turns(c, 50);
	send_nonsense(c, p, to);
	for (int i = 0; i < 4000 && !told_no; i++)
		told_no = turn(c, p);
	assert_true(told_no);
	for (int i = 0; i < 400; i++)
		turn(c, p);
	assert_int_equal(post_peer(p, to, &info), 0);
	assert_true(info.retained_bytes > 0);
	post_close(p);
	keys_list_free(admitted);
	cluster_unmake(c);
}

static void test_nonsense_is_refused(void **state)
{
	(void)state;
	check_nonsense(false);
}

static void test_nonsense_is_refused_in_bf16(void **state)
{
	(void)state;
	check_nonsense(true);
}

/* One agent's nonsense must not make the others talk so much that they are shut out. */
static void test_an_address_that_is_none(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct msg_peer peer = { .node = 2, .address = "nonsense" };
	struct msg m = { .type = MSG_PEERS, .u.peers = { 1, &peer } };

	(void)state;
	cluster_gather(c);
	cluster_route_six(c);
	memcpy(peer.key, keys_public_of(c->nodes[2].identity)->bytes, sizeof(peer.key));
	cluster_send(c, 0, &m);
	cluster_start(c); /* 0 -> 2 */
	for (int i = 0; i < 4000 && c->nodes[0].beat.n_stuck == 0; i++)
		cluster_turns(c, 1);
	assert_int_equal(c->nodes[0].beat.n_stuck, 1);
	assert_int_equal(c->nodes[0].troubles, 0);
	cluster_unmake(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nonsense_is_refused),
		cmocka_unit_test(test_nonsense_is_refused_in_bf16),
		cmocka_unit_test(test_an_address_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
