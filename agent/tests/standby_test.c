/* Tests a standby copy while it is fetched: which sum the copy needs first, and in which cases
 * the agent gives up the fetch. */

#include <stdlib.h>

#include "agent/orders.h"
#include "agent/sums/slices.h"
#include "agent/tests/lone_agent.h"
#include "agent/weights/standby.h"
#include "agent/weights/standby_private.h"
#include "base/tests/test.h"

enum { STAGE = 2, SOURCE = 1, PIECES = 4, P = PIECES * FETCH_LEAST };

static float zeros[3 * FETCH_LEAST], sum[P];

/* Returns an agent that is fetching a copy of a stage from the stage's replicas, nodes 0 and 1. The
 * agent has no worker: the test does the worker's jobs and delivers the pieces. */
static struct agent *made(void)
{
	struct msg keep = { .type = MSG_KEEP, .u.keep = { 1, STAGE, SOURCE } };
	struct agent *a = lone_agent_new(2, 3);

	a->run.limits.n_stages = 3;
	standby_control(a->modules.standby, &keep, 0);
	assert_true(standby_next_job(a->modules.standby, &a->job));
	a->job.prepare.parameters = P;
	standby_job_done(a->modules.standby, &a->job, 0);
	assert_int_equal(a->modules.standby->standing, STANDBY_FETCHING);
	return a;
}

static void sum_of(struct agent *a, uint64_t iteration)
{
	static const uint16_t nodes[] = { 0, 1 };
	struct msg m = { .type = MSG_REDUCE };

	m.u.reduce = (struct msg_reduce){ iteration, 1, STAGE, 2, nodes, 0, NULL, 0, FORMAT_FP32 };
	standby_control(a->modules.standby, &m, 0);
	assert_int_equal(a->modules.standby->sum, STANDBY_SUM_ARRIVING);
}

static void piece(struct agent *a, uint32_t index, uint64_t iteration, int64_t now_us)
{
	struct msg m = { .type = MSG_TENSOR, .body = (const void *)zeros,
			 .body_size = sizeof(zeros) };

	m.u.tensor = (struct msg_tensor){ .kind = TENSOR_STATE, .from = SOURCE, .stage = STAGE,
					  .iteration = iteration, .index = index,
					  .hash = fetch_hash(zeros, 3 * FETCH_LEAST) };
	standby_piece_arrived(a->modules.standby, &m, now_us);
}

static bool holds(const struct agent *a, uint32_t pieces, uint64_t iteration)
{
	return a->modules.standby->fetch.n_held == pieces &&
	       a->modules.standby->fetch.iteration == iteration;
}

TEST(the_next_sum_fits)
{
	struct agent *a = made();

	sum_of(a, 7);
	piece(a, 0, 6, 1);
	assert_true(holds(a, 1, 6));
	assert_int_equal(slices_iteration(a->modules.standby->slices), 7);
	/* The piece is stored, but waits until the copy has made the step of iteration 7. */
	piece(a, 1, 7, 2);
	assert_true(holds(a, 2, 6));
	lone_agent_free(a);
}

/* The agent has only the sum of iteration 7. A piece of iteration 5 is refused, because the copy
 * would also need the sum of iteration 6. */
TEST(no_sum_is_skipped)
{
	struct agent *a = made();

	sum_of(a, 7);
	piece(a, 0, 5, 1);
	assert_int_equal(a->modules.standby->fetch.n_held, 0);
	assert_int_equal(slices_iteration(a->modules.standby->slices), 7);
	piece(a, 0, 6, 2);
	assert_true(holds(a, 1, 6));
	lone_agent_free(a);
}

TEST(a_past_sum_is_not_needed)
{
	struct agent *a = made();

	sum_of(a, 7);
	a->modules.standby->sum = STANDBY_SUM_DUE;
	piece(a, 0, 7, 1);
	assert_true(holds(a, 1, 7));
	assert_null(a->modules.standby->slices);
	assert_int_equal(a->modules.standby->sum, STANDBY_SUM_NONE);
	sum_of(a, 8);
	lone_agent_free(a);
}

static void put_sum(struct agent *a, uint16_t from)
{
	struct msg m = { .type = MSG_TENSOR, .body = (const void *)sum,
			 .body_size = sizeof(sum) / 2 };
	int rc;

	m.u.tensor = (struct msg_tensor){ .kind = TENSOR_SUM, .from = from, .stage = STAGE,
					  .iteration = 7, .attempt = 1, .index = from };
	assert_true(standby_sum_arrived(a->modules.standby, &m, &rc));
	assert_int_equal(rc, 0);
}

/* While the worker uses a sum, the sum must not be freed. */
TEST(a_sum_in_use_stays)
{
	struct agent *a = made();

	sum_of(a, 7);
	put_sum(a, 0);
	put_sum(a, 1);
	assert_true(standby_next_job(a->modules.standby, &a->job));
	assert_int_equal(a->job.kind, JOB_NORM);
	piece(a, 0, 7, 1);
	assert_int_equal(a->modules.standby->fetch.n_held, 0);
	assert_non_null(a->modules.standby->slices);
	standby_job_done(a->modules.standby, &a->job, 2);
	piece(a, 0, 7, 3);
	assert_true(holds(a, 1, 7));
	assert_null(a->modules.standby->slices);
	lone_agent_free(a);
}

static bool gives_up(struct agent *a, int64_t s)
{
	/* Reports count as dropped, because there is no controller. */
	uint64_t dropped = a->tell.tally.dropped;

	standby_turn(a->modules.standby, s * 1000000);
	assert_int_equal(a->tell.tally.dropped > dropped,
			 a->modules.standby->standing == STANDBY_NONE);
	return a->modules.standby->standing == STANDBY_NONE;
}

TEST(a_stalled_copy_gives_up)
{
	struct agent *a = made();

	assert_false(gives_up(a, 19));
	piece(a, 0, 6, 19000000);
	assert_false(gives_up(a, 20));
	assert_false(gives_up(a, 39));
	/* The stored piece is of iteration 6 and has missed a commit, so the new piece replaces it.
	 * The copy still has only one piece, which is no progress. */
	piece(a, 1, 7, 39000000);
	assert_true(holds(a, 1, 7));
	assert_false(gives_up(a, 40));
	assert_true(gives_up(a, 41));
	assert_int_equal(a->modules.standby->fetch.n, 0);
	lone_agent_free(a);
}

TEST(a_whole_copy_has_time)
{
	struct agent *a = made();

	for (uint32_t i = 0; i < PIECES; i++)
		piece(a, i, 6, 1000000);
	/* The copy has all pieces and waits only for the worker, so the agent does not give up
	 * the copy. */
	assert_false(gives_up(a, 100));
	assert_true(standby_next_job(a->modules.standby, &a->job));
	assert_int_equal(a->job.kind, JOB_FOLLOW);
	standby_job_done(a->modules.standby, &a->job, 100000000);
	assert_int_equal(a->modules.standby->standing, STANDBY_WHOLE);
	assert_false(gives_up(a, 200));
	lone_agent_free(a);
}

static void commit(struct agent *a, uint64_t iteration)
{
	struct msg m = { .type = MSG_COMMIT };

	m.u.commit = (struct msg_commit){ .iteration = iteration, .attempt = 1 };
	standby_control(a->modules.standby, &m, 0);
	assert_int_equal(a->modules.standby->sum, STANDBY_SUM_DUE);
}

/* The sum of a committed iteration does not arrive. While the worker reads the pieces, the pieces
 * must not be freed. */
TEST(pieces_in_use_stay)
{
	struct agent *a = made();

	sum_of(a, 7);
	commit(a, 7);
	for (uint32_t i = 0; i < PIECES; i++)
		piece(a, i, 6, 1000000);
	assert_true(standby_next_job(a->modules.standby, &a->job));
	assert_int_equal(a->job.kind, JOB_FOLLOW);
	assert_null(a->job.slices); /* the job stores pieces, and makes no step */
	assert_false(gives_up(a, 100));
	for (uint32_t i = 0; i < PIECES; i++)
		assert_true(a->job.follow.fresh[i]);
	assert_true(a->job.follow.state[3 * P - 1] == 0);
	standby_job_done(a->modules.standby, &a->job, 100000000);
	assert_true(gives_up(a, 101));
	lone_agent_free(a);
}

static void deliver(struct agent *a, const struct msg *m)
{
	unsigned char data[256];
	long size = msg_encode(m, data, sizeof(data));
	struct post_message p = { .kind = POST_DATA, .data = data, .size = (size_t)size };

	assert_true(size > 0);
	orders_take(a, &p, 0);
}

/* HELLO has reported the state to a new controller. The agent drops the waiting orders of the
 * previous controller, so that this report stays true. */
TEST(the_state_reported_to_a_new_controller_stays)
{
	struct post_message up = { .kind = POST_UP, .restarted = true };
	struct msg drop = { .type = MSG_KEEP, .u.keep = { 2, MSG_NO_STAGE, 0 } };
	struct agent *a = made();

	a->run.welcomed = true;
	for (uint32_t i = 0; i < PIECES; i++)
		piece(a, i, 6, 1000000);
	assert_true(standby_next_job(a->modules.standby, &a->job));
	standby_job_done(a->modules.standby, &a->job, 1000000);
	a->modules.standby->sum = STANDBY_SUM_STEPPING; /* the worker is making a step */
	deliver(a, &drop);
	orders_take(a, &up, 0);
	a->modules.standby->sum = STANDBY_SUM_NONE;
	orders_turn(a, 0);
	assert_int_equal(a->modules.standby->standing, STANDBY_WHOLE);
	deliver(a, &drop);
	orders_turn(a, 0);
	assert_int_equal(a->modules.standby->standing, STANDBY_WANTED);
	lone_agent_free(a);
}

/* An invalid order changes nothing. An order that is older than the order for the present copy
 * changes nothing either. */
TEST(an_invalid_order_for_a_copy_is_refused)
{
	const struct msg_keep bad[] = { { 2, 3, SOURCE }, { 2, STAGE, 3 } },
			      old = { 0, STAGE - 1, SOURCE };
	struct msg m = { .type = MSG_KEEP };
	struct agent *a = made();

	for (uint32_t i = 0; i < 2; i++) {
		m.u.keep = bad[i];
		standby_control(a->modules.standby, &m, 0);
		/* The invalid order was reported. */
		assert_int_equal(a->tell.tally.sequence, i + 1);
		assert_int_equal(a->modules.standby->standing, STANDBY_FETCHING);
	}
	m.u.keep = old;
	standby_control(a->modules.standby, &m, 0);
	assert_int_equal(a->modules.standby->standing, STANDBY_FETCHING);
	assert_int_equal(a->tell.tally.sequence, 2);
	m.u.keep = (struct msg_keep){ 2, MSG_NO_STAGE, 3 }; /* no stage: the source is ignored */
	standby_control(a->modules.standby, &m, 0);
	assert_int_equal(a->modules.standby->standing, STANDBY_WANTED);
	assert_int_equal(a->tell.tally.sequence, 2);
	lone_agent_free(a);
}
