/* Tests how an agent restores a stage that no node holds, from neighbouring stages or from a
 * file, and which orders are valid. */

#include <errno.h>
#include <stdlib.h>

#include "agent/tests/lone_agent.h"
#include "agent/weights/fetch.h"
#include "agent/weights/restore.h"
#include "base/tests/test.h"

enum { NODES = 4, STAGES = 3, STAGE = 1, ITERATION = 9, P = 10 };

/* The nodes that an order names. average() uses only the first two of them. */
static const uint16_t nodes[] = { 0, 3, 2 };
static const uint8_t stages[] = { 0, 2, 1 };
static const float weights[] = { 0.25f, 0.75f, 0 };
static const uint64_t hashes[] = { 11, 12 };

/* Makes an agent without a worker and a controller, whose newest assignment is 5. The tests check
 * only how many messages the agent sends. */
static int begin(void **state)
{
	struct agent *a = lone_agent_new(1, NODES);

	a->run.limits.n_stages = STAGES;
	a->held.parameters = P;
	a->held.stage = MSG_NO_STAGE;
	a->held.assign.assignment = 5;
	*state = a;
	return 0;
}

static int end(void **state)
{
	lone_agent_free(*state);
	return 0;
}

/* Returns an order to average the two neighbouring stages. */
static struct msg_restore average(void)
{
	return (struct msg_restore){ .assignment = 6,
				     .iteration = ITERATION,
				     .stage = STAGE,
				     .kind = RESTORE_AVERAGE,
				     .n_from = 2,
				     .nodes = nodes,
				     .stages = stages,
				     .weights = weights,
				     .hashes = hashes };
}

static struct msg_restore file(void)
{
	return (struct msg_restore){ .assignment = 6,
				     .iteration = ITERATION,
				     .stage = STAGE,
				     .kind = RESTORE_FILE,
				     .hash = 77 };
}

/* ---- orders ---- */

static void refuses(struct agent *a, const struct msg_restore *m)
{
	uint64_t sent = a->tell.tally.sequence;

	restore_begin(a->modules.restore, m);
	assert_int_equal(a->tell.tally.sequence, sent + 1);
	assert_false(restore_wanted(a->modules.restore));
	assert_int_equal(a->held.standing, STAND_UNASSIGNED);
	assert_int_equal(a->held.assign.assignment, 5);
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, end)

FIXTURE_TEST(invalid_orders_are_refused)
{
	static const uint16_t no_node[] = { 0, NODES };
	static const uint8_t no_stage[] = { 0, STAGES };
	struct agent *a = *state;
	struct msg_restore m = average();

	m.stage = STAGES;
	refuses(a, &m);
	m = average();
	m.n_from = 3;
	refuses(a, &m);
	m.n_from = 0;
	refuses(a, &m);
	m = average();
	m.nodes = no_node;
	refuses(a, &m);
	m = average();
	m.stages = no_stage;
	refuses(a, &m);
	assert_false(a->tell.end.leaving);
}

FIXTURE_TEST(the_newest_assignment_counts)
{
	struct agent *a = *state;
	struct msg_restore m = average();

	m.assignment = 4;
	restore_begin(a->modules.restore, &m);
	assert_int_equal(a->tell.tally.dropped, 1);
	assert_false(restore_wanted(a->modules.restore));
	/* The order has the number of the newest assignment, as when the controller repeats an
	 * order. */
	m.assignment = 5;
	restore_begin(a->modules.restore, &m);
	assert_true(restore_wanted(a->modules.restore));
	assert_int_equal(a->held.standing, STAND_WAITING);
	assert_int_equal(a->held.assign.stage, STAGE);
	restore_cancel(a->modules.restore);
	assert_false(restore_wanted(a->modules.restore));
	assert_int_equal(a->tell.tally.sequence, 0);
}

/* ---- average of the neighbours ---- */

/* Delivers a stage of P parameters, which is a single piece, with this value in every float. If
 * `whole` is false, the piece has a wrong hash. Returns true if the restore has taken the
 * message. */
static bool give(struct agent *a, uint16_t from, uint8_t stage, uint64_t iteration, float value,
		 bool whole)
{
	struct msg m = { .type = MSG_TENSOR };
	float body[3 * P];

	for (int i = 0; i < 3 * P; i++)
		body[i] = value;
	m.body = (const void *)body;
	m.body_size = sizeof(body);
	m.u.tensor = (struct msg_tensor){ .kind = TENSOR_STATE,
					  .from = from,
					  .stage = stage,
					  .iteration = iteration,
					  .hash = fetch_hash(body, 3 * P) + !whole };
	return restore_piece_arrived(a->modules.restore, &m, 0);
}

static struct agent *begin_average(void **state)
{
	struct agent *a = *state;
	struct msg_restore m = average();

	restore_begin(a->modules.restore, &m);
	a->held.standing = STAND_RESTORING;
	a->held.whole = true;
	return a;
}

FIXTURE_TEST(both_neighbours_are_mixed)
{
	struct agent *a = begin_average(state);
	struct job job = { .kind = JOB_PREPARE };

	for (uint32_t i = 0; i < 2; i++) {
		assert_false(restore_next_job(a->modules.restore, &job,
					      0)); /* the piece is still being fetched */
		assert_int_equal(a->held.standing, STAND_RESTORING);
		assert_true(give(a, nodes[i], stages[i], ITERATION, (float)i, true));
		assert_int_equal(a->tell.tally.refused, 0);
		assert_true(restore_next_job(a->modules.restore, &job, 0));
		assert_int_equal(job.kind, JOB_MIX);
		assert_true(job.mix.weight == weights[i]);
		assert_true(job.expected_hash == hashes[i]);
		assert_int_equal(job.mix.first, i == 0);
		assert_true(job.mix.state[0] == (float)i && job.mix.state[3 * P - 1] == (float)i);
		assert_false(a->held.whole);
		assert_false(
			/* There is no further job, because the worker already runs a job. */
			restore_next_job(a->modules.restore, &job, 0));
		assert_int_equal(restore_wanted(a->modules.restore), true);
		restore_job_done(a->modules.restore, &job, 0);
	}
	assert_false(restore_wanted(a->modules.restore));
	assert_int_equal(a->held.committed, ITERATION);
	assert_int_equal(a->held.standing, STAND_MEASURING);
	assert_int_equal(a->tell.tally.sequence, 0);
}

FIXTURE_TEST(unsolicited_weights_are_ignored)
{
	struct agent *a = begin_average(state);
	struct job job;

	assert_false(give(a, 0, 0, ITERATION, 1, true)); /* nothing is being fetched yet */
	assert_false(restore_next_job(a->modules.restore, &job, 0));
	assert_false(give(a, 3, 0, ITERATION, 1, true));
	assert_false(give(a, 0, 2, ITERATION, 1, true));
	assert_int_equal(a->tell.tally.refused, 0);
	assert_true(give(a, 0, 0, ITERATION - 1, 1, true));
	assert_true(give(a, 0, 0, ITERATION + 1, 1, true));
	assert_true(give(a, 0, 0, ITERATION, 1, false));
	assert_int_equal(a->tell.tally.refused, 3);
	assert_false(restore_next_job(a->modules.restore, &job, 0));
	a->held.standing = STAND_READY;
	assert_false(give(a, 0, 0, ITERATION, 1, true));
	a->held.standing = STAND_RESTORING;
	assert_true(give(a, 0, 0, ITERATION, 1, true));
	assert_true(restore_next_job(a->modules.restore, &job, 0));
	assert_int_equal(a->tell.tally.refused, 3);
}

/* ---- failures ---- */

/* If the restore fails, the agent reports the failure. If the agent's previous stage is complete,
 * the agent zeroes the gradient and continues with this stage. */
FIXTURE_TEST(a_failure_is_reported)
{
	struct agent *a = *state;

	for (int whole = 0; whole < 2; whole++) {
		struct job job = { .kind = JOB_MIX, .rc = -EIO };

		begin_average(state);
		a->held.whole = whole;
		a->requests.zero = false;
		restore_job_done(a->modules.restore, &job, 0);
		assert_int_equal(a->tell.tally.sequence, whole + 1);
		assert_false(restore_wanted(a->modules.restore));
		assert_int_equal(a->held.standing, whole ? STAND_READY : STAND_UNASSIGNED);
		assert_int_equal(a->requests.zero, whole);
		assert_int_equal(a->held.committed, 0);
	}
}

/* If another order arrives while a job runs, the result of the job is ignored. */
FIXTURE_TEST(the_result_of_a_replaced_order_is_ignored)
{
	struct agent *a = begin_average(state);
	struct job job = { .kind = JOB_MIX, .rc = -EIO };

	a->held.standing = STAND_WAITING;
	restore_job_done(a->modules.restore, &job, 0);
	assert_int_equal(a->tell.tally.sequence, 0);
	assert_true(restore_wanted(a->modules.restore));
	assert_int_equal(a->held.standing, STAND_WAITING);
}

/* ---- from a file ---- */

FIXTURE_TEST(a_file_is_read_from_the_named_folder)
{
	struct agent *a = *state;
	struct msg_restore m = file();
	const struct restore_uses uses = { .tell = &a->tell,
					   .run = &a->run,
					   .held = &a->held,
					   .requests = &a->requests,
					   .run_dir = "/run/dir" };
	struct job job;

	restore_free(a->modules.restore);
	a->modules.restore = restore_new(&uses);
	restore_begin(a->modules.restore, &m);
	a->held.standing = STAND_RESTORING;
	a->held.whole = true;
	assert_true(restore_next_job(a->modules.restore, &job, 0));
	assert_int_equal(job.kind, JOB_RESTORE);
	assert_string_equal(job.folder, "/run/dir");
	assert_int_equal(job.iteration, ITERATION);
	assert_int_equal(job.expected_hash, 77);
	assert_false(a->held.whole);
	job.rc = 0;
	restore_job_done(a->modules.restore, &job, 0);
	assert_int_equal(a->held.committed, ITERATION);
	assert_int_equal(a->held.standing, STAND_MEASURING);
}

FIXTURE_TEST(without_a_folder_there_is_no_file)
{
	struct agent *a = *state;
	struct msg_restore m = file();
	struct job job = { .kind = JOB_PREPARE };

	restore_begin(a->modules.restore, &m);
	a->held.standing = STAND_RESTORING;
	assert_false(restore_next_job(a->modules.restore, &job, 0));
	assert_int_equal(a->tell.tally.sequence, 1);
	assert_false(restore_wanted(a->modules.restore));
	assert_int_equal(a->held.standing, STAND_UNASSIGNED);
	/* Without a folder for checkpoints, an average is still possible, because it needs no
	 * file. */
	m = average();
	restore_begin(a->modules.restore, &m);
	assert_true(restore_name_file(a->modules.restore, &job, 0));
	assert_null(job.folder);
	assert_int_equal(a->tell.tally.sequence, 1);
}
