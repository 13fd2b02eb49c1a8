/* Tests that results of nodes with this machine's kind of device are compared bit for bit, and
 * results of nodes with another kind of device within tolerances. */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/tests/test.h"
#include "verify/tests/play.h"

static struct stage_device here; /* this machine's CPU */

static void report_here(struct played *r)
{
	for (uint32_t n = 0; n < NODES; n++)
		r->orders[n].device = here.text;
}

/* Records that two nodes of one stage computed on GPUs of a kind that this machine does not
 * have. */
static void report_gpus(struct played *r)
{
	report_here(r);
	r->orders[2].device = "cuda:0:bf16 sm_90 H100 cuBLAS 13.1";
	r->orders[4].device = "cuda:3:bf16 sm_90 H100 cuBLAS 13.1";
}

static void report_gpus_and_change_loss(struct played *r)
{
	report_gpus(r);
	r->commit.loss *= 1.02f;
}

static void report_gpus_and_change_norm(struct played *r)
{
	report_gpus(r);
	r->commit.gradient_norm *= 0.85;
}

static void report_most_on_gpus(struct played *r)
{
	for (uint32_t n = 0; n < NODES; n++)
		r->orders[n].device = n < 2 ? here.text : "cuda:0 sm_90 H100 cuBLAS 13.1";
}

static void report_here_and_rerun(struct played *r)
{
	report_here(r);
	r->commit.repeats.rerun = 1;
}

static void change_loss_slightly(struct played *r)
{
	report_here(r);
	r->commit.loss *= 1.0001f;
}

static void change_lr(struct played *r)
{
	report_here(r);
	r->commit.lr = nextafterf(r->commit.lr, 1.0f);
}

/* Plays a run. In the iterations before `from`, nodes report this machine's kind of device. In
 * later iterations, nodes report the devices that `report` sets. `tamper` changes the record of
 * iteration 2. */
static struct compare_result reported_from(struct cluster *c, uint64_t from,
					   void (*report)(struct played *r),
					   void (*tamper)(struct played *r))
{
	struct error err;

	assert_int_equal(stage_device(&here, "cpu", &err), 0);
	for (uint64_t i = 1; i <= ITERATIONS; i++)
		play_iteration(c, i, false,
			       i == 2 && tamper ? tamper : i < from ? report_here : report);
	return play_compare(c);
}

static struct compare_result reported(struct cluster *c, void (*report)(struct played *r),
				      void (*tamper)(struct played *r))
{
	return reported_from(c, 1, report, tamper);
}

#define FIXTURE_TEST(name) TEST_WITH(name, play_set_up, play_tear_down)

FIXTURE_TEST(this_machines_kind_replays_bit_for_bit)
{
	struct compare_result r = reported(*state, report_here, NULL);

	assert_true(compare_equal(&r));
	assert_int_equal(r.tolerance_from, 0);
	assert_int_equal(r.devices.n, 1);
	assert_string_equal(r.devices.list[0].text, here.text);
	assert_int_equal(r.devices.list[0].nodes, NODES);
	assert_true(r.devices.list[0].matches);
}

FIXTURE_TEST(another_kind_is_held_to_tolerances)
{
	struct compare_result r = reported(*state, report_gpus, NULL);

	assert_true(compare_equal(&r));
	assert_int_equal(r.tolerance_from, 1);
	assert_true(r.tolerance == COMPARE_TOLERANCE_BF16);
	assert_string_equal(r.devices.text, here.text);
	assert_int_equal(r.devices.n, 2);
	assert_true(r.devices.list[0].matches && !r.devices.list[1].matches);
	assert_int_equal(r.devices.list[1].nodes, 2);
	assert_int_equal(r.weights.compared, ITERATIONS * NODES);
	/* The difference is tiny, because this machine computed the results of all nodes. */
	assert_true(r.norms.largest < 1e-6);
}

/* The majority of the nodes had a device that this machine lacks. In this case the device of the
 * remaining nodes recomputes. */
FIXTURE_TEST(the_device_of_most_nodes_may_be_missing_here)
{
	struct compare_result r = reported(*state, report_most_on_gpus, NULL);

	assert_true(compare_equal(&r));
	assert_string_equal(r.devices.text, here.text);
	assert_false(r.devices.list[0].matches);
	assert_true(r.devices.list[1].matches);
}

FIXTURE_TEST(bits_count_until_another_kind_computes)
{
	struct compare_result r = reported_from(*state, 3, report_gpus, NULL);

	assert_true(compare_equal(&r));
	assert_int_equal(r.tolerance_from, 3);
	play_tear_down(state);
	play_set_up(state);
	r = reported_from(*state, 3, report_gpus, change_loss_slightly);
	assert_false(compare_equal(&r));
	assert_int_equal(r.losses.first_differing, 2);
	play_tear_down(state);
	play_set_up(state);
	r = reported_from(*state, 3, report_gpus, change_lr);
	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, 2);
}

/* If microbatches ran again, a dead node may have computed outputs that other nodes used. The
 * dead node may have had another kind of device, although the record does not name this
 * device. */
FIXTURE_TEST(a_rerun_among_unlike_nodes_ends_the_bits)
{
	struct compare_result r = reported_from(*state, 3, report_gpus, report_here_and_rerun);

	assert_true(compare_equal(&r));
	assert_int_equal(r.tolerance_from, 2);
	play_tear_down(state);
	play_set_up(state);
	r = reported(*state, report_here, report_here_and_rerun);
	assert_true(compare_equal(&r));
	assert_int_equal(r.tolerance_from, 0);
}

FIXTURE_TEST(a_difference_beyond_the_tolerances_is_found)
{
	struct compare_result r = reported(*state, report_gpus, report_gpus_and_change_loss);

	assert_false(compare_equal(&r));
	assert_int_equal(r.losses.first_differing, 2);
	assert_int_equal(r.norms.differing, 0);
	play_tear_down(state);
	play_set_up(state);
	r = reported(*state, report_gpus, report_gpus_and_change_norm);
	assert_false(compare_equal(&r));
	assert_int_equal(r.losses.differing, 0);
	assert_int_equal(r.norms.first_differing, 2);
}

/* The hashes of a stage's replicas must agree even where tolerances apply. */
FIXTURE_TEST(replicas_that_differ_are_found)
{
	struct cluster *c = *state;
	struct store_hash h = { .iteration = 1, .node = 9, .stage = 2, .hash = 5 };
	struct compare_result r;

	assert_int_equal(store_hashes(c->store, &h, 1, NULL), 0);
	r = reported(c, report_gpus, NULL);
	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.differing, 1);
	assert_int_equal(r.weights.first_differing.node, 9);
}

/* The device that the option `device` names must recompute. */
FIXTURE_TEST(a_device_that_was_asked_for_recomputes)
{
	struct compare_options o = { .from = 1, .workers = 2, .device = "cpu:v9" };
	struct compare_result r = reported(*state, report_here, NULL);
	struct cluster *c = *state;
	struct error err = { "" };

	assert_int_equal(compare_run(c->store, &o, &r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cpu:v9"));
	o.device = "cpu";
	assert_int_equal(compare_run(c->store, &o, &r, &err), 0);
	assert_string_equal(r.devices.text, here.text);
	assert_true(compare_equal(&r));
}
