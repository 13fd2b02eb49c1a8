/* rates_test.c - the learning rates of a run with a fixed length, with an end on command, and after
 * a restart of the controller. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "base/tests/test.h"
#include "controller/run/outcome.h"
#include "controller/run/rates.h"
#include "controller/tests/under_way.h"

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* Returns a run whose learning rate reaches 1 after 10 iterations of warm-up. */
static struct run *run_of(void **state, uint32_t schedule, uint64_t iterations)
{
	struct run *run = &((struct controller *)*state)->run;
	struct error err = { "" };

	model_preset("tiny", &run->training.model, &run->training.hyper, &err);
	run->training.hyper.adamw.lr = 1;
	run->training.hyper.warmup = 10;
	run->training.hyper.final_lr = 0.1f;
	run->training.hyper.iterations = 0;
	run->training.hyper.schedule = schedule;
	run->options.iterations = iterations;
	run->committed = 0;
	assert_int_equal(rates_begin(run, false, &err), 0);
	return run;
}

static bool order(struct run *run, uint32_t n)
{
	struct outcome o;

	if (!rates_may_finish(run, n, &o))
		return false;
	rates_plan_finish(run, n, &run->wanted.finish);
	return true;
}

static void check_rate(const struct run *run, uint64_t iteration, double rate)
{
	if (fabs((double)rates_of(run, iteration) - rate) > 1e-6)
		fail_msg("iteration %d: %g, expected %g", (int)iteration,
			 (double)rates_of(run, iteration), rate);
}

FIXTURE_TEST(settings_change_the_recipe_by_name)
{
	struct run *run = run_of(state, LR_COSINE, 100);
	struct options_training *o = &run->options.training;
	struct error err = { "" };

	o->n_set = 2;
	o->set[0] = "schedule=wsd";
	o->set[1] = "decay=30";
	run->training.hyper.iterations = 0;
	assert_int_equal(rates_begin(run, false, &err), 0);
	check_rate(run, 70, 1);
	check_rate(run, 100, 0.1);
	o->set[1] = "iterations=80"; /* the user has set the end of the schedule, so it is kept */
	o->set[0] = "decay=20";
	assert_int_equal(rates_begin(run, false, &err), 0);
	check_rate(run, 60, 1);
	check_rate(run, 80, 0.1);
	o->set[0] = "dim=64";
	assert_int_equal(rates_begin(run, false, &err), -EINVAL);
	assert_string_equal(err.text, "--set: dim: no such field of hyperparameters");
	o->set[0] = "lr";
	assert_int_equal(rates_begin(run, false, &err), -EINVAL);
	assert_string_equal(err.text, "--set: expected FIELD=VALUE, got \"lr\"");
	o->n_set = 0;
}

/* A run that begins with a checkpoint continues the iteration numbers of the checkpoint's
 * training. */
FIXTURE_TEST(a_schedule_counts_the_iterations_of_a_checkpoint)
{
	struct run *run = run_of(state, LR_WSD, 0);
	struct error err = { "" };

	run->training.origin.steps = 900;
	run->options.iterations = 100;
	assert_int_equal(rates_begin(run, true, &err), 0);
	assert_int_equal(run->training.hyper.iterations, 1000);
	/* A decay over a fifth of the 1,000 iterations would have begun before this run, so the
	 * decay begins with the run */
	check_rate(run, 1, 0.991);
	check_rate(run, 100, 0.1);
}

FIXTURE_TEST(a_run_without_a_length_ends_on_command)
{
	struct run *run = run_of(state, LR_WSD, 0);
	struct outcome o;

	run->committed = 8;
	/* The operator cannot order the end during the warm-up */
	assert_false(rates_may_finish(run, 20, &o));
	run->committed = 99;
	check_rate(run, 5000, 1);
	assert_int_equal(rates_last(run), 0);
	assert_false(rates_may_finish(run, 0, &o));
	assert_false(rates_may_finish(run, -1, &o));
	assert_true(order(run, 20));
	assert_int_equal(rates_last(run), 120);
	check_rate(run, 100, 1); /* iteration 100 is under way and keeps its rate */
	check_rate(run, 110, 0.55);
	check_rate(run, 120, 0.1);
	assert_false(order(run, 30));
	assert_true(rates_may_finish(run, 0, &o));
	run->committed = 100;
	/* The operator can withdraw the order until the rate begins to fall */
	assert_true(rates_may_finish(run, 0, &o));
	run->committed = 101;
	assert_false(rates_may_finish(run, 0, &o));
	/* with these hyperparameters the rate never falls by itself */
	run->training.hyper.final_lr = 1;
	check_rate(run, 120, 0.1);
}

/* The decay that the operator orders begins at the rate which the cosine has reached, so the rate
 * does not jump. */
FIXTURE_TEST(a_cosine_ends_on_command_too)
{
	struct run *run = run_of(state, LR_COSINE, 210);

	run->committed = 109;
	check_rate(run, 110, 0.55);
	assert_true(order(run, 10));
	assert_int_equal(rates_last(run), 120);
	check_rate(run, 110, 0.55);
	check_rate(run, 115, 0.325);
	check_rate(run, 120, 0.1);
}

FIXTURE_TEST(a_resumed_run_may_get_another_length)
{
	struct run *run = run_of(state, LR_WSD, 100);

	run->committed = 50;
	run->options.iterations = 200;
	rates_change_length(run);
	check_rate(run, 160, 1);
	check_rate(run, 200, 0.1);
	/* The new length replaces an order whose decay has not begun */
	assert_true(order(run, 10));
	run->options.iterations = 100;
	rates_change_length(run);
	assert_int_equal(rates_last(run), 100);
	check_rate(run, 80, 1);
	assert_true(order(run, 10));
	run->committed = 55; /* the rate has begun to fall, and must not rise again */
	run->options.iterations = 300;
	rates_change_length(run);
	assert_int_equal(rates_last(run), 300);
	check_rate(run, 61, 0.1);
	check_rate(run, 290, 0.1);
}

FIXTURE_TEST(a_successor_has_the_same_rates)
{
	struct run *run = run_of(state, LR_WSD_SQRT, 100);
	struct hyperparameters begun = run->training.hyper;
	float rates[200];
	json_t *saved, *damaged;

	run->committed = 50;
	run->options.iterations = 150;
	rates_change_length(run);
	assert_true(order(run, 40));
	for (uint64_t i = 0; i < 200; i++)
		rates[i] = rates_of(run, i + 1);
	saved = rates_save(run);
	run->training.hyper = begun;
	memset(&run->wanted.finish, 0, sizeof(run->wanted.finish));
	assert_int_equal(rates_load(run, saved), 0);
	for (uint64_t i = 0; i < 200; i++)
		assert_true(rates[i] == rates_of(run, i + 1));
	assert_int_equal(rates_last(run), 91);

	/* The record of an earlier version has no saved rates, and is accepted */
	assert_int_equal(rates_load(run, NULL), 0);
	damaged = json_deep_copy(saved);
	json_object_set_new(damaged, "finish", json_integer(-1));
	assert_int_equal(rates_load(run, damaged), -EINVAL);
	json_object_del(damaged, "finish");
	assert_int_equal(rates_load(run, damaged), -EINVAL);
	json_decref(damaged);
	json_decref(saved);
}

/* The training continues from a checkpoint at the end of a run, and keeps the low rate. */
FIXTURE_TEST(a_checkpoint_has_the_recipe_of_the_end)
{
	struct run *run = run_of(state, LR_WSD, 0);
	struct hyperparameters r;

	run->committed = 99;
	assert_true(order(run, 20));
	r = rates_hyperparameters(run);
	assert_int_equal(r.iterations, 0);
	run->committed = 120;
	r = rates_hyperparameters(run);
	assert_int_equal(r.iterations, 120);
	assert_float_equal(hyper_lr(&r, 110), 0.55, 1e-6);
	hyper_end_with(&r, 120, 500);
	assert_float_equal(hyper_lr(&r, 400), 0.1, 1e-6);
}
