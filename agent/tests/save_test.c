/* Tests the orders to an agent to save its stage: which orders it accepts and which it refuses,
 * also while a checkpoint is written. The test can delay the thread that writes. */
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "agent/shared/tell.h"
#include "base/tests/test.h"

void noted_tell(struct tell *t, struct msg *m, enum post_flags flags, int64_t now_us);

#define checkpoint_save_stage held_save_stage
#define checkpoint_prune      noted_prune
#define tell_controller       noted_tell
#include "agent/shared/worker.h"
#include "agent/tests/lone_agent.h"
#include "agent/weights/save.c"
#undef tell_controller

static char reason[160]; /* text of the last MSG_SAVED */

void noted_tell(struct tell *t, struct msg *m, enum post_flags flags, int64_t now_us)
{
	assert_int_equal(m->type, MSG_SAVED);
	snprintf(reason, sizeof(reason), "%.*s", (int)sizeof(reason) - 1, m->u.saved.text);
	tell_controller(t, m, flags, now_us);
}

/* The calls that deleted checkpoints, in their order. Each call deletes the checkpoints of a
 * range of iterations. */
static struct {
	uint64_t after, before;
} pruned[2];
static int n_pruned;

void noted_prune(const char *run, uint64_t after, uint64_t before)
{
	(void)run;
	assert_true(n_pruned < 2);
	pruned[n_pruned].after = after;
	pruned[n_pruned++].before = before;
}

static sem_t release;

/* Replaces the function that writes a checkpoint. The replacement waits until the test releases
 * it. Without a release, the replacement fails after 20 s. A test whose loop waits by mistake
 * therefore ends. */
int held_save_stage(const char *run_dir, const struct model_config *config, uint32_t stage,
		    uint64_t iteration, const float *state, bool moments, uint64_t *hash,
		    uint64_t *bytes, struct error *err)
{
	struct timespec by;

	(void)run_dir, (void)config, (void)stage, (void)iteration, (void)state, (void)moments;
	clock_gettime(CLOCK_REALTIME, &by);
	by.tv_sec += 20;
	if (sem_timedwait(&release, &by) != 0)
		return error_set(err, -ETIMEDOUT, "nobody released the writer");
	*hash = *bytes = 1;
	return 0;
}

enum { STAGE = 1, COMMITTED = 4 };

/* Makes an agent without a worker and a controller. The tests check only how many messages the
 * agent sends. */
static int begin(void **state)
{
	struct agent *a = lone_agent_new(1, 3);
	struct error err;

	a->held.standing = STAND_READY;
	a->held.stage = STAGE;
	a->held.committed = COMMITTED;
	assert_int_equal(save_new(&a->modules.save, &a->tell, &a->run, &a->held, "/run/dir", &err),
			 0);
	*state = a;
	return 0;
}

static int end(void **state)
{
	struct agent *a = *state;

	save_free(a->modules.save);
	lone_agent_free(a);
	return 0;
}

static void save(struct agent *a, uint64_t iteration)
{
	struct msg_save m = { .iteration = iteration };

	save_begin(a->modules.save, &m, 0);
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, end)

/* Releases the writer, waits until it has ended, and runs a turn. */
static void end_writing(struct agent *a)
{
	struct pollfd p = { .fd = save_fd(a->modules.save), .events = POLLIN };

	sem_post(&release);
	assert_int_equal(poll(&p, 1, 60000), 1);
	save_turn(a->modules.save, 0);
	assert_false(save_busy(a->modules.save));
	assert_int_equal(poll(&p, 1, 0), 0);
	sem_destroy(&release);
}

FIXTURE_TEST(held_weights_are_saved)
{
	struct agent *a = *state;
	struct job job;

	save(a, COMMITTED);
	assert_true(save_wanted(a->modules.save));
	assert_true(save_next_job(a->modules.save, &job));
	assert_int_equal(job.kind, JOB_STATE);
	assert_true(job.for_checkpoint);
	assert_false(save_next_job(a->modules.save, &job));
	assert_int_equal(a->tell.tally.sequence, 0);
}

/* The stage is copied in parts. Writing starts after the last part. If the run ends between two
 * parts, nothing is written. */
FIXTURE_TEST(parts_make_up_a_checkpoint)
{
	struct agent *a = *state;
	struct job job;
	float *copy;

	for (int leaves = 1; leaves >= 0; leaves--) {
		assert_int_equal(sem_init(&release, 0, 0), 0);
		save(a, COMMITTED);
		assert_false(save_next_part(a->modules.save, &job));
		assert_true(save_next_job(a->modules.save, &job));
		copy = job.out = calloc(3, sizeof(float));
		job.state.copied = 7;
		save_job_done(a->modules.save, &job, 0);
		assert_null(job.out);
		assert_false(save_busy(a->modules.save));
		if (leaves)
			save_forget(a->modules.save);
		assert_int_equal(save_next_part(a->modules.save, &job), !leaves);
		sem_destroy(&release);
	}
	assert_true(job.for_checkpoint && job.out == copy && job.state.copied == 7);
	assert_int_equal(sem_init(&release, 0, 0), 0);
	job.state.whole = true;
	save_job_done(a->modules.save, &job, 0);
	assert_true(save_busy(a->modules.save));
	end_writing(a);
}

FIXTURE_TEST(other_weights_are_not_saved)
{
	struct agent *a = *state;

	save(a, COMMITTED - 1);
	assert_int_equal(a->tell.tally.sequence, 1);
	assert_false(save_wanted(a->modules.save));
}

/* A restarted controller may repeat the order during the save. The agent must not refuse the
 * repeated order, and answers when the file is written. */
FIXTURE_TEST(a_repeated_order_during_a_save_is_not_refused)
{
	struct agent *a = *state;
	struct job job;

	save(a, COMMITTED);
	save(a, COMMITTED);
	assert_true(save_next_job(a->modules.save, &job));
	save(a, COMMITTED);
	assert_int_equal(a->tell.tally.sequence, 0);
	a->held.committed++;
	save(a, COMMITTED + 1);
	assert_int_equal(a->tell.tally.sequence, 1);
}

/* The agent got another stage before the worker was free, so it must not save. */
FIXTURE_TEST(replaced_weights_are_not_saved)
{
	struct agent *a = *state;
	struct job job;

	for (int other = 0; other < 2; other++) {
		a->held.stage = STAGE;
		a->held.committed = COMMITTED;
		save(a, COMMITTED);
		a->held.standing = STAND_PREPARING;
		assert_false(save_next_job(a->modules.save, &job));
		assert_true(save_wanted(a->modules.save));
		a->held.stage = other ? STAGE + 1 : STAGE;
		a->held.committed = other ? COMMITTED : COMMITTED - 2;
		a->held.standing = STAND_READY;
		assert_false(save_next_job(a->modules.save, &job));
		assert_false(save_wanted(a->modules.save));
		assert_int_equal(a->tell.tally.sequence, other + 1);
	}
}

/* Orders a checkpoint and copies the stage, so that writing begins. The writing lasts until the
 * test releases it. */
static void begin_writing_after(struct agent *a, uint64_t last)
{
	struct msg_save m = { COMMITTED, last > 0 ? last - 1 : 0, last };
	struct job job;

	n_pruned = 0;
	assert_int_equal(sem_init(&release, 0, 0), 0);
	save_begin(a->modules.save, &m, 0);
	assert_true(save_next_job(a->modules.save, &job));
	job.out = calloc(1, sizeof(float));
	job.state.whole = true;
	save_job_done(a->modules.save, &job, 0);
	assert_true(save_busy(a->modules.save));
}

static void begin_writing(struct agent *a)
{
	begin_writing_after(a, 0);
}

/* A node that cannot write makes checkpoints incomplete. The files of all other nodes are then
 * useless, and would fill these nodes' disks. */
FIXTURE_TEST(incomplete_checkpoints_are_deleted)
{
	struct agent *a = *state;

	begin_writing(a); /* no checkpoint is complete */
	end_writing(a);
	assert_int_equal(n_pruned, 1);
	assert_int_equal(pruned[0].before, 0);
	begin_writing_after(a, 2);
	end_writing(a);
	assert_int_equal(n_pruned, 2);
	assert_int_equal(pruned[0].before, 1);
	assert_int_equal(pruned[1].after, 2);
	assert_int_equal(pruned[1].before, COMMITTED);
}

FIXTURE_TEST(a_written_checkpoint_is_reported)
{
	struct agent *a = *state;

	begin_writing(a);
	save_turn(a->modules.save, 0);
	assert_int_equal(a->tell.tally.sequence, 0);
	end_writing(a);
	assert_int_equal(a->tell.tally.sequence, 1);
}

/* The loop must continue while a checkpoint is written for a run that the node has left. */
FIXTURE_TEST(a_forgotten_checkpoint_delays_nothing)
{
	struct agent *a = *state;
	struct job job;

	begin_writing(a);
	save_forget(a->modules.save);
	assert_true(save_busy(a->modules.save));
	save(a, COMMITTED);
	assert_int_equal(a->tell.tally.sequence, 1); /* refused: the writer is busy */
	end_writing(a);
	assert_int_equal(a->tell.tally.sequence, 1);
	save(a, COMMITTED);
	assert_true(save_next_job(a->modules.save, &job));
}

/* If writing hangs, an agent that leaves waits only for a limited time. */
FIXTURE_TEST(a_writer_that_hangs_does_not_keep_an_agent)
{
	struct agent *a = *state;
	struct error err;
	int status;

	assert_int_equal(worker_new(&a->worker, "test", &err), 0);
	begin_writing(a);
	tell_last(&a->tell, 0, 0);
	assert_false(agent_over(a, &status, 5000000));
	assert_true(agent_over(a, &status, 60000000));
	assert_true(agent_stuck(a));
	end_writing(a);
	assert_false(agent_stuck(a));
	worker_free(a->worker);
}

/* The copy of the stage may fail, because of the device or missing memory. The controller gets the
 * job's error. */
FIXTURE_TEST(a_failed_copy_is_reported_with_its_cause)
{
	struct agent *a = *state;
	struct job job;

	save(a, COMMITTED);
	assert_true(save_next_job(a->modules.save, &job));
	job.rc = error_set(&job.err, -EIO, "the device failed");
	save_job_done(a->modules.save, &job, 0);
	assert_string_equal(reason, "the device failed");
	assert_false(save_wanted(a->modules.save));
}
