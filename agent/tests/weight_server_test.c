/* Tests the serving of weights: a piece that a node requests several times is sent only once at a
 * time. */

#include <stdlib.h>

#include "agent/tensors/delay_queue.h"
#include "agent/tests/lone_agent.h"
#include "agent/weights/fetch.h"
#include "agent/weights/weight_server.h"
#include "base/tests/test.h"

enum { STAGE = 1, PIECES = 3, P = PIECES * FETCH_LEAST, COMMITTED = 5, TO = 2 };

/* An agent with a snapshot of its stage, and three other nodes. */
static struct agent *made(void)
{
	struct msg_fetch first = { .from = TO, .stage = STAGE };
	struct agent *a = lone_agent_new(0, 4);

	a->held.standing = STAND_READY;
	a->held.stage = STAGE;
	a->held.parameters = P;
	a->held.committed = COMMITTED;
	/* The first request makes the worker take the snapshot. */
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
	/* A repeated request after the answer has left is answered again. */
	assert_int_equal(after_asking(a, TO, 0), 3);
	unmake(a);
}

/* Ends a job that has copied a part of the stage. */
static float *copy_part(struct agent *a, struct job *job, size_t copied, int64_t now_us)
{
	float *out = job->out ? job->out : calloc(3 * P, sizeof(float));

	job->out = out;
	job->state.copied = copied;
	job->state.whole = copied == P;
	weight_server_job_done(a->modules.weight_server, job, now_us);
	assert_null(job->out);
	return out;
}

/* Pieces are sent once the last part is copied. If the weights change between two parts, the
 * snapshot begins again. */
TEST(a_snapshot_is_of_one_iteration)
{
	struct msg_fetch m = { .from = TO, .stage = STAGE };
	struct agent *a = made();
	struct weight_server *s = a->modules.weight_server;
	float *partial;

	weight_server_turn(s, 0);
	a->held.committed++;
	weight_server_ask(s, &m, 0);
	assert_true(weight_server_next_job(s, &a->job));
	assert_int_equal(a->job.state.copied, 0);
	partial = copy_part(a, &a->job, FETCH_LEAST, 0);
	assert_int_equal(after_asking(a, TO, 1), 1); /* the piece of the first snapshot */
	assert_true(weight_server_next_job(s, &a->job));
	assert_ptr_equal(a->job.out, partial);
	assert_int_equal(a->job.state.copied, FETCH_LEAST);
	copy_part(a, &a->job, 2 * FETCH_LEAST, 0);
	a->held.committed++;
	assert_true(weight_server_next_job(s, &a->job));
	assert_null(a->job.out);
	assert_int_equal(a->job.state.copied, 0);
	copy_part(a, &a->job, P, 0);
	assert_false(weight_server_next_job(s, &a->job));
	assert_int_equal(after_asking(a, TO, 2), 3);
	unmake(a);
}

/* The snapshot is kept between requests, so a slow node need not wait for a new snapshot each
 * time. */
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

/* A step voids a partial snapshot. A stage whose snapshot has more parts than an iteration has
 * tasks is copied within few iterations, even if no part follows another at once. */
TEST(a_snapshot_of_a_large_stage_is_completed)
{
	const size_t sizes[] = { (size_t)310 * STATE_PART, (size_t)12 * STATE_PART + 1 };
	const int tasks[] = { 32, 3 }; /* in an iteration */
	struct agent *a = made();
	struct weight_server *s = a->modules.weight_server;
	struct msg_fetch m = { .from = TO, .stage = STAGE };

	for (int i = 0; i < 2; i++) {
		bool is_whole = false;

		a->held.parameters = sizes[i];
		a->held.committed++;
		weight_server_ask(s, &m, 0);
		for (int n = 0; n < 4 && !is_whole; n++) {
			for (int k = 0; k < tasks[i] && !is_whole; k++) {
				size_t left;

				assert_true(weight_server_next_job(s, &a->job));
				left = sizes[i] - a->job.state.copied;
				a->job.state.copied +=
					left < a->job.state.most ? left : a->job.state.most;
				is_whole = a->job.state.whole = a->job.state.copied == sizes[i];
				a->job.out = a->job.out ? a->job.out : malloc(1);
				weight_server_job_done(s, &a->job, 0);
			}
			a->held.committed += !is_whole;
		}
		assert_true(is_whole);
	}
	/* Small parts let tasks run soon, so the size returns to the least one. */
	a->held.parameters = P;
	a->held.committed++;
	assert_true(weight_server_next_job(s, &a->job));
	assert_int_equal(a->job.state.most, STATE_PART);
	unmake(a);
}
