/* death_in_sum_test.c - a node dies when its stage already has the sum. The sum contains the
 * gradients that the node counted, so no other sum may contain them. */

#include "base/tests/test.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/recover.h"
#include "controller/loop.h"
#include "controller/members/lifecycle.h"
#include "controller/tests/under_way.h"
#include "controller/trust/exclude.h"

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* The other replicas' sum contains the dead node's gradients. No task runs again, and the record of
 * the commit names the dead node. */
FIXTURE_TEST(the_record_names_a_node_that_died_after_its_sum)
{
	struct controller *c = *state;
	uint32_t counted[NODES] = { 0 }, summed = 0;
	struct store_commit k;

	under_way_all_is_done(c);
	for (uint16_t node = DATA; node < NODES; node++)
		under_way_reports_sum(c, node);
	member_apply(&c->run, &c->members.list[4], EVENT_LOST, "is gone");
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_REDUCING);
	for (uint16_t node = 0; node < DATA; node++)
		under_way_reports_sum(c, node);
	assert_int_equal(c->run.committed, 1);
	assert_int_equal(store_read_commit(c->run.record.store, 1, &k, NULL), 0);
	for (size_t i = 0; i < k.n_orders; i++)
		counted[k.orders[i].node] = k.orders[i].n_counted;
	for (size_t i = 0; i < k.n_reductions; i++)
		summed += k.reductions[i].n_nodes;
	store_commit_clear(&k);
	assert_int_equal(summed, NODES);
	for (uint16_t node = 0; node < NODES; node++)
		assert_int_equal(counted[node], c->iteration.routes.counts[node].n);
	assert_true(counted[4] > 0);
}

/* Makes substitutes repeat the work of the dead node. Returns the number of microbatches that run
 * again. */
static uint32_t runs_again(struct controller *c)
{
	uint32_t again = 0;

	for (uint32_t i = 0; i < N; i++) {
		struct microbatch *m = &c->iteration.routes.microbatches[i];

		if (m->done)
			continue;
		again++;
		for (uint32_t h = 0; h < m->route.n_hops; h++)
			if (m->owed_forward >> h & 1)
				under_way_does(c, m->route.nodes[h], i, TASK_FORWARD,
					       m->route.attempt, 0.1);
		if (m->owed_loss)
			under_way_does(c, m->route.nodes[0], i, TASK_LOSS, m->route.attempt, 0.02);
		for (uint32_t h = m->route.n_hops; h-- > 0;)
			if (m->owed_backward >> h & 1)
				under_way_does(c, m->route.nodes[h], i, TASK_BACKWARD,
					       m->route.attempt, 0.1);
	}
	return again;
}

/* Ends all tasks. Kills n04 when its stage has the sum. */
static void four_dies_in_its_sum(struct controller *c)
{
	under_way_all_is_done(c);
	for (uint16_t node = DATA; node < NODES; node++)
		under_way_reports_sum(c, node);
	assert_true(c->iteration.routes.counts[4].n > 0);
	member_apply(&c->run, &c->members.list[4], EVENT_LOST, "is gone");
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_REDUCING);
}

/* If only one node reported a sum, nothing shows whether it is wrong. The controller repeats such a
 * sum, which costs little. */
FIXTURE_TEST(a_sum_that_only_one_node_reported_is_repeated)
{
	struct controller *c = *state;

	for (int reported = 1; reported >= 0; reported--) {
		under_way_all_is_done(c);
		c->members.list[5].state = MEMBER_JOINING;
		under_way_reports_sum(c, 3);
		if (reported)
			under_way_reports_sum(c, 4);
		member_apply(&c->run, &c->members.list[4], EVENT_LOST, "is gone");
		loop_act(&c->iteration);
		assert_int_equal(c->run.phase, reported ? PHASE_REDUCING : PHASE_COMPUTING);
		if (reported) {
			assert_int_equal(under_way_end(state), 0);
			assert_int_equal(under_way_begin(state), 0);
			c = *state;
		}
	}
}

/* The dead node reported a different sum than the others. The controller cannot tell which sum is
 * right, so it commits neither. */
FIXTURE_TEST(a_different_sum_of_a_dead_node_counts)
{
	struct controller *c = *state;
	uint64_t slices[DATA] = { 1, 2, 4 };
	struct msg_reduced r = {
		.iteration = 1, .stage = 1, .sum_squares = 1, .n_slices = DATA, .slices = slices
	};

	under_way_all_is_done(c);
	r.attempt = c->iteration.reduce_attempt;
	iteration_reduced(&c->iteration, &c->members.list[4], &r);
	under_way_reports_sum(c, 3);
	under_way_reports_sum(c, 5);
	member_apply(&c->run, &c->members.list[4], EVENT_LOST, "is gone");
	loop_act(&c->iteration);
	for (uint16_t node = 0; node < DATA; node++)
		under_way_reports_sum(c, node);
	assert_int_equal(c->run.committed, 0);
	assert_int_equal(c->iteration.n_differing, 1);
	assert_true(runs_again(c) > 0);
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
}

/* Makes the sums of the first stage differ once, so that all sums restart. */
static void sums_differ(struct controller *c)
{
	uint64_t slices[DATA] = { 1, 2, 4 };
	struct msg_reduced r = { .iteration = 1,
				 .attempt = c->iteration.reduce_attempt,
				 .stage = 0,
				 .sum_squares = 1,
				 .n_slices = DATA,
				 .slices = slices };

	under_way_reports_sum(c, 0);
	under_way_reports_sum(c, 1);
	iteration_reduced(&c->iteration, &c->members.list[2], &r);
	loop_act(&c->iteration);
	assert_int_equal(c->iteration.n_differing, 1);
}

/* Only the discarded sum contained the dead node's gradients, so they are computed again. */
FIXTURE_TEST(a_node_that_died_in_a_sum_is_not_in_the_next)
{
	struct controller *c = *state;

	four_dies_in_its_sum(c);
	sums_differ(c);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_int_equal(c->iteration.routes.counts[4].n, 0);
	assert_true(runs_again(c) > 0);
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
}

FIXTURE_TEST(a_death_in_another_stage_does_not_change_this)
{
	struct controller *c = *state;
	bool visited[NODES];

	four_dies_in_its_sum(c);
	member_apply(&c->run, &c->members.list[0], EVENT_LOST, "is gone");
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_true(runs_again(c) > 0);
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
	routes_visited(&c->iteration.routes, visited);
	for (int node = 0; node < NODES; node++)
		assert_int_equal(visited[node], node != 0 && node != 4);
}

/* The dead node returns, and takes part in the next sum with an empty gradient. */
FIXTURE_TEST(a_returned_node_is_in_the_next_sum)
{
	struct controller *c = *state;
	struct member *back = &c->members.list[4];

	four_dies_in_its_sum(c);
	back->state = MEMBER_READY;
	sums_differ(c);
	assert_true(runs_again(c) > 0);
	assert_true(member_is_replica(back));
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
}

/* A node is excluded after its stage has reported the sum. The sum is void, because it may contain
 * wrong numbers from this node. */
FIXTURE_TEST(the_sum_with_an_excluded_node_is_void)
{
	struct controller *c = *state;
	uint32_t attempt;

	under_way_all_is_done(c);
	for (uint16_t node = DATA; node < NODES; node++)
		under_way_reports_sum(c, node);
	attempt = c->iteration.reduce_attempt;
	exclude_member(&c->members, &c->members.list[4], "counted a gradient twice");
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_true(c->iteration.reduce_attempt > attempt);
	assert_true(runs_again(c) > 0);
	under_way_all_tell_their_sums(c);
	under_way_recorded_once(c);
}

/* When n05 is excluded, only its sum is missing. Now the sums of all other nodes are complete.
 * They may contain wrong numbers from n05, so the controller must not commit them. */
FIXTURE_TEST(no_loss_commits_a_void_sum)
{
	struct controller *c = *state;

	under_way_all_is_done(c);
	for (uint16_t node = 0; node < NODES; node++)
		if (node != 5)
			under_way_reports_sum(c, node);
	exclude_member(&c->members, &c->members.list[5], "counted a gradient twice");
	loop_act(&c->iteration);
	assert_int_equal(c->run.committed, 0);
}

/* Another node has already been assigned the dead node's stage. The record still says which stage's
 * sum contains the dead node's gradients. */
FIXTURE_TEST(a_new_node_in_the_place_of_the_lost_one_changes_nothing)
{
	struct controller *c = *state;

	four_dies_in_its_sum(c);
	c->run.cluster->nodes[4].stage = 0;
	for (uint16_t node = 0; node < DATA; node++)
		under_way_reports_sum(c, node);
	under_way_recorded_once(c);
}

/* n04 has died after its stage had the sum. Then n00, the last node of the other stage, falls
 * silent and returns. Routes still visit the dead n04, so the whole iteration restarts. */
FIXTURE_TEST(an_awaited_stage_does_not_change_this)
{
	struct controller *c = *state;

	c->members.list[1].state = c->members.list[2].state = MEMBER_JOINING;
	for (uint32_t i = 0; i < N; i++)
		c->iteration.routes.microbatches[i].route.nodes[0] = 0;
	for (int node = 0; node < NODES; node++)
		c->members.list[node].weights.stage = (uint8_t)(node / DATA);
	four_dies_in_its_sum(c);
	member_apply(&c->run, &c->members.list[0], EVENT_LOST, "sleeps");
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_STALLED);
	c->members.list[0].beat.iteration = 1;
	assert_true(iteration_readmit(&c->iteration, &c->members.list[0]));
	recover_turn(&c->iteration);
	loop_act(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	assert_true(c->iteration.redo);
}
