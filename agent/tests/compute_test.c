/* Tests that the worker prepares a stage on the requested device, or refuses with the reason. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/execution/compute.h"
#include "base/tests/test.h"

static struct compute *compute_with(const char *device, double quota)
{
	struct compute_setup setup = { .batch = 1, .sequence = 8, .slots = 1, .n_shards = 1,
				       .quota = quota };
	struct compute *c;

	assert_int_equal(model_preset("tiny", &setup.config, NULL, NULL), 0);
	snprintf(setup.device, sizeof(setup.device), "%s", device);
	assert_int_equal(compute_new(&c, &setup), 0);
	return c;
}

static struct compute *compute_on(const char *device)
{
	return compute_with(device, 0);
}

static struct job prepare(struct compute *c)
{
	struct job j = { .kind = JOB_PREPARE, .prepare = { .stage = 1, .from_seed = true } };

	compute_run(c, &j);
	return j;
}

/* An agent must compute on the device that HELLO reports. Another device could give other bits. */
TEST(test_does_not_fall_back)
{
	struct compute *c = compute_on("cuda:900");
	struct job j = prepare(c);

	assert_true(j.rc < 0);
	assert_non_null(strstr(j.err.text, "cuda:900"));
	compute_free(c);
}

TEST(test_reports_no_success)
{
	struct compute *c = compute_on("cpu");
	struct job j = prepare(c);

	assert_int_equal(j.rc, 0);
	assert_string_equal(j.err.text, "");
	compute_free(c);
}

TEST(test_refuses_an_unknown_device)
{
	struct compute *c = compute_on("tpu");
	struct job j = prepare(c);

	assert_true(j.rc < 0);
	assert_non_null(strstr(j.err.text, "tpu"));
	compute_free(c);
}

/* If a saved state will replace the weights, the worker must not draw initial weights, which
 * takes seconds for a large stage. If the stage needs its initial weights later, the worker must
 * draw them. */
TEST(test_draws_no_weights_for_a_saved_state)
{
	struct job saved = { .kind = JOB_PREPARE, .prepare = { .stage = 1 } };
	struct job drawn = { .kind = JOB_STATE, .state = { .most = STATE_PART } };
	struct job empty = drawn, again = drawn, seeded;
	struct compute *c = compute_on("cpu"), *d = compute_on("cpu");
	size_t size;

	seeded = prepare(d);
	compute_run(d, &drawn);
	size = 3 * seeded.prepare.parameters * sizeof(float);
	compute_run(c, &saved);
	compute_run(c, &empty);
	assert_int_equal(saved.rc, 0);
	assert_int_equal(saved.prepare.parameters, seeded.prepare.parameters);
	for (size_t i = 0; i < size / sizeof(float); i++)
		assert_true(empty.out[i] == 0);
	prepare(c);
	compute_run(c, &again);
	assert_memory_equal(again.out, drawn.out, size);
	job_clear(&drawn);
	job_clear(&empty);
	job_clear(&again);
	compute_free(c);
	compute_free(d);
}

/* A large stage is copied in parts, so that tasks can run between them. The parts together must
 * give the whole state. */
TEST(test_copies_a_state_in_parts)
{
	struct job whole = { .kind = JOB_STATE, .state = { .most = STATE_PART } };
	struct job part = { .kind = JOB_STATE };
	struct compute *c = compute_on("cpu");
	struct job j = prepare(c);
	size_t n = j.prepare.parameters, jobs = 0;

	compute_run(c, &whole);
	assert_true(whole.state.whole && whole.state.copied == n);
	part.state.most = n / 3 + 1; /* the last part is shorter */
	do {
		compute_run(c, &part);
		assert_int_equal(part.rc, 0);
		jobs++;
	} while (!part.state.whole);
	assert_int_equal(jobs, 3);
	assert_memory_equal(part.out, whole.out, 3 * n * sizeof(float));
	job_clear(&whole);
	job_clear(&part);
	compute_free(c);
}

/* Measures the stage with a quota of processors. */
static struct job measure_with(double quota)
{
	struct job m = { .kind = JOB_MEASURE };
	struct compute *c = compute_with("cpu", quota);

	assert_int_equal(prepare(c).rc, 0);
	compute_run(c, &m);
	assert_int_equal(m.rc, 0);
	compute_free(c);
	return m;
}

/* The test imitates a node that is allowed to use one thousandth of a processor. The kernel runs
 * a short pass of such a node at once, and then stops the node for a while. Plans need the mean
 * time of many passes, which includes the stops. */
TEST(test_measures_a_pass_over_the_quota)
{
	struct job all = measure_with(0), part = measure_with(1e-3);

	assert_true(all.measured.forward_s > 0 && all.measured.backward_s > 0);
	assert_true(part.measured.forward_s > 20 * all.measured.forward_s);
	assert_true(part.measured.backward_s > 20 * all.measured.backward_s);
}

/* If the file that should replace the stage cannot be read, the node keeps its complete stage. */
TEST(test_keeps_its_stage_without_the_file)
{
	struct compute *c = compute_on("cpu");
	struct job j = prepare(c), m = { .kind = JOB_MEASURE }, again = m;

	compute_run(c, &m);
	assert_int_equal(m.rc, 0);
	j = (struct job){
		.kind = JOB_PREPARE,
		.prepare = { .stage = 2 },
		.folder = "/nonexistent",
		.iteration = 4
	};
	compute_run(c, &j);
	assert_int_equal(j.rc, -ENOENT);
	assert_true(j.refused);
	assert_non_null(strstr(j.err.text, "/nonexistent"));
	compute_run(c, &again);
	assert_true(again.hash == m.hash);
	compute_free(c);
}

/* A stage that is mixed with its own state, with weight 1, is unchanged. If a bit of the state is
 * flipped, the job refuses the state. */
TEST(test_mixes_a_received_state_unchanged)
{
	struct compute *c = compute_on("cpu");
	struct job j = prepare(c), m = { .kind = JOB_MEASURE };
	struct job own = { .kind = JOB_STATE, .state = { .most = STATE_PART } };
	size_t n;

	assert_int_equal(j.rc, 0);
	compute_run(c, &m);
	compute_run(c, &own);
	assert_int_equal(own.rc, 0);
	n = j.prepare.parameters;
	own.out[n] = 5; /* the first element of each moment */
	own.out[2 * n] = 6;
	for (int flipped = 0; flipped < 2; flipped++) {
		struct job mix = { .kind = JOB_MIX,
				   .mix = { .state = own.out, .weight = 1, .first = true },
				   .expected_hash = m.hash };
		struct job again = { .kind = JOB_MEASURE };
		struct job there = { .kind = JOB_STATE, .state = { .most = STATE_PART } };

		own.out[1] += flipped ? 1e-3f : 0;
		compute_run(c, &mix);
		assert_int_equal(mix.rc, flipped ? -EBADMSG : 0);
		/* The agent then requests the state again. */
		assert_int_equal(mix.refused, flipped);
		assert_int_equal(mix.err.text[0] != '\0', flipped);
		compute_run(c, &again);
		assert_true(again.hash == m.hash);
		compute_run(c, &there);
		assert_true(there.out[n] == 5 && there.out[2 * n] == 6);
		job_clear(&there);
	}
	job_clear(&own);
	compute_free(c);
}
