/* Who dies when its stage has the sum: what it counted is in that sum, and in no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/iteration/iteration.h"
#include "controller/loop.h"
#include "controller/members/node_state.h"
#include "controller/tests/under_way.h"
#include "controller/weights/recover.h"

/* What it had counted is in the others' sum: nothing runs again, and the record has it. */
static void who_dies_after_its_sum_stays_in_the_record(void **state)
{
	struct controller *c = *state;
	uint32_t counted[NODES] = { 0 }, summed = 0;
	struct store_commit k;

	under_way_all_is_done(c);
	for (uint16_t node = DATA; node < NODES; node++)
		under_way_tells_its_sum(c, node);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_REDUCING);
	for (uint16_t node = 0; node < DATA; node++)
		under_way_tells_its_sum(c, node);
	assert_int_equal(c->committed, 1);
	assert_int_equal(store_read_commit(c->store, 1, &k, NULL), 0);
	for (size_t i = 0; i < k.n_orders; i++)
		counted[k.orders[i].node] = k.orders[i].n_counted;
	for (size_t i = 0; i < k.n_reductions; i++)
		summed += k.reductions[i].n_nodes;
	store_commit_clear(&k);
	assert_int_equal(summed, NODES);
	for (uint16_t node = 0; node < NODES; node++)
		assert_int_equal(counted[node], c->routes.counts[node].n);
	assert_true(counted[4] > 0);
}

/* Who stands in does what it owes. */
static uint32_t runs_again(struct controller *c)
{
	uint32_t again = 0;

	for (uint32_t i = 0; i < N; i++) {
		struct microbatch *m = &c->routes.microbatches[i];

		if (m->done)
			continue;
		again++;
		for (uint32_t h = 0; h < m->route.n_hops; h++)
			if (m->owed_forward >> h & 1)
				under_way_does(c, m->nodes[h], i, TASK_FORWARD, m->route.attempt, 0.1);
		if (m->owed_loss)
			under_way_does(c, m->nodes[0], i, TASK_LOSS, m->route.attempt, 0.02);
		for (uint32_t h = m->route.n_hops; h-- > 0;)
			if (m->owed_backward >> h & 1)
				under_way_does(c, m->nodes[h], i, TASK_BACKWARD, m->route.attempt, 0.1);
	}
	return again;
}

/* All is done, and n04 dies when its stage has the sum. */
static void four_dies_in_its_sum(struct controller *c)
{
	under_way_all_is_done(c);
	for (uint16_t node = DATA; node < NODES; node++)
		under_way_tells_its_sum(c, node);
	assert_true(c->routes.counts[4].n > 0);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_REDUCING);
}

/* A sum of which one alone has told may be wrong, and nobody would know: what it lacked is not that much. */
static void a_sum_that_one_alone_has_told_is_made_anew(void **state)
{
	struct controller *c = *state;

	for (int told = 1; told >= 0; told--) {
		under_way_all_is_done(c);
		c->members[5].replica = false;
		under_way_tells_its_sum(c, 3);
		if (told)
			under_way_tells_its_sum(c, 4);
		members_gone(c, &c->members[4], "is gone");
		loop_act(c);
		assert_int_equal(c->phase, told ? PHASE_REDUCING : PHASE_COMPUTING);
		if (told) {
			assert_int_equal(under_way_end(state), 0);
			assert_int_equal(under_way_begin(state), 0);
			c = *state;
		}
	}
}

/* Nobody can say which of the two is right, so neither is committed. */
static void who_told_another_sum_and_died_is_heard(void **state)
{
	struct controller *c = *state;
	uint64_t slices[DATA] = { 1, 2, 4 };
	struct msg_reduced r = { .iteration = 1, .stage = 1, .sum_squares = 1, .n_slices = DATA, .slices = slices };

	under_way_all_is_done(c);
	r.attempt = c->reduce_attempt;
	iteration_reduced(c, &c->members[4], &r);
	under_way_tells_its_sum(c, 3);
	under_way_tells_its_sum(c, 5);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	for (uint16_t node = 0; node < DATA; node++)
		under_way_tells_its_sum(c, node);
	assert_int_equal(c->committed, 0);
	assert_int_equal(c->n_differing, 1);
	assert_true(runs_again(c) > 0);
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
}

/* The first sums of the first stage differ once: all sums begin anew. */
static void sums_differ(struct controller *c)
{
	uint64_t slices[DATA] = { 1, 2, 4 };
	struct msg_reduced r = { .iteration = 1, .attempt = c->reduce_attempt, .stage = 0,
				 .sum_squares = 1, .n_slices = DATA, .slices = slices };

	under_way_tells_its_sum(c, 0);
	under_way_tells_its_sum(c, 1);
	iteration_reduced(c, &c->members[2], &r);
	loop_act(c);
	assert_int_equal(c->n_differing, 1);
}

/* Its part was in that sum and in no other: what it did runs again. */
static void who_died_in_a_sum_is_not_in_the_next(void **state)
{
	struct controller *c = *state;

	four_dies_in_its_sum(c);
	sums_differ(c);
	assert_int_equal(c->phase, PHASE_COMPUTING);
	assert_int_equal(c->routes.counts[4].n, 0);
	assert_true(runs_again(c) > 0);
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
}

static void nor_is_it_when_another_stage_loses_one(void **state)
{
	struct controller *c = *state;

	four_dies_in_its_sum(c);
	members_gone(c, &c->members[0], "is gone");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_COMPUTING);
	assert_true(runs_again(c) > 0);
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
	for (int node = 0; node < NODES; node++)
		assert_int_equal(routes_visit(&c->routes, (uint16_t)node), node != 0 && node != 4);
}

/* It joins the next sum, with a gradient of nothing. */
static void nor_when_it_is_back(void **state)
{
	struct controller *c = *state;
	struct member *back = &c->members[4];

	four_dies_in_its_sum(c);
	back->state = NODE_SYNCING;
	back->ready = true;
	sums_differ(c);
	assert_true(runs_again(c) > 0);
	assert_true(back->replica);
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
}

/* Its place is another's by then: the record says of which stage's sum it was. */
static void whatever_became_of_its_place(void **state)
{
	struct controller *c = *state;

	four_dies_in_its_sum(c);
	c->cluster->nodes[4].stage = 0;
	for (uint16_t node = 0; node < DATA; node++)
		under_way_tells_its_sum(c, node);
	under_way_recorded_once(c);
}

/* The last of the stage that has no sum sleeps, and is back: all begins anew. */
static void nor_after_a_stage_was_awaited(void **state)
{
	struct controller *c = *state;

	c->members[1].replica = c->members[2].replica = false;
	for (uint32_t i = 0; i < N; i++)
		c->routes.microbatches[i].nodes[0] = 0;
	for (int node = 0; node < NODES; node++)
		c->members[node].held_stage = (uint8_t)(node / DATA);
	four_dies_in_its_sum(c);
	members_gone(c, &c->members[0], "sleeps");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_STALLED);
	c->members[0].beat.iteration = 1;
	assert_true(iteration_resumes(c, &c->members[0]));
	recover_turn(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->redo);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, under_way_begin, under_way_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_dies_after_its_sum_stays_in_the_record),
		TEST(a_sum_that_one_alone_has_told_is_made_anew),
		TEST(who_told_another_sum_and_died_is_heard),
		TEST(who_died_in_a_sum_is_not_in_the_next),
		TEST(nor_is_it_when_another_stage_loses_one),
		TEST(nor_when_it_is_back),
		TEST(whatever_became_of_its_place),
		TEST(nor_after_a_stage_was_awaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
