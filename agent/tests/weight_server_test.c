/* Tests how a node serves weights, and which parts of its stage it copies for this. Also tests
 * that a piece is sent only once if it is requested again before it has been sent. */

#include <stdlib.h>

#include "agent/tensors/delay_queue.h"
#include "agent/tests/lone_agent.h"
#include "agent/weights/fetch.h"
#include "agent/weights/weight_server.h"
#include "base/tests/test.h"

enum { STAGE = 1, PIECES = 3, P = PIECES * FETCH_LEAST, COMMITTED = 5, TO = 2 };

/* Makes an agent that has a snapshot of its stage, and three other nodes. */
static struct agent *made(void)
{
	struct msg_fetch first = { .from = TO, .stage = STAGE };
	struct agent *a = lone_agent_new(0, 4);

	a->held.standing = STAND_READY;
	a->held.stage = STAGE;
	a->held.parameters = P;
	a->held.committed = COMMITTED;
	/* The first request makes the worker copy a snapshot. */
	weight_server_ask(a->modules.weight_server, &first, 0);
	assert_true(weight_server_next_job(a->modules.weight_server, &a->job));
	assert_int_equal(a->job.kind, JOB_STATE);
	a->job.out = calloc(3 * P, sizeof(float));
	assert_non_null(a->job.out);
	a->job.state.whole = true;
	weight_server_job_done(a->modules.weight_server, &a->job, 0);
	return a;
}

static void unmake(struct agent *a)
{
	lone_agent_free(a);
}

static size_t after_asking(struct agent *a, uint16_t from, uint32_t piece)
{
	struct msg_fetch m = { .from = from, .stage = STAGE, .piece = piece };

	weight_server_ask(a->modules.weight_server, &m, 0);
	weight_server_turn(a->modules.weight_server, 0);
	return delay_queue_count(a->modules.delay_queue);
}

TEST(a_piece_is_sent_once_at_a_time)
{
	struct agent *a = made();
	struct parcel p;

	assert_int_equal(after_asking(a, TO, 0), 1);
	assert_int_equal(after_asking(a, TO, 0), 1);
	assert_int_equal(after_asking(a, TO, 1), 2);
	assert_int_equal(after_asking(a, TO + 1, 0), 3);
	assert_int_equal(delay_queue_take(a->modules.delay_queue, INT64_MAX, &p), 0);
	assert_int_equal(p.head.index, 0);
	parcel_free(&p);
	/* When the answer has left, a repeated request is answered again. */
	assert_int_equal(after_asking(a, TO, 0), 3);
	unmake(a);
}

/* Does the worker's job for the next part. Returns the index of the part's first float in each
 * array. */
static size_t copy_part(struct agent *a)
{
	struct weight_server *s = a->modules.weight_server;
	size_t from;

	assert_true(weight_server_next_job(s, &a->job));
	from = a->job.state.copied;
	if (!a->job.out)
		a->job.out = calloc(3 * a->held.parameters, sizeof(float));
	assert_non_null(a->job.out);
	weight_server_job_done(s, &a->job, 0);
	assert_null(a->job.out);
	return from;
}

TEST(a_commit_voids_the_parts)
{
	struct agent *a = made();
	struct weight_server *s = a->modules.weight_server;
	struct parcel p;

	weight_server_turn(s, 0);
	assert_false(weight_server_next_job(s, &a->job));
	a->held.committed++;
	/* Only the piece of the earlier iteration waits to be sent. */
	assert_int_equal(after_asking(a, TO, 1), 1);
	assert_int_equal(copy_part(a), 0);
	assert_int_equal(after_asking(a, TO, 2), 3);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(delay_queue_take(a->modules.delay_queue, INT64_MAX, &p), 0);
		assert_int_equal(p.head.index, i);
		assert_int_equal(p.head.iteration, i == 0 ? COMMITTED : COMMITTED + 1);
		parcel_free(&p);
	}
	unmake(a);
}

/* A fetching node must not wait until the whole stage is copied: an iteration may be too short for
 * that. */
TEST(a_piece_waits_only_for_its_part)
{
	struct agent *a = made();
	struct weight_server *s = a->modules.weight_server;
	size_t n;
	uint32_t second;

	weight_server_turn(s, 0);
	a->held.parameters = (size_t)8 * STATE_PART + 1;
	n = fetch_piece_floats(a->held.parameters);
	second = STATE_PART / (uint32_t)n;
	assert_int_equal(STATE_PART % n, 0);
	assert_int_equal(after_asking(a, TO, second), 1);
	assert_int_equal(copy_part(a), STATE_PART);
	assert_int_equal(a->job.state.most, STATE_PART);
	assert_int_equal(after_asking(a, TO, second + 1), 3);
	/* Pieces of another part, and then of the part that was copied before. */
	assert_int_equal(after_asking(a, TO, second - 1), 3);
	assert_int_equal(copy_part(a), 0);
	assert_int_equal(after_asking(a, TO, second + 2), 5);
	/* The last part has one float. */
	assert_int_equal(after_asking(a, TO, 8 * second), 5);
	assert_int_equal(copy_part(a), (size_t)8 * STATE_PART);
	/* No part has a piece that does not exist. */
	assert_int_equal(after_asking(a, TO, 8 * second + 1), 6);
	assert_false(weight_server_next_job(s, &a->job));
	/* A very large stage has sixteen parts. */
	a->held.parameters = (size_t)310 * STATE_PART;
	n = fetch_piece_floats(a->held.parameters);
	assert_int_equal(after_asking(a, TO, (uint32_t)(a->held.parameters / n) - 1), 6);
	assert_true(weight_server_next_job(s, &a->job));
	assert_null(a->job.out);
	assert_int_equal(a->job.state.copied, 15 * a->job.state.most);
	assert_in_range(a->held.parameters, a->job.state.copied + 1,
			a->job.state.copied + a->job.state.most);
	unmake(a);
}

/* The snapshot is kept between requests. Otherwise a slow node would wait for a new snapshot at
 * each request. */
TEST(a_snapshot_stays_while_it_is_requested)
{
	struct agent *a = made();
	struct msg_fetch m = { .from = TO, .stage = STAGE };

	for (int i = 0; i < 3; i++) {
		m.piece = (uint32_t)i % 2;
		weight_server_ask(a->modules.weight_server, &m, 1000000 + i * (int64_t)2000000);
		weight_server_turn(a->modules.weight_server, 1000000 + i * (int64_t)2000000);
	}
	weight_server_turn(a->modules.weight_server, 5000000 + 4900000);
	assert_false(weight_server_idle(a->modules.weight_server));
	weight_server_turn(a->modules.weight_server, 5000000 + 5100000);
	assert_true(weight_server_idle(a->modules.weight_server));
	unmake(a);
}
