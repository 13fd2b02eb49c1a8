/* awaited_stage_test.c - a stage's last replica is silent and returns within the iteration. Tests
 * which work continues, which work restarts, and how long the controller waits. */

#include <stdlib.h>

#include "base/tests/test.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/recover.h"
#include "controller/loop.h"
#include "controller/members/lifecycle.h"
#include "controller/tests/under_way.h"

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* The run waits for a stage that has lost its last replica. Meanwhile data nodes report the end
 * of tasks. The data nodes do not repeat these reports, so the controller must have counted the
 * reports. */
FIXTURE_TEST(tasks_that_ended_while_a_stage_was_awaited_are_summed)
{
	struct controller *c = *state;
	uint16_t last = 3;

	for (uint16_t node = 4; node < NODES; node++)
		c->members.list[node].state = MEMBER_JOINING;
	for (int node = 0; node < NODES; node++)
		c->members.list[node].weights.stage = (uint8_t)(node / DATA);
	for (uint32_t i = 0; i < N; i++) {
		uint16_t data = c->iteration.routes.microbatches[i].route.nodes[0];

		c->iteration.routes.microbatches[i].route.nodes[1] = last;
		under_way_does(c, data, i, TASK_FORWARD, FIRST, 0.1);
		under_way_does(c, last, i, TASK_FORWARD, FIRST, 0.1);
		under_way_does(c, data, i, TASK_LOSS, FIRST, 0.02);
		under_way_does(c, last, i, TASK_BACKWARD, FIRST, 0.1);
	}
	member_apply(&c->run, &c->members.list[last], EVENT_LOST, "sleeps");
	loop_act(&c->iteration);
	for (uint32_t i = 0; i < N; i++)
		under_way_does(c, c->iteration.routes.microbatches[i].route.nodes[0], i,
			       TASK_BACKWARD, FIRST, 0.1);
	assert_int_equal(c->run.phase, PHASE_STALLED);
	c->members.list[last].beat.iteration = 1;
	c->members.list[last].beat.stage = 1;
	assert_true(iteration_readmit(&c->iteration, &c->members.list[last]));
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
}

/* n00 and n03 are the last replicas of their stages, and both count as dead. The controller drops a
 * report that n03 sends meanwhile. n03 does not repeat the report, so the iteration restarts when
 * both are back. */
FIXTURE_TEST(a_lost_report_restarts_the_iteration)
{
	struct controller *c = *state;

	for (int node = 0; node < NODES; node++) {
		c->members.list[node].weights.stage = (uint8_t)(node / DATA);
		c->members.list[node].state = node % DATA ? MEMBER_JOINING : MEMBER_LIVE;
		c->members.list[node].beat.iteration = 1;
	}
	for (uint32_t i = 0; i < N; i++) {
		c->iteration.routes.microbatches[i].route.nodes[0] = 0;
		c->iteration.routes.microbatches[i].route.nodes[1] = DATA;
	}
	c->members.list[DATA].beat.stage = 1;
	member_apply(&c->run, &c->members.list[0], EVENT_LOST, "sleeps");
	loop_act(&c->iteration);
	member_apply(&c->run, &c->members.list[DATA], EVENT_LOST, "sleeps");
	loop_act(&c->iteration);
	under_way_does(c, DATA, 0, TASK_FORWARD, FIRST, 0.1);
	assert_true(iteration_readmit(&c->iteration, &c->members.list[DATA]));
	assert_true(iteration_readmit(&c->iteration, &c->members.list[0]));
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	assert_true(c->iteration.redo);
}

/* The controller sent new routes to all other nodes while this node counted as dead. */
FIXTURE_TEST(a_returning_node_receives_the_new_routes)
{
	struct controller *c = *state;

	for (int node = 0; node < NODES; node++)
		c->members.list[node].weights.stage = (uint8_t)(node / DATA);
	for (uint16_t node = 4; node < NODES; node++)
		c->members.list[node].state = MEMBER_JOINING;
	for (uint32_t i = 0; i < N; i++)
		c->iteration.routes.microbatches[i].route.nodes[1] = DATA;
	member_apply(&c->run, &c->members.list[0], EVENT_LOST, "is gone");
	loop_act(&c->iteration);
	member_apply(&c->run, &c->members.list[DATA], EVENT_LOST, "sleeps");
	loop_act(&c->iteration);
	c->members.list[DATA].beat.iteration = 1;
	c->members.list[DATA].beat.stage = 1;
	c->iteration.progress.rerouted = false;
	assert_true(iteration_readmit(&c->iteration, &c->members.list[DATA]));
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	/* the controller has sent the changed routes again, because the node missed them */
	assert_true(c->iteration.progress.rerouted);
}

FIXTURE_TEST(a_larger_loss_makes_the_wait_longer)
{
	struct controller *c = *state;

	c->run.record.curves.iterations = calloc(1, sizeof(*c->run.record.curves.iterations));
	assert_non_null(c->run.record.curves.iterations);
	c->run.record.curves.iterations[0].real_s = 2;
	c->run.record.curves.n_iterations = 1;
	c->run.options.checkpoint_every = 50;
	c->run.committed = 102; /* going back to the checkpoint would lose only two iterations */
	assert_int_equal(recover_patience_us(&c->run), 5 * SECOND);
	c->run.committed = 112;
	assert_int_equal(recover_patience_us(&c->run), 12 * SECOND);
	c->run.committed = 149;
	assert_int_equal(recover_patience_us(&c->run), 30 * SECOND);
	/* Without a checkpoint, all iterations would have to be repeated */
	c->run.options.checkpoint_every = 0;
	c->run.committed = 100;
	assert_int_equal(recover_patience_us(&c->run), 30 * SECOND);
	c->run.record.curves.n_iterations = 0;
	assert_int_equal(recover_patience_us(&c->run), 5 * SECOND);
}
