/* restore_test.c - how a run returns to a checkpoint. Tests which node reads which file, in which
 * order, and with what result. */

#include <stdio.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/tests/under_way.h"
#include "controller/weights/restore.h"
#include "store/store.h"

enum { OLDER = 2, NEWER = 4, COMMITTED = 6, FILE_HASH = 700 };

/* Records that this node's machine has the stage's file of that iteration. */
static void saved(struct controller *c, uint64_t iteration, uint8_t stage, uint16_t node)
{
	struct store_shard k = { .iteration = iteration,
				 .stage = stage,
				 .node = node,
				 .host = c->members.list[node].hello.host,
				 .hash = FILE_HASH + stage,
				 .bytes = 1 };

	assert_int_equal(store_shard(c->run.record.store, &k, NULL), 0);
}

static void holds(struct controller *c, uint16_t node, uint8_t stage)
{
	struct member *m = &c->members.list[node];

	m->weights.stage = m->beat.stage = stage;
	m->weights.iterations = m->beat.committed = c->run.committed;
}

/* New processes have replaced all nodes of the first stage, so the stage is lost. n04 and n05 hold
 * the second stage, and n03 is a new process. The machines of n01 and n04 have files of both
 * checkpoints. Each node has its own disk. */
static int begin(void **state)
{
	struct controller *c = *state = under_way_of(NODES, EACH, 2);

	for (uint64_t i = 1; i <= COMMITTED; i++) {
		struct store_commit commit = { .iteration = i,
					       .epoch = 1,
					       .scale = 1,
					       .lr = 1e-3f,
					       .alive = NODES,
					       .path_length = 2 };

		assert_int_equal(store_commit(c->run.record.store, &commit, NULL), 0);
	}
	c->run.committed = COMMITTED;
	c->run.iteration = COMMITTED + 1;
	c->run.phase = PHASE_STALLED;
	/* the time limit is so long that no node exceeds it */
	c->run.options.limits.overdue_us = 20 * SECOND;
	for (uint16_t i = 0; i < NODES; i++) {
		struct member *m = &c->members.list[i];

		snprintf(m->hello.host, sizeof(m->hello.host), "machine%d", i);
		m->hello.saves = true;
		m->state = MEMBER_JOINING;
		m->weights.stage = m->beat.stage = MSG_NO_STAGE;
	}
	for (int k = 0; k < 2; k++) {
		saved(c, k ? NEWER : OLDER, 0, 1);
		saved(c, k ? NEWER : OLDER, 1, 4);
	}
	holds(c, 4, 1);
	holds(c, 5, 1);
	return 0;
}

/* Lets the node report that it has read its file. */
static void has_read(struct controller *c, uint16_t node)
{
	struct member *m = &c->members.list[node];

	assert_int_equal(m->state, MEMBER_RESTORING);
	m->state = MEMBER_RESTORED;
	m->weights.iterations = c->backups.restore.iteration;
	m->weights.hash = 1000u + node;
	restore_turn(&c->backups);
}

static void cannot_read(struct controller *c, uint16_t node)
{
	struct msg_unready u = { .assignment = c->members.list[node].assigned.number,
				 .text = "it is cut short" };

	assert_int_equal(c->members.list[node].state, MEMBER_RESTORING);
	restore_failed(&c->backups, &c->members.list[node], &u);
	restore_turn(&c->backups);
}

static const char *newest_note(const struct controller *c)
{
	return c->run.journal.notes[c->run.journal.n_notes - 1].text;
}

static int see_newest(void *context, const struct store_moment *m)
{
	int64_t *newest = context;

	if (strcmp(m->kind, "checkpoint") == 0 && strcmp(m->word, "newest") == 0)
		*newest = m->value;
	return 0;
}

/* Returns the iteration of the checkpoint that the record calls the newest; -1: none. */
static int64_t newest_recorded(const struct controller *c)
{
	int64_t newest = -1;

	assert_int_equal(store_each_moment(c->run.record.store, 0, see_newest, &newest, NULL), 0);
	return newest;
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, under_way_end)

FIXTURE_TEST(a_node_on_the_machine_with_the_file_reads_it)
{
	struct controller *c = *state;

	assert_true(restore_checkpoint(&c->backups));
	assert_int_equal(c->backups.restore.state, RESTORING_CHECKPOINT);
	assert_int_equal(c->backups.restore.iteration, NEWER);
	assert_int_equal(c->backups.restore.lost, 1);
	assert_int_equal(c->backups.restore.who[0], 1);
	assert_int_equal(c->backups.restore.who[1], 4);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(c->members.list[i].state == MEMBER_RESTORING, i == 1 || i == 4);
}

/* No machine is known to have the file. A node of the stage tries to read it, because machines may
 * share the folder. */
FIXTURE_TEST(without_the_file_a_node_of_the_stage_tries)
{
	struct controller *c = *state;

	c->members.list[1].is_marked = c->members.list[4].is_marked = true;
	assert_true(restore_checkpoint(&c->backups));
	assert_true(c->backups.restore.who[0] == 0 || c->backups.restore.who[0] == 2);
	assert_true(c->backups.restore.who[1] == 3 || c->backups.restore.who[1] == 5);
}

/* A node that has the file of another stage moves to that stage, if its own stage has enough other
 * replicas. */
FIXTURE_TEST(a_node_with_the_file_moves_to_its_stage)
{
	struct controller *c = *state;

	saved(c, COMMITTED, 0, 4);
	saved(c, COMMITTED, 1, 4);
	assert_true(restore_checkpoint(&c->backups));
	assert_int_equal(c->backups.restore.iteration, COMMITTED);
	assert_int_equal(c->backups.restore.who[0], 4);
	assert_int_equal(c->run.cluster->nodes[4].stage, 0);
	assert_int_not_equal(c->backups.restore.who[1], 4);
	assert_int_equal(c->run.cluster->nodes[c->backups.restore.who[1]].stage, 1);
}

/* Node `last` is the last node of its stage. If it read a file now, it would give up its weights.
 * If the file of the lost stage then could not be read, both stages would be lost. */
FIXTURE_TEST(the_last_node_of_a_stage_reads_after_lost_stages)
{
	struct controller *c = *state;

	c->members.list[3].is_marked = true;
	for (uint16_t last = 4; last <= 5; last++) {
		uint16_t other = last == 4 ? 5 : 4;

		c->members.list[other].is_marked = true;
		assert_true(restore_checkpoint(&c->backups));
		assert_int_equal(c->backups.restore.lost, 1);
		assert_int_equal(c->backups.restore.who[1], -1);
		restore_turn(&c->backups);
		assert_int_equal(c->backups.restore.who[1], -1);
		has_read(c, 1);
		assert_int_equal(c->backups.restore.who[1], last);
		c->members.list[other].is_marked = false;
		c->members.list[1].state = MEMBER_RESTORING;
	}
}

/* n04 also had the weights of the second stage, but was ordered to overwrite them with the weights
 * in the file. */
FIXTURE_TEST(the_remaining_node_is_the_last_of_its_stage)
{
	struct controller *c = *state;

	c->members.list[3].is_marked = true;
	saved(c, COMMITTED, 0, 4);
	saved(c, COMMITTED, 1, 5);
	assert_true(restore_checkpoint(&c->backups));
	assert_int_equal(c->backups.restore.who[0], 4);
	assert_false(member_is_restoring(&c->members.list[5]));
	if (c->backups.restore.who[1] >= 0) /* the node that reads in place of n04 has no file */
		cannot_read(c, (uint16_t)c->backups.restore.who[1]);
	assert_false(member_is_restoring(&c->members.list[5]));
	has_read(c, 4);
	assert_int_equal(c->backups.restore.who[1], 5);
}

FIXTURE_TEST(the_run_returns_once_all_have_read)
{
	struct controller *c = *state;
	uint64_t last;

	c->run.iteration = COMMITTED;
	assert_true(restore_checkpoint(&c->backups));
	has_read(c, 4);
	assert_int_equal(c->backups.restore.state, RESTORING_CHECKPOINT);
	assert_int_equal(c->run.committed, COMMITTED);
	has_read(c, 1);
	assert_int_equal(c->backups.restore.state, RESTORING_NOTHING);
	assert_int_equal(c->run.committed, NEWER);
	assert_int_equal(c->run.iteration, NEWER); /* the next iteration has not begun */
	assert_int_equal(store_last_commit(c->run.record.store, &last, NULL), 0);
	assert_int_equal(last, NEWER);
	assert_int_equal(newest_recorded(c), NEWER);
	assert_int_equal(c->backups.saving.complete, NEWER);
	for (int i = 0; i < NODES; i++) {
		assert_int_equal(member_is_replica(&c->members.list[i]), i == 1 || i == 4);
		assert_false(member_is_restoring(&c->members.list[i]));
	}
	assert_true(requests_any(&c->run.requests)); /* the iteration restarts */
}

/* Before the controller uses an older checkpoint, it asks every node that may have the file. */
FIXTURE_TEST(an_unreadable_checkpoint_is_replaced_by_an_older_one)
{
	struct controller *c = *state;

	assert_true(restore_checkpoint(&c->backups));
	cannot_read(c, 1);
	assert_int_equal(c->backups.restore.state, RESTORING_CHECKPOINT);
	assert_int_equal(c->backups.restore.who[0], 0);
	cannot_read(c, 0);
	assert_int_equal(c->backups.restore.who[0], 2);
	cannot_read(c, 2);
	assert_int_equal(c->backups.restore.state, RESTORING_NOTHING);
	assert_int_equal(c->run.committed, COMMITTED);
	for (int i = 0; i < NODES; i++)
		assert_false(member_is_restoring(&c->members.list[i]));
	assert_non_null(strstr(newest_note(c), "unusable: an older one is used"));
	assert_true(restore_checkpoint(&c->backups));
	assert_int_equal(c->backups.restore.iteration, OLDER);
	cannot_read(c, 1);
	cannot_read(c, 0);
	cannot_read(c, 2);
	assert_non_null(strstr(newest_note(c), "unusable: there is no older one"));
}

/* Absent nodes were not asked to read. When such a node returns, the newer checkpoint may become
 * readable. */
FIXTURE_TEST(a_returning_node_may_read_the_newer_checkpoint)
{
	struct controller *c = *state;

	for (int i = 0; i < DATA; i++)
		c->members.list[i].state = MEMBER_DEAD;
	assert_true(restore_checkpoint(&c->backups));
	assert_int_equal(c->backups.restore.state, RESTORING_NOTHING);
	assert_true(restore_checkpoint(&c->backups));
	assert_false(restore_checkpoint(&c->backups)); /* there is no older checkpoint */
	c->members.list[1].state = MEMBER_JOINING;
	restore_look_again(&c->backups);
	assert_true(restore_checkpoint(&c->backups));
	assert_int_equal(c->backups.restore.iteration, NEWER);
	assert_int_equal(c->backups.restore.who[0], 1);
}

FIXTURE_TEST(a_node_that_dies_while_reading_is_replaced)
{
	struct controller *c = *state;

	assert_true(restore_checkpoint(&c->backups));
	c->members.list[1].state = MEMBER_DEAD;
	restore_turn(&c->backups);
	assert_int_equal(c->backups.restore.who[0], 0);
	assert_int_equal(c->backups.restore.who[1], 4);
	has_read(c, 0);
	has_read(c, 4);
	assert_int_equal(c->run.committed, NEWER);
}

/* A checkpoint that lacks a stage's file is ignored. */
FIXTURE_TEST(an_incomplete_checkpoint_is_ignored)
{
	struct controller *c = *state;

	saved(c, COMMITTED, 1, 4);
	assert_true(restore_checkpoint(&c->backups));
	assert_int_equal(c->backups.restore.iteration, NEWER);
}
