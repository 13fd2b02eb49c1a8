/* requests_test.c - which requests the controller's parts make, and in which order the loop carries
 * them out. */

#include "base/tests/test.h"
#include "controller/loop.h"
#include "controller/members/lifecycle.h"
#include "controller/tests/under_way.h"

TEST(each_node_is_lost_once_and_in_order)
{
	struct requests r = { .n_lost = 0 };

	assert_false(requests_any(&r));
	request_lost(&r, 4);
	request_lost(&r, 1);
	request_lost(&r, 4);
	assert_true(requests_any(&r));
	assert_int_equal(requests_next_lost(&r), 4);
	assert_int_equal(requests_next_lost(&r), 1);
	assert_int_equal(requests_next_lost(&r), -1);
	assert_false(requests_any(&r));
}

TEST(the_first_reason_for_a_restart_counts)
{
	struct requests r = { .n_lost = 0 };

	request_restart(&r, "first");
	request_restart(&r, "second");
	assert_true(requests_any(&r));
	assert_string_equal(r.restart_reason, "first");
}

/* Returns true if any microbatch's route visits the node. */
static bool any_route_visits(const struct controller *c, uint16_t node)
{
	for (uint32_t i = 0; i < c->iteration.routes.n; i++)
		if (routes_hop(&c->iteration.routes.microbatches[i], node) >= 0)
			return true;
	return false;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

FIXTURE_TEST(a_lost_node_stays_on_its_routes_until_the_loop_acts)
{
	struct controller *c = *state;

	member_apply(&c->run, &c->members.list[4], EVENT_LOST, "is gone");
	assert_false(member_is_replica(&c->members.list[4]));
	assert_int_equal(c->run.requests.n_lost, 1);
	assert_true(any_route_visits(c, 4));
	assert_int_equal(c->planning.wanted_id, 0);
	loop_act(&c->iteration);
	assert_false(requests_any(&c->run.requests));
	assert_false(any_route_visits(c, 4));
	assert_int_not_equal(c->planning.wanted_id, 0);
}

/* If the loop restarted the iteration before it handled the loss, the iteration would not wait for
 * the lost stage. */
FIXTURE_TEST(a_lost_stage_precedes_a_restart)
{
	struct controller *c = *state;

	request_restart(&c->run.requests, "a test");
	for (int i = 3; i < NODES; i++)
		member_apply(&c->run, &c->members.list[i], EVENT_LOST, "is gone");
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_STALLED);
	assert_int_equal(c->backups.stall.in, PHASE_COMPUTING);
	assert_true(c->backups.stall.taken_over);
	assert_true(c->iteration.redo); /* the iteration restarts once the stage is restored */
}

FIXTURE_TEST(a_restart_takes_the_remaining_requests)
{
	struct controller *c = *state;
	uint32_t first = c->run.first_attempt;

	member_apply(&c->run, &c->members.list[4], EVENT_LOST, "is gone");
	request_restart(&c->run.requests, "a test");
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	assert_true(c->iteration.redo);
	assert_true(c->run.first_attempt > first);
}

/* While tasks run, there are no sums to compare or to restart, so both requests are dropped. */
FIXTURE_TEST(sums_are_compared_only_while_summing)
{
	struct controller *c = *state;

	c->run.requests.look_at_sums = c->run.requests.restart_sums = true;
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_int_equal(c->run.committed, 0);
	assert_false(requests_any(&c->run.requests));
}

FIXTURE_TEST(a_finished_run_ignores_requests)
{
	struct controller *c = *state;

	for (int i = 3; i < NODES; i++)
		member_apply(&c->run, &c->members.list[i], EVENT_LOST, "is gone");
	c->run.phase = PHASE_FINISHED;
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_FINISHED);
	assert_false(requests_any(&c->run.requests));
}
