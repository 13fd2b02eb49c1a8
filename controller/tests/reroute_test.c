/* Other ways within an iteration: what goes around a slow node, a count that crosses such a move, and slots that
 * would wait in a circle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "controller/iteration/iteration.h"
#include "controller/loop.h"
#include "controller/members/node_state.h"
#include "controller/tests/under_way.h"
#include "controller/weights/recover.h"

/* ---- moving ---- */

static void what_has_not_begun_goes_around_a_slow_node(void **state)
{
	struct controller *c = *state;
	uint32_t moved = 0;
	uint16_t was[N];

	for (uint32_t i = 0; i < N; i++)
		was[i] = under_way_second_of(c, i);
	assert_true(under_way_three_is_slow(c) < N);
	for (uint32_t i = 0; i < N; i++) {
		const struct microbatch *m = &c->routes.microbatches[i];

		assert_int_equal(m->moved, m->route.attempt > FIRST);
		if (m->moved)
			assert_false(m->begun);
		else
			assert_int_equal(m->nodes[1], was[i]);
		moved += was[i] == 3 && m->nodes[1] != 3;
	}
	assert_true(moved > 0);
	assert_non_null(strstr(c->journal.notes[c->journal.n_notes - 1].text, "take other ways"));
	assert_true(c->plan_wanted > 0);
	assert_true(c->cluster->nodes[3].forward_s > 0.5);
}

/* A baseline's ways are its own until its next plan. */
static void a_baseline_waits_for_its_next_plan(void **state)
{
	struct controller *c = *state;

	c->options.algorithm = PLAN_NO_TC2;
	assert_int_equal(under_way_three_is_slow(c), N);
	assert_true(c->plan_wanted > 0);
	assert_true(c->cluster->nodes[3].forward_s > 0.5);
}

/* The node from which it was taken had begun it after all, and says so. */
static uint32_t a_count_crosses(struct controller *c, bool moved)
{
	uint32_t i = under_way_three_is_slow(c);
	struct microbatch *m = &c->routes.microbatches[i];

	assert_true(i < N && m->nodes[1] != 3);
	m->moved = moved;
	under_way_does(c, 3, i, WORK_BACKWARD, FIRST, 0.1);
	return i;
}

static void a_count_that_crossed_a_move_begins_the_iteration_anew(void **state)
{
	struct controller *c = *state;

	a_count_crosses(c, true);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->redo);
	assert_true(c->first_attempt > FIRST + 1); /* what was told so far is void */
	assert_int_equal(c->members[3].state, NODE_LIVE);
}

/* It has not ended, so neither a pause nor a step does. */
static void a_pause_waits_for_what_begins_anew(void **state)
{
	struct controller *c = *state;

	c->pause = c->step = true;
	a_count_crosses(c, true);
	loop_phase(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->step);
	c->step = false;
	loop_phase(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	c->redo = false;
	loop_phase(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PAUSED);
}

static void without_a_move_it_is_a_lie(void **state)
{
	struct controller *c = *state;

	a_count_crosses(c, false);
	assert_int_equal(c->members[3].state, NODE_FAILED);
	assert_false(c->redo);
}

/* Not before that stage is there again. */
static void while_a_stage_is_lost_it_waits(void **state)
{
	struct controller *c = *state;
	uint32_t i = under_way_three_is_slow(c);

	c->phase = PHASE_STALLED;
	for (int node = 0; node < DATA; node++)
		c->members[node].replica = false;
	under_way_does(c, 3, i, WORK_BACKWARD, FIRST, 0.1);
	assert_int_equal(c->phase, PHASE_STALLED);
	assert_true(c->stall.taken_over);
	for (int node = 0; node < DATA; node++)
		c->members[node].replica = true;
	recover_turn(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->redo);
}

/* ---- slots that would wait in a circle ---- */

/* The node tells that it has begun its pass of the microbatch. */
static void begins(struct controller *c, uint16_t node, uint32_t microbatch, enum work_kind kind, uint32_t attempt)
{
	struct msg_task_event event = { .type = WORK_STARTS, .kind = (uint8_t)kind, .microbatch = microbatch,
					.attempt = attempt, .blocker = UINT32_MAX, .at_us = c->now_us };
	struct msg_report r = { .iteration = 1, .n_events = 1, .events = &event };

	iteration_report(c, &c->members[node], &r);
	loop_act(c);
}

/* m0 of n00, which is on its way to n03, and the returned one of n01, to the node given. */
static struct microbatch *two_are_left(struct controller *c, uint16_t to)
{
	struct microbatch *other = NULL;

	for (uint32_t i = 0; i < N; i++) {
		struct microbatch *m = &c->routes.microbatches[i];

		if (i > 0 && !other && m->nodes[0] == 1)
			other = m;
		else if (i > 0)
			m->done = true;
		if (m->done) { /* by who stays */
			m->nodes[0] = 0;
			m->nodes[1] = 4;
		}
	}
	assert_non_null(other);
	c->routes.microbatches[0].nodes[0] = 0;
	c->routes.microbatches[0].nodes[1] = 3;
	other->nodes[1] = to;
	under_way_does(c, 0, 0, WORK_FORWARD, FIRST, 0.1);
	under_way_does(c, 1, other->route.microbatch, WORK_FORWARD, FIRST, 0.1);
	return other;
}

/* Of one slot each at n00 and n03. m0 holds that at n00 and waits for that at n03, which the other holds; and when
 * the other's data node is gone, n00 alone can stand in. */
static struct microbatch *nearly_a_circle(struct controller *c)
{
	struct microbatch *other = two_are_left(c, 3);

	under_way_does(c, 3, other->route.microbatch, WORK_FORWARD, FIRST, 0.1);
	c->cluster->nodes[0].memory = c->cluster->nodes[3].memory = 1;
	c->members[2].replica = false;
	for (uint16_t node = 4; node < NODES; node++)
		c->members[node].replica = false;
	return other;
}

static void who_would_wait_in_a_circle_begins_again(void **state)
{
	struct controller *c = *state;
	struct microbatch *other = nearly_a_circle(c);

	members_gone(c, &c->members[1], "is gone");
	loop_act(c);
	assert_int_equal(other->nodes[0], 0);
	assert_true(other->route.attempt > FIRST);
	assert_int_equal(other->route.since, other->route.attempt);
	assert_int_equal(other->passed, 0);
}

static void who_finds_a_slot_goes_on(void **state)
{
	struct controller *c = *state;
	struct microbatch *other = nearly_a_circle(c);

	c->cluster->nodes[0].memory = 2;
	members_gone(c, &c->members[1], "is gone");
	loop_act(c);
	assert_int_equal(other->nodes[0], 0);
	assert_true(other->route.attempt > FIRST);
	assert_int_equal(other->route.since, FIRST);
}

/* n03 is gone, and n04, which began its only task a second ago, is nearer than n05, which is free. Whether a task takes
 * half a second or two decides whether it is over by now. */
static uint16_t who_stands_in_beside_a_task_of(struct controller *c, double forward_s)
{
	struct microbatch *other = two_are_left(c, 4);

	for (uint16_t node = DATA; node < NODES; node++)
		c->cluster->nodes[node].forward_s = forward_s;
	c->cluster->delay_s[0 * NODES + 5] = c->cluster->delay_s[5 * NODES + 0] = 0.1;
	begins(c, 4, other->route.microbatch, WORK_FORWARD, FIRST);
	c->now_us += SECOND;
	members_gone(c, &c->members[3], "is gone");
	loop_act(c);
	return under_way_second_of(c, 0);
}

static void who_is_free_by_now_stands_in(void **state)
{
	assert_int_equal(who_stands_in_beside_a_task_of(*state, 0.5), 4);
}

static void who_is_busy_does_not(void **state)
{
	assert_int_equal(who_stands_in_beside_a_task_of(*state, 2), 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, under_way_begin, under_way_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_has_not_begun_goes_around_a_slow_node),
		TEST(a_baseline_waits_for_its_next_plan),
		TEST(a_count_that_crossed_a_move_begins_the_iteration_anew),
		TEST(a_pause_waits_for_what_begins_anew),
		TEST(without_a_move_it_is_a_lie),
		TEST(while_a_stage_is_lost_it_waits),
		TEST(who_would_wait_in_a_circle_begins_again),
		TEST(who_finds_a_slot_goes_on),
		TEST(who_is_free_by_now_stands_in),
		TEST(who_is_busy_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
