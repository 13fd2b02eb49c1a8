/* sums_test.c - if links are measured, the orders to sum are sent together with START. After a
 * reroute these orders are void. */

#include "base/tests/test.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/reroute.h"
#include "controller/iteration/sums.h"
#include "controller/loop.h"
#include "controller/members/member.h"
#include "controller/network/link_table.h"
#include "controller/tests/under_way.h"

/* Starts an iteration as begin_iteration does, but with measured links. */
static struct controller *order_ahead(void **state)
{
	struct controller *c = *state;

	c->members.links = link_table_new(NODES);
	assert_non_null(c->members.links);
	sums_order_ahead(&c->iteration);
	return c;
}

static uint32_t count_in_sums(const struct controller *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->members.n; i++)
		n += c->members.list[i].sum.counts;
	return n;
}

/* Runs all microbatches forward and backward, except the last task of microbatch `but`. */
static void do_all(struct controller *c, uint32_t but)
{
	for (uint32_t i = 0; i < N; i++) {
		const uint16_t *nodes = c->iteration.routes.microbatches[i].route.nodes;

		under_way_does(c, nodes[0], i, TASK_FORWARD, FIRST, 0);
		under_way_does(c, nodes[1], i, TASK_FORWARD, FIRST, 0);
		under_way_does(c, nodes[0], i, TASK_LOSS, FIRST, 0);
		under_way_does(c, nodes[1], i, TASK_BACKWARD, FIRST, 0);
		if (i != but)
			under_way_does(c, nodes[0], i, TASK_BACKWARD, FIRST, 0);
	}
}

static void tell_sum(struct controller *c, uint16_t node, uint32_t attempt)
{
	uint64_t slices[DATA] = { 1, 2, 3 };
	struct msg_reduced r = { .iteration = 1,
				 .attempt = attempt,
				 .stage = node >= DATA,
				 .sum_squares = 1,
				 .n_slices = DATA,
				 .slices = slices };

	iteration_reduced(&c->iteration, &c->members.list[node], &r);
	loop_act(&c->iteration);
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

FIXTURE_TEST(without_measured_links_sums_wait)
{
	struct controller *c = *state;

	sums_order_ahead(&c->iteration);
	assert_int_equal(c->iteration.summing[0] + c->iteration.summing[1], 0);
	do_all(c, N);
	assert_int_equal(c->run.phase, PHASE_REDUCING);
	assert_int_equal(c->iteration.summing[0], DATA);
	assert_int_equal(c->iteration.summing[1], DATA);
}

/* All stages except one report their sums before the last gradient is counted. The controller does
 * not order these sums again. */
FIXTURE_TEST(early_sums_are_committed)
{
	struct controller *c = order_ahead(state);
	uint32_t attempt = c->iteration.reduce_attempt;
	uint16_t last = c->iteration.routes.microbatches[N - 1].route.nodes[0];

	assert_int_equal(count_in_sums(c), NODES);
	do_all(c, N - 1);
	for (uint16_t i = 0; i < NODES; i++)
		if (i != last)
			tell_sum(c, i, attempt);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	under_way_does(c, last, N - 1, TASK_BACKWARD, FIRST, 0);
	assert_int_equal(c->run.phase, PHASE_REDUCING);
	assert_int_equal(c->iteration.reduce_attempt, attempt);
	assert_int_equal(c->run.committed, 0);
	tell_sum(c, last, attempt);
	assert_int_equal(c->run.committed, 1);
}

/* A node reports its sum before all its counts. The controller excludes this node. */
FIXTURE_TEST(a_sum_without_a_gradient_excludes_the_node)
{
	struct controller *c = order_ahead(state);
	uint16_t last = c->iteration.routes.microbatches[N - 1].route.nodes[0];

	do_all(c, N - 1);
	tell_sum(c, last, c->iteration.reduce_attempt);
	assert_false(member_is_replica(&c->members.list[last]));
	assert_int_equal(c->iteration.summing[0], 0);
	assert_int_equal(c->run.committed, 0);
}

FIXTURE_TEST(new_routes_make_the_sums_void)
{
	struct controller *c = order_ahead(state);
	uint32_t attempt = c->iteration.reduce_attempt;
	uint16_t data = c->iteration.routes.microbatches[0].route.nodes[0],
		 next = c->iteration.routes.microbatches[0].route.nodes[1];
	uint16_t idle = next == DATA ? DATA + 1 : DATA;

	assert_true(reroute_around(&c->iteration, &c->members.list[data], &c->members.list[next]) >
		    0);
	assert_int_equal(c->iteration.summing[0] + c->iteration.summing[1], 0);
	assert_int_equal(count_in_sums(c), 0);
	assert_true(c->iteration.reduce_attempt > attempt);
	tell_sum(c, idle, attempt); /* the node sent this report before the reroute arrived */
	assert_false(c->members.list[idle].sum.is_done);
	assert_true(member_is_replica(&c->members.list[idle]));
}
