/* Tests how a node serves weights. If another node requests a piece again and the piece has not
 * been sent yet, the piece is sent only once. */

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

/* Ends a job that has copied the stage up to `copied` floats of each array. */
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

/* Pieces are sent only after the last part is copied. If the weights change between two parts, the
 * copy begins again, so a snapshot has the weights of one iteration. */
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
	/* Only the piece of the first snapshot waits to be sent, because the new request is not
	 * answered yet. */
	assert_int_equal(after_asking(a, TO, 1), 1);
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

/* A step voids an unfinished snapshot. If a large stage has more parts than an iteration has
 * tasks, a step would void every snapshot. Therefore the parts must grow, so that a snapshot is
 * completed within a few iterations. */
TEST(a_snapshot_of_a_large_stage_is_completed)
{
	const size_t sizes[] = { (size_t)310 * STATE_PART, (size_t)12 * STATE_PART + 1 };
	/* tasks in an iteration; one part is copied after each task */
	const int tasks[] = { 32, 3 };
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
	/* The next snapshot begins with small parts again, because a task waits until the worker
	 * has copied a part. */
	a->held.parameters = P;
	a->held.committed++;
	assert_true(weight_server_next_job(s, &a->job));
	assert_int_equal(a->job.state.most, STATE_PART);
	unmake(a);
}
