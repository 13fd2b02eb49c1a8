/* reroute_test.c - rerouting within an iteration. A slow node does not cause a reroute. A node
 * may send a count before the reroute arrives. Slots must not wait in a circle. */

#include "base/tests/test.h"
#include "controller/iteration/drain.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/recover.h"
#include "controller/iteration/reroute.h"
#include "controller/loop.h"
#include "controller/members/lifecycle.h"
#include "controller/tests/under_way.h"
#include "controller/weights/copies.h"

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* ---- microbatches that move to another node ---- */

FIXTURE_TEST(a_slow_node_changes_the_next_plan_only)
{
	struct controller *c = *state;

	under_way_three_is_slow(c);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(c->iteration.routes.microbatches[i].route.attempt, FIRST);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_true(c->planning.wanted_id > 0);
	assert_true(c->run.cluster->nodes[3].forward_s > 0.5);
}

/* Moves a microbatch from n03 to another node, because of a cut link. If has_moved is false, the
 * microbatch is then marked as if it had not moved. */
static uint32_t take_from_three(struct controller *c, bool has_moved)
{
	uint32_t i = 0;
	uint16_t data;

	while (under_way_second_of(c, i) != 3)
		i++;
	data = c->iteration.routes.microbatches[i].route.nodes[0];
	under_way_does(c, data, i, TASK_FORWARD, FIRST, 0.1);
	assert_true(reroute_around(&c->iteration, &c->members.list[data], &c->members.list[3]) > 0);
	assert_true(under_way_second_of(c, i) != 3 && c->iteration.routes.microbatches[i].moved);
	c->iteration.routes.microbatches[i].moved = has_moved;
	return i;
}

/* The node from which the microbatch was taken had begun it, and now reports its count. */
static void a_count_crosses(struct controller *c, bool has_moved)
{
	under_way_does(c, 3, take_from_three(c, has_moved), TASK_BACKWARD, FIRST, 0.1);
}

FIXTURE_TEST(a_count_during_a_reroute_restarts_the_iteration)
{
	struct controller *c = *state;

	a_count_crosses(c, true);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	assert_true(c->iteration.redo);
	assert_true(c->run.first_attempt > FIRST + 1); /* reports of earlier attempts are void */
	assert_int_equal(c->members.list[3].state, MEMBER_LIVE);
}

/* A restarted iteration has not ended, so a pause or a step must wait for its end. */
FIXTURE_TEST(a_pause_waits_for_a_restarted_iteration)
{
	struct controller *c = *state;

	c->run.wanted.pause = c->run.wanted.step = true;
	a_count_crosses(c, true);
	loop_phase(c);
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	assert_true(c->run.wanted.step);
	c->run.wanted.step = false;
	loop_phase(c);
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	c->iteration.redo = false;
	loop_phase(c);
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_PAUSED);
}

FIXTURE_TEST(without_a_reroute_the_count_excludes_the_node)
{
	struct controller *c = *state;

	a_count_crosses(c, false);
	assert_int_equal(c->members.list[3].state, MEMBER_FAILED);
	assert_false(c->iteration.redo);
}

/* A stage is lost, and then a count crosses a reroute. The iteration has to restart, but not before
 * the stage is restored. */
FIXTURE_TEST(a_restart_waits_for_a_lost_stage)
{
	struct controller *c = *state;
	uint32_t i = take_from_three(c, true);

	c->run.phase = PHASE_STALLED;
	for (int node = 0; node < DATA; node++)
		c->members.list[node].state = MEMBER_JOINING;
	under_way_does(c, 3, i, TASK_BACKWARD, FIRST, 0.1);
	assert_int_equal(c->run.phase, PHASE_STALLED);
	assert_true(c->backups.stall.taken_over);
	for (int node = 0; node < DATA; node++)
		c->members.list[node].state = MEMBER_LIVE;
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	assert_true(c->iteration.redo);
}

/* A node hands its stage over in a pause. No iteration restarts, even if the run has just been
 * resumed and already has the number of the next iteration. */
FIXTURE_TEST(a_stage_taken_over_in_a_pause_starts_nothing)
{
	struct controller *c = *state;

	for (uint64_t committed = 0; committed < 2; committed++) {
		c->run.committed = committed;
		c->run.phase = PHASE_STALLED;
		c->backups.stall.in = PHASE_PAUSED;
		recover_turn(&c->iteration);
		loop_act(&c->iteration);
		assert_int_equal(c->run.phase, PHASE_PAUSED);
		assert_false(c->iteration.redo);
		assert_true(c->planning.wanted_id > 0);
		c->planning.wanted_id = 0;
	}
}

/* A paused run goes back to a checkpoint. The controller requests another plan, whose epoch
 * distinguishes the attempts, but begins no iteration before the operator orders a step. */
FIXTURE_TEST(a_pause_outlasts_a_return_to_a_checkpoint)
{
	struct controller *c = *state;

	c->run.wanted.pause = true;
	c->run.committed = 1; /* the first iteration has ended */
	c->run.phase = PHASE_STALLED;
	c->backups.stall.in = PHASE_PAUSED;
	c->members.list[0].state = c->members.list[1].state = c->members.list[2].state =
		MEMBER_JOINING;
	request_restart(&c->run.requests, "restored from a checkpoint");
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_STALLED);
	c->members.list[0].state = c->members.list[1].state = c->members.list[2].state =
		MEMBER_LIVE;
	recover_turn(&c->iteration);
	for (int turn = 0; turn < 2; turn++) {
		loop_act(&c->iteration);
		loop_phase(c);
	}
	assert_int_equal(c->run.phase, PHASE_PAUSED);
	assert_true(c->iteration.redo);
}

/* ---- slots that would wait in a circle ---- */

/* Leaves two unfinished microbatches at the given node: m0 of n00, which is on its way to n03, and
 * a microbatch of n01, which is on its way back. */
static struct microbatch *two_are_left(struct controller *c, uint16_t to)
{
	struct microbatch *other = NULL;

	for (uint32_t i = 0; i < N; i++) {
		struct microbatch *m = &c->iteration.routes.microbatches[i];

		if (i > 0 && !other && m->route.nodes[0] == 1)
			other = m;
		else if (i > 0)
			m->done = true;
		if (m->done) { /* the surviving nodes have done the microbatch */
			m->route.nodes[0] = 0;
			m->route.nodes[1] = 4;
		}
	}
	assert_non_null(other);
	c->iteration.routes.microbatches[0].route.nodes[0] = 0;
	c->iteration.routes.microbatches[0].route.nodes[1] = 3;
	other->route.nodes[1] = to;
	under_way_does(c, 0, 0, TASK_FORWARD, FIRST, 0.1);
	under_way_does(c, 1, other->route.microbatch, TASK_FORWARD, FIRST, 0.1);
	return other;
}

/* n00 and n03 have one slot each. m0 holds the slot of n00 and waits for the slot of n03, which
 * another microbatch holds. If that microbatch's data node dies, n00 is the only substitute, so
 * the two microbatches would wait for each other. */
static struct microbatch *nearly_a_circle(struct controller *c)
{
	struct microbatch *other = two_are_left(c, 3);

	under_way_does(c, 3, other->route.microbatch, TASK_FORWARD, FIRST, 0.1);
	c->run.cluster->nodes[0].memory = c->run.cluster->nodes[3].memory = 1;
	c->members.list[2].state = MEMBER_JOINING;
	for (uint16_t node = 4; node < NODES; node++)
		c->members.list[node].state = MEMBER_JOINING;
	return other;
}

FIXTURE_TEST(a_microbatch_in_a_deadlock_restarts)
{
	struct controller *c = *state;
	struct microbatch *other = nearly_a_circle(c);

	member_apply(&c->run, &c->members.list[1], EVENT_LOST, "is gone");
	loop_act(&c->iteration);
	assert_int_equal(other->route.nodes[0], 0);
	assert_true(other->route.attempt > FIRST);
	assert_int_equal(other->route.since, other->route.attempt);
	assert_int_equal(other->passed, 0);
}

/* The microbatch's gradient is on its way back, so its slot at n03 does not wait for the new data
 * node. */
FIXTURE_TEST(a_microbatch_with_its_loss_continues)
{
	struct controller *c = *state;
	struct microbatch *other = nearly_a_circle(c);

	under_way_does(c, 1, other->route.microbatch, TASK_LOSS, FIRST, 0.1);
	under_way_does(c, 3, other->route.microbatch, TASK_BACKWARD, FIRST, 0.1);
	member_apply(&c->run, &c->members.list[1], EVENT_LOST, "is gone");
	loop_act(&c->iteration);
	assert_int_equal(other->route.nodes[0], 0);
	assert_true(other->route.attempt > FIRST);
	assert_int_equal(other->route.since, FIRST);
}

/* ---- draining and dead nodes ---- */

static bool visits(const struct controller *c, uint16_t node)
{
	for (uint32_t i = 0; i < N; i++)
		if (under_way_second_of(c, i) == node)
			return true;
	return false;
}

/* Two replicas drain, and the third replica dies. One of the draining replicas takes over all tasks
 * of the dead replica. */
FIXTURE_TEST(a_draining_replica_replaces_the_last_one_that_stays)
{
	struct controller *c = *state;
	struct member *list = c->members.list;

	member_drain(&c->members, &list[4], DRAIN_EXCLUDED);
	member_drain(&c->members, &list[5], DRAIN_EXCLUDED);
	member_apply(&c->run, &list[3], EVENT_LOST, "is gone");
	iteration_lost(&c->iteration, &list[3]);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_false(visits(c, 3));
	assert_int_equal(list[4].move.drain, DRAIN_WANTED);
	assert_false(list[4].is_marked);
	assert_int_equal(list[5].move.drain, DRAIN_EXCLUDED);
}

/* Another node has already been assigned the dead node's stage, but routes still visit the dead
 * node. */
FIXTURE_TEST(a_dead_node_without_a_place_is_replaced)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[3];

	member_apply(&c->run, m, EVENT_LOST, "is gone");
	c->run.cluster->nodes[3].stage = -1;
	assert_true(reroute_without(&c->iteration, m) > 0);
	assert_false(visits(c, 3));
}

/* A draining node has the only standby copy of a stage. This node stays until another node has a
 * copy. */
FIXTURE_TEST(a_keeper_of_the_only_copy_drains_after_another_copy_is_whole)
{
	struct controller *c = *state;
	struct member *list = c->members.list, *keeper = &list[0], *other = &list[1];

	list[4].state = list[5].state = MEMBER_DEAD; /* stage 1 has one replica left, n03 */
	keeper->copy.stage = 1;
	copies_complete(keeper, c->run.committed, 0);
	member_drain(&c->members, keeper, DRAIN_WANTED);
	drain_turn(&c->iteration);
	assert_int_equal(keeper->move.drain, DRAIN_WANTED);
	assert_true(copies_keep(&c->members, other, 1, &list[3]) || other->copy.stage == 1);
	c->run.now_us += 10 * SECOND;
	drain_turn(&c->iteration);
	assert_int_equal(keeper->move.drain, DRAIN_WANTED);
	copies_complete(other, c->run.committed, 0);
	drain_turn(&c->iteration);
	assert_int_equal(keeper->move.drain, DRAIN_EXCLUDED);
}
