/* Tests the worker's jobs on a GPU that fails while it is idle. If such a job succeeded, its stale
 * numbers would enter the sum of the stage. The GPU is emulated, and its failure is injected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/execution/compute.h"
#include "model/tests/emulated_device.h"

static size_t parameters; /* their number in the prepared stage */

static struct compute *prepared(void)
{
	struct compute_setup setup = { .batch = 1, .sequence = 8, .slots = 1, .n_shards = 1,
				       .device = "cuda" };
	struct job j = { .kind = JOB_PREPARE, .prepare = { .stage = 1, .from_seed = true } };
	struct compute *c;

	assert_int_equal(model_preset("tiny", &setup.config, NULL, NULL), 0);
	assert_int_equal(compute_new(&c, &setup), 0);
	device_free_bytes = 700 << 20; /* less than the machine has */
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

static void test_gradient_is_not_sent(void **state)
{
	const uint16_t nodes[] = { 0 };
	const struct sum_codec fp32 = { .format = FORMAT_FP32 };
	struct slices *slices;
	struct job j = { .kind = JOB_GRADIENT };

	(void)state;
	compute_free(prepared());
	assert_int_equal(slices_new(&slices, 1, 0, nodes, 1, 0, parameters, &fp32), 0);
	j.slices = slices;
	run_and_fail(&j);
	job_clear(&j);
	slices_free(slices);
}

static void test_hash_is_not_reported(void **state)
{
	struct job j = { .kind = JOB_MEASURE };

	(void)state;
	run_and_fail(&j);
}

static void test_state_is_not_given(void **state)
{
	struct job j = { .kind = JOB_STATE };

	(void)state;
	run_and_fail(&j);
	job_clear(&j);
}

static void test_pass_names_the_failed_call(void **state)
{
	struct job j = { .kind = JOB_TASK, .task = { .kind = TASK_FORWARD } };
	float in[8 * 1024] = { 0 };

	(void)state;
	j.task.in = in;
	run_and_fail(&j);
	assert_non_null(strstr(j.err.text, "a task failed"));
	job_clear(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradient_is_not_sent),
		cmocka_unit_test(test_hash_is_not_reported),
		cmocka_unit_test(test_state_is_not_given),
		cmocka_unit_test(test_pass_names_the_failed_call),
	};

	return cmocka_run_group_tests(tests, emulated_setup, emulated_teardown);
}
