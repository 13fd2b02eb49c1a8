/* The last of a stage sleeps, and is back within the iteration: what goes on, what begins anew, how long it is
 * waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "controller/iteration/iteration.h"
#include "controller/loop.h"
#include "controller/members/node_state.h"
#include "controller/tests/under_way.h"
#include "controller/weights/recover.h"

/* What others ended while the stage was awaited was told, and nothing more will be. */
static void what_ended_meanwhile_is_summed(void **state)
{
	struct controller *c = *state;
	uint16_t last = 3;

	for (uint16_t node = 4; node < NODES; node++)
		c->members[node].replica = false;
	for (int node = 0; node < NODES; node++)
		c->members[node].held_stage = (uint8_t)(node / DATA);
	for (uint32_t i = 0; i < N; i++) {
		uint16_t data = c->routes.microbatches[i].nodes[0];

		c->routes.microbatches[i].nodes[1] = last;
		under_way_does(c, data, i, TASK_FORWARD, FIRST, 0.1);
		under_way_does(c, last, i, TASK_FORWARD, FIRST, 0.1);
		under_way_does(c, data, i, TASK_LOSS, FIRST, 0.02);
		under_way_does(c, last, i, TASK_BACKWARD, FIRST, 0.1);
	}
	members_gone(c, &c->members[last], "sleeps");
	loop_act(c);
	for (uint32_t i = 0; i < N; i++)
		under_way_does(c, c->routes.microbatches[i].nodes[0], i, TASK_BACKWARD, FIRST, 0.1);
	assert_int_equal(c->phase, PHASE_STALLED);
	c->members[last].beat.iteration = 1;
	c->members[last].beat.stage = 1;
	assert_true(iteration_resumes(c, &c->members[last]));
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
}

/* Each stage waits for its last. One told something when it passed for dead: nobody will know what. */
static void what_was_told_to_nobody_begins_anew(void **state)
{
	struct controller *c = *state;

	for (int node = 0; node < NODES; node++) {
		c->members[node].held_stage = (uint8_t)(node / DATA);
		c->members[node].replica = node % DATA == 0;
		c->members[node].beat.iteration = 1;
	}
	for (uint32_t i = 0; i < N; i++) {
		c->routes.microbatches[i].nodes[0] = 0;
		c->routes.microbatches[i].nodes[1] = DATA;
	}
	c->members[DATA].beat.stage = 1;
	members_gone(c, &c->members[0], "sleeps");
	loop_act(c);
	members_gone(c, &c->members[DATA], "sleeps");
	loop_act(c);
	under_way_does(c, DATA, 0, TASK_FORWARD, FIRST, 0.1);
	assert_true(iteration_resumes(c, &c->members[DATA]));
	assert_true(iteration_resumes(c, &c->members[0]));
	recover_turn(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->redo);
}

/* It passed for dead when the others were told of other ways. */
static void who_is_back_hears_of_other_ways(void **state)
{
	struct controller *c = *state;

	for (int node = 0; node < NODES; node++)
		c->members[node].held_stage = (uint8_t)(node / DATA);
	for (uint16_t node = 4; node < NODES; node++)
		c->members[node].replica = false;
	for (uint32_t i = 0; i < N; i++)
		c->routes.microbatches[i].nodes[1] = DATA;
	members_gone(c, &c->members[0], "is gone");
	loop_act(c);
	members_gone(c, &c->members[DATA], "sleeps");
	loop_act(c);
	c->members[DATA].beat.iteration = 1;
	c->members[DATA].beat.stage = 1;
	c->progress.rerouted = false;
	assert_true(iteration_resumes(c, &c->members[DATA]));
	assert_int_equal(c->phase, PHASE_COMPUTING);
	assert_true(c->progress.rerouted); /* said with the order */
}

static void the_more_is_lost_the_longer_a_sleeper_is_awaited(void **state)
{
	struct controller *c = *state;

	c->curves.history = calloc(1, sizeof(*c->curves.history));
	assert_non_null(c->curves.history);
	c->curves.history[0].real_s = 2;
	c->curves.n_history = 1;
	c->options.checkpoint_every = 50;
	c->committed = 102; /* two iterations are little */
	assert_int_equal(recover_patience_us(c), 5 * SECOND);
	c->committed = 112;
	assert_int_equal(recover_patience_us(c), 12 * SECOND);
	c->committed = 149;
	assert_int_equal(recover_patience_us(c), 30 * SECOND);
	c->options.checkpoint_every = 0; /* all would be lost */
	c->committed = 100;
	assert_int_equal(recover_patience_us(c), 30 * SECOND);
	c->curves.n_history = 0;
	assert_int_equal(recover_patience_us(c), 5 * SECOND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, under_way_begin, under_way_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_ended_meanwhile_is_summed),
		TEST(what_was_told_to_nobody_begins_anew),
		TEST(who_is_back_hears_of_other_ways),
		TEST(the_more_is_lost_the_longer_a_sleeper_is_awaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
