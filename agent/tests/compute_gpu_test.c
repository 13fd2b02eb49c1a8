/* Tests the worker's jobs on a GPU that fails between two jobs. If the job after the failure
 * succeeded, its outdated numbers would enter the sum of the stage. The GPU is emulated, and its
 * failure is injected. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/execution/compute.h"
#include "agent/execution/tasks.h"
#include "agent/shared/worker.h"
#include "agent/sums/slices.h"
#include "agent/tests/lone_agent.h"
#include "base/tests/test.h"
#include "model/tests/emulated_device.h"

static size_t parameters; /* number of parameters of the prepared stage */

static struct compute *prepared(void)
{
	struct compute_setup setup = { .batch = 1, .sequence = 8, .slots = 1, .n_shards = 1,
				       .device = "cuda" };
	struct job j = { .kind = JOB_PREPARE, .prepare = { .stage = 1, .from_seed = true } };
	struct compute *c;

	assert_int_equal(model_preset("tiny", &setup.config, NULL, NULL), 0);
	assert_int_equal(compute_new(&c, &setup), 0);
	device_free_bytes = 700 << 20; /* less memory than the machine has */
	compute_run(c, &j);
	assert_int_equal(j.rc, 0);
	assert_true(j.prepare.device_free_bytes == device_free_bytes);
	parameters = j.prepare.parameters;
	return c;
}

static void run_and_fail(struct job *j)
{
	struct compute *c = prepared();

	fail_at_wait = true;
	compute_run(c, j);
	fail_at_wait = false;
	assert_int_equal(j->rc, -EIO);
	assert_non_null(strstr(j->err.text, "injected"));
	compute_free(c);
}

/* Runs a job of the sum of n replicas on a GPU that fails. */
static void fail_in_sum(enum job_kind kind, uint32_t n)
{
	static const uint16_t nodes[] = { 0, 1 };
	const size_t start = 0;
	const struct sum_codec fp32 = { .format = FORMAT_FP32, .starts = &start, .n = 1 };
	struct job j = { .kind = kind };

	compute_free(prepared());
	assert_int_equal(slices_new(&j.slices, 1, 0, nodes, n, 0, parameters, &fp32), 0);
	assert_int_equal(slices_own_part_in(j.slices), 0);
	if (kind == JOB_NORM)
		slices_summed(j.slices);
	run_and_fail(&j);
	if (kind == JOB_SUM)
		assert_true(!j.bodies || !j.bodies[0]);
	job_clear(&j);
	slices_free(j.slices);
}

TEST(test_gradient_is_not_sent)
{
	fail_in_sum(JOB_GRADIENT, 2);
}

TEST(test_sum_is_not_sent)
{
	fail_in_sum(JOB_SUM, 1);
	fail_in_sum(JOB_NORM, 1);
}

/* The encoded sum of a standby copy crosses the bus once, when it is decoded and checked. The step
 * then needs nothing from the machine's memory. */
TEST(test_a_copy_decodes_its_sum)
{
	static const uint16_t nodes[] = { 0, 1 };
	const size_t start = 0;
	const struct sum_codec q4 = { .format = FORMAT_Q4, .starts = &start, .n = 1 };
	struct job keep = { .kind = JOB_KEEP, .prepare = { .stage = 1 } };
	struct job norm = { .kind = JOB_NORM, .of_copy = true }, follow = { .kind = JOB_FOLLOW };
	struct compute *c = prepared();
	size_t bytes = 0, before;
	void *sum;

	compute_run(c, &keep);
	assert_int_equal(keep.rc, 0);
	assert_int_equal(slices_watch(&norm.slices, 1, 0, nodes, 2, parameters, &q4), 0);
	for (uint16_t i = 0; i < 2; i++) {
		sum = calloc(1, slices_bytes(norm.slices, i));
		assert_int_equal(slices_put_sum(norm.slices, i, i, 0, sum,
						slices_bytes(norm.slices, i)), 0);
		free(sum);
		bytes += slices_bytes(norm.slices, i);
	}
	before = bytes_put;
	compute_run(c, &norm);
	assert_int_equal(norm.rc, 0);
	assert_int_equal(bytes_put - before, bytes);
	follow.slices = norm.slices;
	follow.iteration = 1;
	compute_run(c, &follow);
	assert_int_equal(follow.rc, 0);
	assert_int_equal(bytes_put - before, bytes);
	fail_at_wait = true;
	compute_run(c, &norm);
	fail_at_wait = false;
	assert_int_equal(norm.rc, -EIO);
	slices_free(norm.slices);
	compute_free(c);
}

/* The input of a microbatch's task is copied to the GPU during the previous task. A task that is
 * measured must not wait for its input either. */
TEST(test_measures_tasks_as_they_run)
{
	struct job j = { .kind = JOB_MEASURE };
	struct compute *c = prepared();

	copies_run_early = true;
	puts_beside = 0;
	compute_run(c, &j);
	copies_run_early = false;
	assert_int_equal(j.rc, 0);
	assert_true(j.measured.forward_s > 0 && j.measured.backward_s > 0);
	/* There are three forward and three backward passes. During each of them the next input
	 * is copied. */
	assert_int_equal(puts_beside, 6);
	compute_free(c);
}

TEST(test_hash_is_not_reported)
{
	struct job j = { .kind = JOB_MEASURE };

	run_and_fail(&j);
}

TEST(test_state_is_not_given)
{
	struct job j = { .kind = JOB_STATE, .state = { .most = STATE_PART } };

	run_and_fail(&j);
	job_clear(&j);
}

TEST(test_pass_names_the_failed_call)
{
	struct job j = { .kind = JOB_TASK, .task = { .kind = TASK_FORWARD } };
	float in[8 * 1024] = { 0 };

	j.task.in.at = in;
	run_and_fail(&j);
	assert_non_null(strstr(j.err.text, "a task failed"));
	job_clear(&j);
}

/* The driver hangs at its first use, in PREPARE. The loop and its heartbeats continue. The agent
 * must give up after 40 times the time limit of a task. */
TEST(test_hang_at_first_use_ends)
{
	struct compute_setup setup = { .batch = 1, .sequence = 8, .slots = 1, .n_shards = 1,
				       .device = "cuda" };
	struct agent *a = lone_agent_new(1, 2);
	int64_t now_us = 1000000, began_us = now_us;

	assert_int_equal(model_preset("tiny", &setup.config, NULL, NULL), 0);
	assert_int_equal(compute_new(&a->compute, &setup), 0);
	assert_int_equal(worker_new(&a->worker, "test", NULL), 0);
	assert_int_equal(tasks_begin_run(a->modules.tasks, 1), 0);
	a->options.stuck_s = 2;
	a->run.welcomed = true;
	a->self.turn_us = a->stuck.job_from_us = now_us;
	a->job = (struct job){ .kind = JOB_PREPARE, .prepare = { .stage = 1, .from_seed = true } };
	atomic_store(&hang_at_wait, true);
	worker_start(a->worker, compute_run, a->compute, &a->job);
	while (!a->stuck.found && now_us - began_us < 200000000) {
		now_us += 1000000;
		agent_work(a, now_us);
	}
	atomic_store(&hang_at_wait, false);
	assert_true(a->stuck.found);
	assert_true(now_us - began_us >= 80000000);
	worker_free(a->worker);
	a->worker = NULL;
	compute_free(a->compute);
	lone_agent_free(a);
}
