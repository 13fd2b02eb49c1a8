/* agreement_test.c - the controller drops nodes whose weights or corpus differ, and ignores reports
 * that it did not request. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "controller/iteration/commit.h"
#include "controller/joining/agents.h"
#include "controller/joining/resume.h"
#include "controller/loop.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/tests/under_way.h"
#include "controller/trust/agreement.h"
#include "controller/weights/assign.h"
#include "controller/weights/checkpoints.h"
#include "controller/weights/standbys.h"

enum { COMMITTED = 7, RIGHT = 1000, WRONG = 2000 };

/* Returns a controller after a commit: the next iteration is under way, and no node has reported
 * the hash of its weights. */
static struct controller *committed(void **state)
{
	struct controller *c = *state;

	c->run.committed = COMMITTED;
	c->run.iteration = COMMITTED + 1;
	for (int i = 0; i < NODES; i++) {
		struct member *m = &c->members.list[i];

		m->weights.stage = (uint8_t)(i / DATA);
		m->weights.iterations = m->weights.last_commit_sent = COMMITTED;
		m->weights.hash_agrees = true;
	}
	return c;
}

static void report_weights(struct controller *c, int node, uint8_t stage, uint64_t iteration,
			   uint64_t hash)
{
	struct msg_committed r = { iteration, stage, hash, 0, { { 0 } } };

	iteration_committed(&c->members, &c->members.list[node], &r);
	loop_act(&c->iteration);
}

static void report_hash(struct controller *c, int node, uint64_t hash)
{
	report_weights(c, node, (uint8_t)(node / DATA), COMMITTED, hash);
}

static bool is_apart(const struct controller *c, int node)
{
	const struct member *m = &c->members.list[node];

	assert_int_equal(m->weights.differ, !member_is_replica(m));
	return m->weights.differ;
}

struct stored {
	uint64_t hash[NODES];
	uint32_t n;
};

static int see(void *context, const struct store_hash *h)
{
	struct stored *s = context;

	s->hash[h->node] = h->hash;
	s->n++;
	return 0;
}

static struct stored stored(struct controller *c, uint64_t iteration)
{
	struct stored s = { .n = 0 };

	assert_int_equal(store_each_hash(c->run.record.store, iteration, see, &s, NULL), 0);
	return s;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* ---- after a commit ---- */

FIXTURE_TEST(a_replica_that_differs_from_the_majority_is_dropped)
{
	struct controller *c = committed(state);
	struct stored s;

	report_hash(c, 3, WRONG); /* being the first report does not make this hash right */
	report_hash(c, 4, RIGHT);
	assert_false(is_apart(c, 3));
	report_hash(c, 5, RIGHT);
	assert_true(is_apart(c, 3));
	assert_false(is_apart(c, 4) || is_apart(c, 5));
	assert_false(c->members.list[3].is_marked);
	/* Node 3 computed with other weights, so the iteration restarts */
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	assert_true(c->iteration.redo);
	s = stored(c, COMMITTED);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.hash[3], 0);
}

FIXTURE_TEST(hashes_are_compared_once_the_majority_is_certain)
{
	struct controller *c = committed(state);

	report_hash(c, 4, RIGHT);
	report_hash(c, 5, RIGHT);
	report_hash(c, 3, WRONG);
	assert_true(is_apart(c, 3));
}

FIXTURE_TEST(a_node_that_differs_twice_is_excluded)
{
	struct controller *c = committed(state);

	c->members.list[3].weights.differed_in = COMMITTED - 5;
	report_hash(c, 4, RIGHT);
	report_hash(c, 5, RIGHT);
	report_hash(c, 3, WRONG);
	assert_true(c->members.list[3].is_marked);
	assert_int_equal(c->members.list[3].state, MEMBER_FAILED);
}

/* The controller cannot tell which of the two hashes is right, so it removes one of the two nodes.
 * The stage then has a single replica, which differs from no other. */
FIXTURE_TEST(one_of_two_differing_replicas_is_removed)
{
	struct controller *c = committed(state);

	c->members.list[5].state = MEMBER_JOINING;
	report_hash(c, 4, WRONG);
	report_hash(c, 3, RIGHT);
	assert_int_equal(is_apart(c, 3) + is_apart(c, 4), 1);
}

FIXTURE_TEST(a_standby_copy_counts_in_the_majority)
{
	struct controller *c = committed(state);
	struct member *keeper = &c->members.list[0];

	c->members.list[5].state = MEMBER_JOINING;
	keeper->copy.stage = 1;
	keeper->copy.state = COPY_WHOLE;
	keeper->copy.iterations = COMMITTED;
	keeper->copy.hash = RIGHT;
	report_hash(c, 3, WRONG);
	report_hash(c, 4, RIGHT);
	assert_true(is_apart(c, 3));
	assert_false(is_apart(c, 4));
}

/* The copy's hash differs from the replica's. The controller drops the copy, whichever of the two
 * hashes is reported first. */
FIXTURE_TEST(a_copy_that_differs_is_dropped)
{
	struct controller *c = committed(state);
	struct member *keeper = &c->members.list[0];
	struct stored s;

	c->members.list[4].state = c->members.list[5].state = MEMBER_JOINING;
	for (int first = 0; first < 2; first++) {
		keeper->copy.stage = 1;
		keeper->copy.state = COPY_WHOLE;
		keeper->copy.last_commit_sent = COMMITTED;
		c->members.list[3].weights.hash = 0;
		report_weights(c, first ? 0 : 3, 1, COMMITTED, first ? WRONG : RIGHT);
		assert_int_equal(keeper->copy.state, COPY_WHOLE);
		report_weights(c, first ? 3 : 0, 1, COMMITTED, first ? RIGHT : WRONG);
		assert_int_equal(keeper->copy.state, COPY_FETCHING);
		assert_false(is_apart(c, 3));
		s = stored(c, COMMITTED);
		assert_int_equal(s.hash[0], 0);
		assert_int_equal(s.hash[3], RIGHT);
	}
}

/* A restarted controller receives the copy's hash before it knows any replica of the stage. The
 * controller compares the copy later, when a replica is live. */
FIXTURE_TEST(a_copy_reported_to_a_new_controller_is_compared)
{
	struct controller *c = committed(state);
	struct member *keeper = &c->members.list[0];
	struct stored s;

	c->run.phase = PHASE_GATHERING;
	c->run.resumed = true;
	keeper->copy.stage = 1;
	keeper->copy.state = COPY_WHOLE;
	keeper->copy.iterations = keeper->copy.last_commit_sent = COMMITTED;
	for (int i = 0; i < NODES; i++)
		c->members.list[i].state = MEMBER_JOINING;
	report_weights(c, 0, 1, COMMITTED, WRONG);
	s = stored(c, COMMITTED);
	assert_int_equal(s.hash[0], WRONG);
	c->members.list[3].state = MEMBER_LIVE;
	c->members.list[3].weights.hash = RIGHT;
	agreement_check_copies(&c->members);
	s = stored(c, COMMITTED);
	assert_int_equal(s.hash[0], 0);
	assert_int_equal(keeper->copy.state, COPY_FETCHING);
}

/* The stage has no replica left. Node 0 has the only complete copy of the stage, so the copy that
 * node 1 fetches is compared with it. */
FIXTURE_TEST(the_last_copy_of_a_stage_is_compared)
{
	struct controller *c = committed(state);
	struct member *keeper = &c->members.list[0], *m = &c->members.list[1];
	struct msg_kept k = { .assignment = 7, .stage = 1, .iteration = COMMITTED, .hash = WRONG };

	for (int i = 3; i < NODES; i++)
		c->members.list[i].state = MEMBER_JOINING;
	keeper->copy.stage = m->copy.stage = 1;
	keeper->copy.state = COPY_WHOLE;
	keeper->copy.iterations = COMMITTED;
	keeper->copy.hash = RIGHT;
	m->copy.order = k.assignment;
	standbys_kept(&c->members, m, &k);
	assert_int_equal(m->copy.state, COPY_FETCHING);
	m->copy.stage = 1; /* the node fetches the copy again */
	m->copy.order = ++k.assignment;
	k.hash = RIGHT;
	standbys_kept(&c->members, m, &k);
	assert_int_equal(m->copy.state, COPY_WHOLE);
}

FIXTURE_TEST(equal_replicas_are_not_removed)
{
	struct controller *c = committed(state);

	for (int i = 0; i < NODES; i++)
		report_hash(c, i, RIGHT + (uint64_t)(i / DATA));
	for (int i = 0; i < NODES; i++)
		assert_false(is_apart(c, i));
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_int_equal(stored(c, COMMITTED).n, NODES);
}

FIXTURE_TEST(new_weights_count_once_the_node_reports_them)
{
	struct controller *c = committed(state);
	struct msg_heartbeat h = { .beat = 1, .stage = 1, .committed = COMMITTED, .hash = RIGHT };

	report_hash(c, 3, RIGHT);
	members_heartbeat(&c->iteration, &c->members.list[3], &h);
	loop_act(&c->iteration);
	assert_false(is_apart(c, 3));
	h.beat = 2;
	h.hash = WRONG;
	members_heartbeat(&c->iteration, &c->members.list[3], &h);
	loop_act(&c->iteration);
	assert_true(is_apart(c, 3));
}

/* The node sends a heartbeat with its old hash, and then reports its new weights. The heartbeat
 * arrives after the report. The old hash must not count against the new weights. */
FIXTURE_TEST(a_late_heartbeat_describes_other_weights)
{
	struct controller *c = committed(state);
	struct msg_heartbeat h = { .beat = 1, .stage = 1, .committed = COMMITTED, .hash = WRONG };
	struct msg_ready r = { .assignment = 9, .stage = 1, .iteration = COMMITTED, .hash = RIGHT };
	struct member *m = &c->members.list[3];

	m->assigned.number = r.assignment;
	m->assigned.message_sequence = 12;
	m->state = MEMBER_SYNCING;
	members_ready(&c->members, m, &r);
	member_apply(&c->run, m, EVENT_ADMIT, "");
	m->assigned.message_sequence = 11;
	members_heartbeat(&c->iteration, m, &h);
	loop_act(&c->iteration);
	assert_false(is_apart(c, 3));
	m->assigned.message_sequence = 13;
	h.beat = 2;
	members_heartbeat(&c->iteration, m, &h);
	loop_act(&c->iteration);
	assert_true(is_apart(c, 3));
}

/* ---- joining ---- */

static void is_ready(struct controller *c, int node, uint64_t hash, uint64_t corpus)
{
	struct member *m = &c->members.list[node];
	struct msg_ready r = { .assignment = m->assigned.number = ++c->members.assignments,
			       .stage = (uint8_t)(node / DATA),
			       .iteration = c->run.committed,
			       .hash = hash,
			       .corpus_hash = corpus };

	m->state = m->state == MEMBER_JOINING ? MEMBER_SYNCING : m->state;
	members_ready(&c->members, m, &r);
}

FIXTURE_TEST(a_joiner_with_other_weights_is_refused)
{
	struct controller *c = committed(state);
	struct member *m = &c->members.list[3];
	const struct store_hash recorded = { COMMITTED, WRONG, 3, 1 };

	report_hash(c, 4, RIGHT);
	m->state = MEMBER_SYNCING;
	m->copy.stage = 1; /* node 3 read its weights from its copy */
	m->copy.state = COPY_WHOLE;
	m->copy.iterations = COMMITTED;
	/* the hash that node 3 reported for its copy */
	assert_int_equal(store_hashes(c->run.record.store, &recorded, 1, NULL), 0);
	is_ready(c, 3, WRONG, 0);
	assert_int_equal(stored(c, COMMITTED).hash[3], 0);
	assert_int_equal(stored(c, COMMITTED).hash[4], RIGHT);
	assert_false(member_joins(&c->run, m));
	assert_false(member_holds(&c->run, m, 1));
	assert_int_equal(m->copy.state, COPY_FETCHING);
	m->weights.differ = false; /* node 3 has now fetched the right weights */
	m->state = MEMBER_SYNCING;
	is_ready(c, 3, RIGHT, 0);
	assert_true(member_joins(&c->run, m));
}

static void all_come(struct controller *c)
{
	c->run.phase = PHASE_GATHERING;
	for (int i = 0; i < NODES; i++)
		c->members.list[i].state = MEMBER_JOINING;
}

/* An earlier controller ordered the joiner to load weights that lack the last commit. The joiner
 * reports that its copy has this commit. This report must not make the joiner ready. */
FIXTURE_TEST(a_report_of_a_copy_does_not_describe_the_weights)
{
	struct controller *c = committed(state);
	struct member *m = &c->members.list[4];
	struct msg_committed r = { COMMITTED, 1, RIGHT, 1, { { 0 } } };

	all_come(c);
	c->run.resumed = true;
	m->weights.iterations = COMMITTED - 1;
	m->copy.stage = 1;
	iteration_committed(&c->members, m, &r);
	assert_false(member_is_ready(m));
	assert_int_equal(m->weights.iterations, COMMITTED - 1);
	r.copy = 0;
	iteration_committed(&c->members, m, &r);
	assert_true(member_is_ready(m));
	assert_int_equal(m->weights.iterations, COMMITTED);
}

/* The corpus that is reported first does not win merely because it is first. */
FIXTURE_TEST(the_majority_decides_the_corpus)
{
	struct controller *c = *state;

	all_come(c);
	is_ready(c, 0, RIGHT, WRONG);
	is_ready(c, 1, RIGHT, RIGHT);
	is_ready(c, 2, RIGHT, RIGHT);
	is_ready(c, 3, RIGHT, WRONG); /* node 3 is not a data node, so its corpus does not matter */
	is_ready(c, 4, RIGHT, WRONG);
	assert_int_equal(c->run.training.corpus_hash, 0);
	agreement_before_start(&c->members);
	assert_int_equal(c->run.training.corpus_hash, RIGHT);
	assert_int_equal(store_run_of(c->run.record.store)->corpus_hash, RIGHT);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(c->members.list[i].is_marked, i == 0);
	is_ready(c, 1, RIGHT, WRONG); /* the majority has already decided the corpus */
	assert_true(c->members.list[1].is_marked);
}

FIXTURE_TEST(a_node_that_builds_other_weights_is_excluded)
{
	struct controller *c = *state;

	all_come(c);
	for (int i = 0; i < NODES; i++)
		is_ready(c, i, i == 3 ? WRONG : RIGHT, 7);
	agreement_before_start(&c->members);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(member_is_ready(&c->members.list[i]), i != 3);
	assert_false(member_joins(&c->run, &c->members.list[3]));
	/* If node 3 built its weights from the seed again, they would be wrong again, so the mark
	 * stays */
	members_assign(&c->members, &c->members.list[3], 1, false);
	assert_true(c->members.list[3].weights.differ);
}

static void comes_back(struct controller *c, int node, uint64_t hash)
{
	struct member *m = &c->members.list[node];

	m->hello = (struct msg_hello){ .run = c->run.id,
				       .stage = (uint8_t)(node / DATA),
				       .committed = COMMITTED,
				       .hash = hash,
				       .keeps = MSG_NO_STAGE };
	resume_member(&c->members, m);
}

/* n03 and n05 report different hashes. The record has the hash of the commit, so the controller
 * knows that n03 is wrong. */
FIXTURE_TEST(a_new_controller_compares_with_the_store)
{
	struct controller *c = committed(state);
	const struct store_hash recorded[] = { { COMMITTED, RIGHT, 4, 1 },
					       { COMMITTED, RIGHT, 5, 1 } };

	all_come(c);
	c->run.resumed = true;
	assert_int_equal(store_hashes(c->run.record.store, recorded, 2, NULL), 0);
	for (int i = 0; i < DATA; i++)
		comes_back(c, i, RIGHT);
	comes_back(c, 3, WRONG);
	comes_back(c, 5, RIGHT);
	agreement_before_start(&c->members);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(member_is_ready(&c->members.list[i]), i != 3 && i != 4);
	assert_true(c->members.list[3].weights.differ);
}

FIXTURE_TEST(without_a_recorded_hash_the_majority_counts)
{
	struct controller *c = committed(state);

	all_come(c);
	c->run.resumed = true;
	comes_back(c, 3, WRONG);
	comes_back(c, 4, RIGHT);
	comes_back(c, 5, RIGHT);
	agreement_before_start(&c->members);
	assert_true(c->members.list[3].weights.differ);
	assert_true(member_is_ready(&c->members.list[4]) && member_is_ready(&c->members.list[5]));
}

/* If a stage has only one node, its weights count as right, whatever hash the store has. */
FIXTURE_TEST(a_node_alone_in_its_stage_is_accepted)
{
	struct controller *c = committed(state);
	const struct store_hash recorded[] = { { COMMITTED, RIGHT, 4, 1 },
					       { COMMITTED, RIGHT, 5, 1 } };

	all_come(c);
	c->run.resumed = true;
	assert_int_equal(store_hashes(c->run.record.store, recorded, 2, NULL), 0);
	comes_back(c, 3, WRONG);
	agreement_before_start(&c->members);
	assert_true(member_is_ready(&c->members.list[3]));
}

/* ---- unsolicited reports ---- */

FIXTURE_TEST(a_hash_that_was_not_reported_is_not_recorded)
{
	struct controller *c = committed(state);

	c->members.list[3].weights.last_commit_sent = COMMITTED - 1;
	report_hash(c, 3, WRONG);                      /* this commit was not announced to node 3 */
	/* reports about an earlier or a later commit are not recorded either */
	report_weights(c, 4, 1, COMMITTED - 1, WRONG);
	report_weights(c, 4, 1, COMMITTED + 1, WRONG);
	report_weights(c, 4, 0, COMMITTED, WRONG); /* node 4 has no weights of that stage */
	assert_int_equal(stored(c, COMMITTED - 1).n + stored(c, COMMITTED).n +
				 stored(c, COMMITTED + 1).n,
			 0);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(c->members.list[i].weights.hash, 0);
	report_hash(c, 4, RIGHT);
	assert_int_equal(stored(c, COMMITTED).n, 1);
	/* The run went back to a checkpoint before this report of an undone commit arrived */
	c->run.committed = COMMITTED - 2;
	report_hash(c, 5, WRONG);
	assert_int_equal(stored(c, COMMITTED).n, 1);
}

FIXTURE_TEST(the_holder_reports_its_copy)
{
	struct controller *c = committed(state);
	struct member *m = &c->members.list[0];

	m->copy.stage = 1;
	m->copy.state = COPY_WHOLE;
	m->copy.last_commit_sent = COMMITTED;
	report_weights(c, 0, 1, COMMITTED, RIGHT);
	assert_int_equal(stored(c, COMMITTED).n, 1);
	m->copy.stage = -1;
}

/* The controller refused the copy because its weights differ, and the node fetches it again. The
 * report about the old copy arrives only now. */
FIXTURE_TEST(a_report_of_the_previous_copy_is_ignored)
{
	struct controller *c = committed(state);
	struct member *m = &c->members.list[0];
	struct msg_kept k = { .assignment = 7, .stage = 1, .iteration = COMMITTED, .hash = WRONG };

	report_hash(c, 3, RIGHT);
	m->copy.stage = 1;
	m->copy.order = k.assignment;
	m->weights.last_commit_sent = COMMITTED;
	standbys_kept(&c->members, m, &k);
	m->copy.stage = 1;
	m->copy.order = ++k.assignment;
	report_weights(c, 0, 1, COMMITTED, WRONG);
	assert_int_equal(stored(c, COMMITTED).hash[0], 0);
	k.hash = RIGHT;
	standbys_kept(&c->members, m, &k);
	assert_int_equal(m->copy.state, COPY_WHOLE);
	report_weights(c, 0, 1, COMMITTED, RIGHT);
	assert_int_equal(stored(c, COMMITTED).hash[0], RIGHT);
	m->copy.stage = -1;
}

static int count_shard(void *context, const struct store_shard *k)
{
	(void)k;
	++*(int *)context;
	return 0;
}

static int shards(struct controller *c)
{
	int n = 0;

	assert_int_equal(store_each_shard(c->run.record.store, count_shard, &n, NULL), 0);
	return n;
}

static void saves(struct controller *c, int node, uint8_t stage, uint64_t iteration)
{
	struct msg_saved r = {
		.iteration = iteration, .stage = stage, .hash = WRONG, .bytes = 100
	};

	checkpoint_saved(&c->backups, &c->members.list[node], &r);
}

/* The controller may die between the two writes. If the record were written first, it would name a
 * complete checkpoint that has no manifest. */
FIXTURE_TEST(the_manifest_is_written_before_the_record)
{
	struct controller *c = committed(state);
	struct store *other = NULL;
	char path[128], lock[128];

	snprintf(lock, sizeof(lock), "%s/run.lock", c->run.options.run_dir);
	snprintf(path, sizeof(path), "%s/checkpoints/%08d/manifest.json", c->run.options.run_dir,
		 COMMITTED);
	c->backups.saving.iteration = COMMITTED;
	for (int node = 0; node < NODES; node += DATA) {
		assert_int_equal(access(path, F_OK), -1);
		c->members.list[node].checkpoint.saving = COMMITTED;
		c->members.list[node].checkpoint.saving_stage = (uint8_t)(node / DATA);
		/* Another controller has opened the record, so this controller cannot write to it
		 * any more */
		if (node > 0) {
			assert_int_equal(unlink(lock), 0);
			assert_int_equal(store_resume(&other, c->run.options.run_dir, NULL), 0);
		}
		saves(c, node, (uint8_t)(node / DATA), COMMITTED);
	}
	assert_int_equal(shards(c), 1);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(c->backups.saving.last, 0);
	store_close(other);
}

FIXTURE_TEST(only_a_node_with_the_order_can_save)
{
	struct controller *c = committed(state);

	c->backups.saving.iteration = COMMITTED;
	c->members.list[3].checkpoint.saving = COMMITTED;
	c->members.list[3].checkpoint.saving_stage = 1;
	saves(c, 4, 1, COMMITTED);
	saves(c, 3, 0, COMMITTED);
	saves(c, 3, 1, COMMITTED - 1);
	assert_int_equal(shards(c), 0);
	assert_int_equal(c->backups.saving.n_saved, 0);
	saves(c, 3, 1, COMMITTED);
	assert_int_equal(shards(c), 1);
	assert_int_equal(c->backups.saving.n_saved, 1);
	saves(c, 3, 0, COMMITTED); /* node 3 has already answered its order to save */
	assert_int_equal(c->backups.saving.n_saved, 1);
}

/* A checkpoint fails once no replica is left that could still save the stage. The failure stays
 * known until a checkpoint is complete, so that it can be seen between the checkpoints. */
FIXTURE_TEST(a_checkpoint_that_nobody_can_write_fails)
{
	struct controller *c = committed(state);
	const struct checkpoint_failure *f = &c->backups.saving.failure;
	struct msg_saved r = { .iteration = COMMITTED, .stage = 1 };

	/* The text has a long path, the cause, and half of a character */
	snprintf(r.text, sizeof(r.text), "%0120d: disk full\xc3", 0);
	c->backups.saving.iteration = COMMITTED;
	for (int node = DATA; node < DATA + 2; node++) {
		c->members.list[node].checkpoint.saving = COMMITTED;
		c->members.list[node].checkpoint.saving_stage = 1;
	}
	checkpoint_saved(&c->backups, &c->members.list[DATA], &r);
	assert_int_equal(f->iteration, 0);
	checkpoint_saved(&c->backups, &c->members.list[DATA + 1], &r);
	assert_int_equal(f->iteration, COMMITTED);
	assert_int_equal(f->node, DATA + 1);
	assert_non_null(strstr(f->why, " did not save S1: 00"));
	assert_non_null(strstr(f->why, ": disk full"));
	assert_null(strchr(f->why, '\xc3')); /* JSON would not accept the text */
	c->run.committed++;
	c->run.options.checkpoint_every = 1;
	checkpoint_when_due(&c->backups);
	assert_int_equal(f->iteration, COMMITTED);
	c->backups.saving.iteration = COMMITTED + 1;
	for (int stage = 0; stage < NODES / DATA; stage++) {
		struct member *m = &c->members.list[stage * DATA];

		m->checkpoint.saving = COMMITTED + 1;
		m->checkpoint.saving_stage = (uint8_t)stage;
		saves(c, stage * DATA, (uint8_t)stage, COMMITTED + 1);
	}
	assert_int_equal(c->backups.saving.last, COMMITTED + 1);
	assert_int_equal(c->backups.saving.complete, COMMITTED + 1);
	assert_int_equal(f->iteration, 0);
}

/* A run that returned to an older checkpoint reaches the same iteration again, and saves it
 * again. If this second attempt to save fails, too, its own cause is reported, and not the cause
 * of the first failure. */
FIXTURE_TEST(a_second_failure_of_an_iteration_has_its_own_cause)
{
	struct controller *c = committed(state);
	struct checkpointing *s = &c->backups.saving;

	s->iteration = s->failure.iteration = COMMITTED;
	strcpy(s->failure.why, "disk full");
	c->run.committed++;
	c->run.options.checkpoint_every = 1;
	checkpoint_when_due(&c->backups);
	assert_non_null(strstr(s->failure.why, "stages were saved"));
}

/* All stages are on the disks, but the controller cannot write the manifest, so no run can begin
 * with this checkpoint. */
FIXTURE_TEST(a_checkpoint_without_a_manifest_is_not_complete)
{
	struct controller *c = committed(state);
	char path[128];

	snprintf(path, sizeof(path), "%s/checkpoints", c->run.options.run_dir);
	assert_int_equal(file_write(path, "x", 1, 0600, NULL), 0);
	c->backups.saving.iteration = COMMITTED;
	for (int node = 0; node < NODES; node += DATA) {
		c->members.list[node].checkpoint.saving = COMMITTED;
		c->members.list[node].checkpoint.saving_stage = (uint8_t)(node / DATA);
		saves(c, node, (uint8_t)(node / DATA), COMMITTED);
	}
	assert_int_equal(c->backups.saving.last, COMMITTED);
	assert_int_equal(c->backups.saving.complete, 0);
	assert_int_equal(c->backups.saving.failure.iteration, COMMITTED);
}
