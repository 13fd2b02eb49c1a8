/* Tests a standby copy of another stage in several cases, for example: its holder takes over the
 * stage, the copy misses a commit, or the copy lags behind the commits. */

#include <string.h>

#include "agent/tests/cluster.h"
#include "base/tests/test.h"

static bool two_keeps(struct cluster *c)
{
	return c->nodes[2].kept;
}

/* Node 2 of stage 1 fetches a copy of stage 2 from its only replica during an iteration. The copy
 * follows every commit. When the replica dies, node 2 takes over stage 2. */
TEST(test_copy_takes_over)
{
	static const uint8_t five[] = { 0, 0, 1, 1, 2 };
	struct cluster *c = cluster_make(5, five);
	struct stage *twin;

	cluster_gather(c);
	cluster_route(c, 0, 3, (uint16_t[]){ 0, 2, 4 });
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 4 });
	cluster_route(c, 2, 3, (uint16_t[]){ 0, 4, 3 });
	cluster_route(c, 3, 2, (uint16_t[]){ 1, 4 });
	cluster_iterate(c);
	cluster_start(c);
	cluster_keep(c, 2, 2, 4);
	cluster_finish(c);
	cluster_until(c, two_keeps, "the copy of stage 2");
	for (int i = 0; i < 2; i++) {
		cluster_iterate(c);
		assert_true(c->nodes[2].copy_reduced_said.sum_squares ==
			    c->nodes[4].reduced_said.sum_squares);
		assert_true(c->nodes[2].copy_committed.hash == c->nodes[4].committed.hash);
	}
	/* Node 4 dies in the middle of an iteration. The iteration restarts, and node 2 replaces
	 * node 4. */
	cluster_start(c);
	cluster_turns(c, 3);
	cluster_kill(c, 4);
	twin = c->twins[2];
	c->twins[2] = c->twins[4];
	c->twins[4] = twin;
	c->nodes[2].stage = 2;
	c->nodes[4].stage = 1;
	c->nodes[2].ready = false;
	cluster_send(
		c, 2,
		&(struct msg){ .type = MSG_ASSIGN, .u.assign = { ++c->assignments, 2, 1 } });
	cluster_until(c, cluster_all_ready, "node 2 to have stage 2");
	assert_true(c->nodes[2].ready_said.hash == stage_hash(c->twins[2]));
	c->now.iteration--;
	cluster_route(c, 0, 3, (uint16_t[]){ 0, 3, 2 });
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 2 });
	cluster_route(c, 2, 3, (uint16_t[]){ 0, 2, 3 });
	cluster_route(c, 3, 2, (uint16_t[]){ 1, 2 });
	for (uint32_t m = 0; m < c->now.n_batches; m++)
		c->now.routes[m].attempt++;
	cluster_iterate(c);
	cluster_iterate(c);
	cluster_unmake(c);
}

static bool two_keeps_none(struct cluster *c)
{
	return c->nodes[2].kept_said.hash == 0;
}

/* A standby copy that missed a sum cannot step any more. The holder of the copy reports this and
 * fetches another copy. */
TEST(test_copy_missed_commit)
{
	static const uint8_t five[] = { 0, 0, 1, 1, 2 };
	struct cluster *c = cluster_make(5, five);

	cluster_gather(c);
	cluster_route(c, 0, 3, (uint16_t[]){ 0, 2, 4 });
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 4 });
	cluster_iterate(c);
	cluster_keep(c, 2, 2, 4);
	cluster_until(c, two_keeps, "the copy of stage 2");
	cluster_iterate(c);
	assert_true(c->nodes[2].copy_committed.hash == c->nodes[4].committed.hash);
	c->nodes[2].keeps = -1; /* the commit is not sent to the copy at node 2 */
	cluster_iterate(c);
	cluster_until(c, two_keeps_none, "node 2 to say that its copy is old");
	assert_non_null(strstr(c->nodes[2].kept_said.text, "missed a commit"));
	cluster_keep(c, 2, 2, 4);
	cluster_until(c, two_keeps, "another copy of stage 2");
	cluster_iterate(c);
	assert_true(c->nodes[2].copy_committed.hash == c->nodes[4].committed.hash);
	cluster_unmake(c);
}

static bool two_has_caught_up(struct cluster *c)
{
	return c->nodes[2].kept && c->nodes[2].copy_committed.iteration == c->now.iteration;
}

/* The controller does not wait for the copy at node 2. Pieces and sums arrive at node 2 after the
 * commits. The copy must get the same weights as the replica nevertheless. */
TEST(test_copy_lags)
{
	static const uint8_t five[] = { 0, 0, 1, 1, 2 };
	struct cluster *c = cluster_make(5, five);
	bool behind = false;

	cluster_gather(c);
	cluster_route(c, 0, 2, (uint16_t[]){ 0, 2 });
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 4 });
	cluster_route(c, 2, 3, (uint16_t[]){ 0, 4, 3 });
	cluster_route(c, 3, 2, (uint16_t[]){ 1, 4 });
	cluster_iterate(c);
	c->options.copies_lag = true;
	cluster_fault(c, 4, 9, FAULT_LOSS, 2, 0.7f);
	cluster_keep(c, 2, 2, 4);
	for (int i = 0; i < 5; i++) {
		cluster_iterate(c);
		behind = behind || !two_has_caught_up(c);
	}
	assert_true(behind);
	cluster_until(c, two_keeps, "the copy of stage 2");
	cluster_iterate(c);
	cluster_iterate(c);
	cluster_fault(c, 4, 9, FAULT_NONE, 2, 0);
	cluster_until(c, two_has_caught_up, "the copy to catch up");
	assert_true(c->nodes[2].copy_committed.hash == stage_hash(c->twins[4]));
	cluster_unmake(c);
}

static bool copies_are_kept(struct cluster *c)
{
	return c->nodes[2].kept && c->nodes[3].kept && c->nodes[4].kept;
}

static bool four_keeps_none(struct cluster *c)
{
	return c->nodes[4].kept_said.hash == 0;
}

/* In a commit, stage 1 takes the layers of stage 2. The nodes of stage 1 use their copies of
 * stage 2, after the copies have made the commit's step. Node 4 must drop its copy of stage 1,
 * because the layers of stage 1 are replaced. */
TEST(a_stage_starts_from_the_step_of_a_copy)
{
	static const uint8_t five[] = { 0, 0, 1, 1, 2 };
	struct cluster *c = cluster_make(5, five);

	cluster_gather(c);
	cluster_route(c, 0, 2, (uint16_t[]){ 0, 4 });
	cluster_route(c, 1, 2, (uint16_t[]){ 1, 4 });
	cluster_iterate(c);
	cluster_keep(c, 2, 2, 4);
	cluster_keep(c, 3, 2, 4);
	cluster_keep(c, 4, 1, 2);
	cluster_until(c, copies_are_kept, "the copies");
	cluster_start(c);
	cluster_until(c, cluster_all_through, "all microbatches");
	cluster_reduce(c, 1);
	cluster_check_twins(c);
	for (int i = 2; i < 4; i++)
		stage_stack(c->twins[i], c->twins[4]);
	c->options.stack_from = 1 << 0 | 1 << 2;
	c->nodes[4].keeps = -1;  /* do not wait until node 4's copy has made the step */
	cluster_commit(c, 1);    /* compares the nodes' weights with the weights of the twins */
	cluster_until(c, four_keeps_none, "node 4 to drop its copy");
	assert_non_null(strstr(c->nodes[4].kept_said.text, "took the layers of another"));
	assert_int_equal(cluster_troubles(c), 0);
	c->options.stack_from = 0;
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 4 });
	cluster_iterate(c);
	cluster_unmake(c);
}

static bool two_answers(struct cluster *c)
{
	return c->nodes[2].committed.iteration == 1;
}

/* After a return to a checkpoint, node 2 may hold weights of an iteration that the run repeats.
 * The repeated commit has the same number but other weights. The standby copy of the stage has
 * the new weights, and node 2's own stage does not have them. Therefore the copy alone may
 * answer. */
TEST(test_weights_that_a_copy_replaces_answer_no_commit)
{
	static const uint8_t five[] = { 0, 0, 1, 1, 2 };
	struct cluster *c = cluster_make(5, five);
	struct msg m = { .type = MSG_COMMIT, .u.commit = { .iteration = 1, .attempt = 1 } };
	uint32_t before;

	cluster_gather(c);
	cluster_route(c, 0, 3, (uint16_t[]){ 0, 2, 4 });
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 4 });
	cluster_iterate(c);
	cluster_keep(c, 2, 1, 3);
	cluster_until(c, two_keeps, "the copy of its own stage");
	before = c->nodes[2].n_committed;
	c->nodes[2].committed.iteration = 0;
	cluster_send(c, 2, &m);
	cluster_until(c, two_answers, "the copy's answer");
	cluster_turns(c, 10);
	assert_int_equal(c->nodes[2].n_committed, before);
	cluster_unmake(c);
}
