/* phase_moves_test.c - nodes move to the stages that they have in a phase. Tests which nodes move,
 * when, and what prevents a move. */

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "controller/joining/resume.h"
#include "controller/tests/under_way.h"
#include "controller/weights/assign.h"
#include "controller/weights/copies.h"
#include "controller/weights/phase_moves.h"

enum { COMMITTED = 7 };

/* Prepares a run that is in the first of two phases, and in iteration 8. */
static struct controller *begin_with(struct controller *c)
{
	c->run.committed = COMMITTED;
	c->run.iteration = COMMITTED + 1;
	c->run.wanted.schedule.n = 2;
	c->run.wanted.schedule.phases[0].from = 1;
	c->run.wanted.schedule.phases[1].from = 100;
	for (uint32_t i = 0; i < c->members.n; i++) {
		c->members.list[i].move.home = c->run.cluster->nodes[i].stage;
		under_way_keep_messages(c, &c->members.list[i]);
	}
	return c;
}

static int begin(void **state)
{
	*state = begin_with(under_way_of(NODES, EACH, 2));
	return 0;
}

/* Begins with three stages of three nodes each. */
static int begin_three(void **state)
{
	*state = begin_with(under_way_begun(under_way_cluster(3 * DATA, 3, EACH), 3));
	return 0;
}

/* Sets the stages of the nodes in the first phase. */
static void plan_phase(struct controller *c, const int *stages)
{
	struct planned *a = c->planning.targets.answer = alloc_new(sizeof(*a));

	c->planning.targets.state = PHASE_MOVES_IDLE;
	a->n_phases = 1;
	a->phase_stages = alloc_array(c->members.n, sizeof(*stages));
	memcpy(a->phase_stages, stages, c->members.n * sizeof(*stages));
}

/* Adds the stages of the nodes in the second phase. */
static void plan_next(struct controller *c, const int *stages)
{
	struct planned *a = c->planning.targets.answer;

	a->n_phases = 2;
	a->phase_stages = realloc(a->phase_stages, 2 * NODES * sizeof(*stages));
	assert_non_null(a->phase_stages);
	memcpy(a->phase_stages + NODES, stages, NODES * sizeof(*stages));
}

/* Completes all ordered copies, with the state of the last commit. */
static void fetch(struct controller *c)
{
	phase_moves_fetch(&c->backups);
	for (uint32_t i = 0; i < c->members.n; i++) {
		struct member *m = &c->members.list[i];

		if (m->copy.stage < 0)
			continue;
		assert_int_equal(m->copy.purpose, COPY_FOR_MOVE);
		m->copy.state = COPY_WHOLE;
		m->copy.iterations = c->run.committed;
	}
}

static void commit(struct controller *c)
{
	c->run.committed++;
	for (int i = 0; i < NODES; i++)
		c->members.list[i].copy.iterations = c->run.committed;
}

/* Checks that a plan is wanted. Makes the planner answer with a plan for the stages after the
 * exchange. */
static void answer(struct controller *c)
{
	assert_int_not_equal(c->planning.wanted_id, 0);
	under_way_plans_exchange(c);
}

static bool is_prepared(const struct controller *c)
{
	return c->planning.targets.state == PHASE_MOVES_PREPARED;
}

static void assert_stages(const struct controller *c, const int *stages)
{
	for (int i = 0; i < NODES; i++)
		assert_int_equal(c->run.cluster->nodes[i].stage, stages[i]);
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, under_way_end)

FIXTURE_TEST(nodes_move_at_once_when_their_plan_is_ready)
{
	struct controller *c = *state;
	const int was[] = { 0, 0, 0, 1, 1, 1 }, is[] = { 0, 0, 1, 1, 1, 1 };

	plan_phase(c, is);
	phase_moves_prepare(&c->backups);
	assert_false(is_prepared(c)); /* no exchange is prepared, because no copy is complete */
	fetch(c);
	assert_int_equal(c->members.list[2].copy.stage, 1);
	phase_moves_prepare(&c->backups);
	assert_true(is_prepared(c));
	commit(c);
	/* The run waits, because the planner is still searching for the plan */
	assert_true(phase_moves_awaited(&c->backups, false));
	assert_stages(c, was);
	under_way_plans_exchange(c);
	/* The pending plan answers an older request, and does not have the stages after the
	 * exchange */
	c->planning.pending->exchange = 0;
	c->planning.wanted_id = 1;
	assert_true(phase_moves_awaited(&c->backups, false));
	assert_stages(c, was);
	answer(c);
	assert_true(phase_moves_awaited(&c->backups, false));
	assert_stages(c, is);
	assert_int_equal(c->run.cluster->stages[0], 2);
	assert_int_equal(c->run.cluster->microbatches_per_data_node, N / 2);
	assert_true(c->members.list[2].move.is_loading);
	assert_int_equal(c->members.list[2].move.home, 1);
	assert_false(member_is_replica(&c->members.list[2]));
	assert_false(phase_moves_awaited(&c->backups, false));
	assert_false(phase_moves_pending(&c->backups));
}

/* During a phase, nodes with complete copies wait at most five iterations for nodes that still
 * fetch. At the beginning of a phase, no node waits. */
FIXTURE_TEST(nodes_that_are_ready_do_not_wait_for_ever)
{
	struct controller *c = *state;

	plan_phase(c, (const int[]){ 0, 1, 1, 0, 1, 1 });
	c->planning.targets.exchange.at = c->run.iteration;
	fetch(c);
	c->members.list[3].copy.state = COPY_FETCHING;
	phase_moves_prepare(&c->backups);
	assert_false(is_prepared(c));
	c->planning.targets.exchange.at -= 5;
	phase_moves_prepare(&c->backups);
	assert_true(is_prepared(c));
	assert_int_equal(c->planning.targets.exchange.to[2], 1);
	assert_int_equal(c->planning.targets.exchange.to[3], 1);
	c->planning.targets.state = PHASE_MOVES_IDLE;
	c->planning.targets.exchange.at = c->run.iteration;
	c->run.wanted.schedule.phases[0].from = c->run.iteration + 1;
	phase_moves_prepare(&c->backups);
	assert_true(is_prepared(c));
}

/* A node's copy was overdue three times. The run does not wait for this node any more. */
FIXTURE_TEST(nodes_do_not_wait_for_copies_that_are_always_overdue)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[3];

	c->run.now_us = 100 * (int64_t)SECOND;
	plan_phase(c, (const int[]){ 0, 1, 1, 0, 1, 1 });
	c->planning.targets.exchange.at = c->run.iteration;
	for (int i = 0; i < 3; i++) {
		phase_moves_prepare(&c->backups);
		assert_false(is_prepared(c));
		fetch(c);
		copies_refuse(&c->members, m, "its copy was overdue");
		copies_release(&c->members, m);
	}
	phase_moves_prepare(&c->backups);
	assert_true(is_prepared(c));
	assert_int_equal(c->planning.targets.exchange.to[3], 1);
}

/* One replica stays in each stage, so that its weights never exist only in copies. */
FIXTURE_TEST(one_replica_stays_in_each_stage)
{
	struct controller *c = *state;
	const int wanted[] = { 1, 1, 1, 0, 0, 0 }, is[] = { 0, 1, 1, 1, 0, 0 };

	plan_phase(c, wanted);
	fetch(c);
	phase_moves_prepare(&c->backups);
	assert_true(is_prepared(c));
	commit(c);
	answer(c);
	phase_moves_awaited(&c->backups, false);
	assert_stages(c, is);
	assert_true(phase_moves_pending(&c->backups)); /* n00 and n03 still have to move */
}

FIXTURE_TEST(five_data_nodes_cannot_share_twelve_microbatches)
{
	struct controller *c = *state;

	plan_phase(c, (const int[]){ 0, 0, 0, 0, 0, 1 });
	fetch(c);
	phase_moves_prepare(&c->backups);
	assert_false(is_prepared(c));
	/* n04 can stay in its stage, so the other nodes can move */
	c->members.list[4].copy.stage = -1;
	c->members.list[4].copy.n_refused = 3;
	c->members.list[4].copy.refused_us = c->run.now_us;
	phase_moves_prepare(&c->backups);
	assert_true(is_prepared(c));
	assert_int_equal(c->planning.targets.exchange.to[3], 0);
	assert_int_equal(c->planning.targets.exchange.to[4], 1);
}

/* The number of data nodes must not change, so no node may enter or leave stage 0. The other nodes
 * still move. */
TEST_WITH(data_nodes_do_not_keep_others_from_moving, begin_three, under_way_end)
{
	struct controller *c = *state;
	const int wanted[] = { 0, 0, 0, 0, 0, 1, 1, 2, 2 }, is[] = { 0, 0, 0, 1, 1, 1, 1, 2, 2 };

	plan_phase(c, wanted);
	fetch(c);
	phase_moves_prepare(&c->backups);
	assert_true(is_prepared(c));
	for (uint32_t i = 0; i < c->members.n; i++)
		assert_int_equal(c->planning.targets.exchange.to[i], is[i]);
}

/* An absent node changes its stage in the exchange, although it has no copy. */
FIXTURE_TEST(a_dead_node_moves_with_the_others)
{
	struct controller *c = *state;
	const int is[] = { 0, 0, 1, 0, 1, 1 };

	plan_phase(c, is);
	c->members.list[3].state = MEMBER_DEAD;
	fetch(c);
	assert_int_equal(c->members.list[3].copy.stage, -1);
	phase_moves_prepare(&c->backups);
	commit(c);
	answer(c);
	phase_moves_awaited(&c->backups, false);
	assert_stages(c, is);
	assert_int_equal(c->members.list[3].state, MEMBER_DEAD);
}

FIXTURE_TEST(a_lost_copy_a_death_and_a_restart_prevent_the_exchange)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[2];
	const int was[] = { 0, 0, 0, 1, 1, 1 };

	plan_phase(c, (const int[]){ 0, 0, 1, 1, 1, 1 });
	for (int k = 0; k < 3; k++) {
		fetch(c);
		phase_moves_prepare(&c->backups);
		assert_true(is_prepared(c));
		commit(c);
		answer(c);
		m->copy.stage = k == 0 ? -1 : m->copy.stage;
		m->state = k == 1 ? MEMBER_DEAD : MEMBER_LIVE;
		assert_false(phase_moves_awaited(&c->backups, k == 2));
		assert_false(is_prepared(c));
		assert_null(c->planning.pending);
		assert_stages(c, was);
		m->state = MEMBER_LIVE;
		c->run.iteration = c->run.committed + 1;
	}
}

/* The previous controller saved the exchange and died. n02 still holds its old stage, and has a
 * copy of its new stage. */
FIXTURE_TEST(a_new_controller_lets_a_node_load_its_copy)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[2];

	c->run.phase = PHASE_GATHERING;
	c->run.resumed = true;
	c->run.cluster->nodes[2].stage = 1;
	m->state = MEMBER_JOINING;
	m->hello = (struct msg_hello){ .run = c->run.id,
				       .stage = 0,
				       .committed = COMMITTED,
				       .hash = 1,
				       .keeps = 1,
				       .kept = COMMITTED,
				       .kept_hash = 2 };
	resume_member(&c->members, m);
	assert_int_equal(m->state, MEMBER_JOINING);
	members_assign(&c->members, m, 1, true);
	assert_int_equal(m->state, MEMBER_SYNCING);
	/* The node loads its copy, and does not fetch the stage again */
	assert_int_equal(m->weights.stage, 1);
	assert_int_equal(m->copy.state, COPY_WHOLE);
}

/* The only replica that was to stay in its stage has died, so no node moves. */
FIXTURE_TEST(no_node_moves_when_the_last_one_to_stay_has_died)
{
	struct controller *c = *state;

	plan_phase(c, (const int[]){ 0, 1, 1, 0, 1, 1 });
	fetch(c);
	phase_moves_prepare(&c->backups);
	assert_true(is_prepared(c));
	commit(c);
	answer(c);
	c->members.list[0].state = MEMBER_DEAD;
	assert_false(phase_moves_awaited(&c->backups, false));
	assert_false(is_prepared(c));
}

/* The second phase begins in six iterations, but the fetches for it take ten. Nevertheless, nodes
 * first move to their stages of the present phase, and then begin these fetches. */
FIXTURE_TEST(a_slow_fetch_does_not_end_the_moves_of_the_present_phase)
{
	struct controller *c = *state;
	struct curves *curves = &c->run.record.curves;

	plan_phase(c, (const int[]){ 0, 0, 1, 1, 1, 1 });
	plan_next(c, (const int[]){ 0, 1, 1, 1, 1, 1 });
	c->run.wanted.schedule.phases[1].from = c->run.iteration + 6;
	c->run.unit_s = 100 / c->run.cluster->delay_s[0];
	curves->iterations = alloc_new(sizeof(*curves->iterations));
	curves->iterations[0].real_s = 1;
	curves->n_iterations = 1;
	fetch(c);
	assert_int_equal(c->members.list[1].copy.stage, -1);
	phase_moves_prepare(&c->backups);
	assert_true(is_prepared(c));
	commit(c);
	answer(c);
	assert_true(phase_moves_awaited(&c->backups, false));
	c->members.list[2].state = MEMBER_LIVE;
	phase_moves_fetch(&c->backups);
	assert_int_equal(c->members.list[1].copy.stage, 1);
}

/* With the last commit, the second stage starts from its nodes' copies of the first stage. All
 * nodes except n05 have reported that commit. n03 and n05 have to move to the third stage. */
static struct controller *stack_second_stage(struct controller *c)
{
	c->run.last_commit.iteration = COMMITTED;
	c->run.last_commit.stack_from = c->run.cluster->always = 1;
	plan_phase(c, (const int[]){ 0, 0, 0, 2, 1, 2, 2, 2, 2 });
	for (int i = 3; i < 6; i++) {
		struct member *m = &c->members.list[i];

		m->copy.stage = 0;
		m->copy.state = COPY_WHOLE;
		m->copy.iterations = i == 5 ? COMMITTED - 1 : COMMITTED;
		m->copy.last_commit_sent = COMMITTED;
		m->copy.purpose = COPY_FOR_STACKING;
		m->weights.hash = i == 5 ? 0 : 1;
	}
	return c;
}

/* If a node dropped the copy before it has taken the copy's layers, it could not make the commit.
 * The run would lose this replica. */
TEST_WITH(a_node_keeps_the_copy_from_which_its_stage_starts, begin_three, under_way_end)
{
	struct controller *c = stack_second_stage(*state);

	phase_moves_fetch(&c->backups);
	assert_int_equal(c->members.list[5].copy.stage, 0);
	assert_int_equal(c->members.list[5].copy.purpose, COPY_FOR_STACKING);
	assert_int_equal(c->members.list[3].copy.stage, -1);
	c->members.list[5].weights.hash = 1;
	phase_moves_fetch(&c->backups);
	assert_int_equal(c->members.list[5].copy.stage, -1);
	assert_int_equal(c->members.list[3].copy.stage, 2);
}

/* After the next commit the node does not need the copy any more, even if it has not reported that
 * commit. */
TEST_WITH(a_node_keeps_that_copy_for_one_commit, begin_three, under_way_end)
{
	struct controller *c = stack_second_stage(*state);

	c->run.committed++;
	for (int i = 3; i < 6; i++)
		c->members.list[i].copy.iterations = c->run.committed;
	phase_moves_fetch(&c->backups);
	assert_int_equal(c->members.list[5].copy.stage, -1);
}
