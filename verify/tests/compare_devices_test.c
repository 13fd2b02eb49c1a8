/* What computed it: devices of this kind are held to bits, others to limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "verify/tests/play.h"

static struct stage_device here; /* this machine's CPU */

static void say_here(struct record *r)
{
	for (uint32_t n = 0; n < NODES; n++)
		r->orders[n].device = here.text;
}

/* Two of a stage's nodes on GPUs of one kind, which this machine has not. */
static void say_gpus(struct record *r)
{
	say_here(r);
	r->orders[2].device = "cuda:0:bf16 sm_90 H100 cuBLAS 13.1";
	r->orders[4].device = "cuda:3:bf16 sm_90 H100 cuBLAS 13.1";
}

static void say_gpus_and_change_loss(struct record *r)
{
	say_gpus(r);
	r->commit.loss *= 1.02f;
}

static void say_gpus_and_change_norm(struct record *r)
{
	say_gpus(r);
	r->commit.gradient_norm *= 0.85;
}

/* In every iteration, unlike other tampering. */
static struct compare_result said(struct cluster *c, void (*say)(struct record *r),
				  void (*tamper)(struct record *r))
{
	struct error err;

	assert_int_equal(stage_device(&here, "cpu", &err), 0);
	for (uint64_t i = 1; i <= ITERATIONS; i++)
		play_iteration(c, i, false, i == 2 && tamper ? tamper : say);
	return play_compare(c);
}

static void this_machines_kind_replays_bit_for_bit(void **state)
{
	struct compare_result r = said(*state, say_here, NULL);

	assert_true(compare_equal(&r));
	assert_int_equal(r.unlike_from, 0);
	assert_int_equal(r.n_kinds, 1);
	assert_string_equal(r.kinds[0].device, here.text);
	assert_int_equal(r.kinds[0].nodes, NODES);
	assert_true(r.kinds[0].exact);
}

static void another_kind_is_held_to_limits(void **state)
{
	struct compare_result r = said(*state, say_gpus, NULL);

	assert_true(compare_equal(&r));
	assert_int_equal(r.unlike_from, 1);
	assert_true(r.unlike_limit == COMPARE_UNLIKE_BF16_LIMIT);
	assert_int_equal(r.n_kinds, 2);
	assert_true(r.kinds[0].exact && !r.kinds[1].exact);
	assert_int_equal(r.kinds[1].nodes, 2);
	assert_string_equal(r.kinds[1].here, here.text);
	assert_int_equal(r.announced, ITERATIONS * NODES);
	assert_true(r.worst_norm < 1e-6); /* it was this machine that computed */
}

static void beyond_the_limits_is_found(void **state)
{
	struct compare_result r = said(*state, say_gpus, say_gpus_and_change_loss);

	assert_false(compare_equal(&r));
	assert_int_equal(r.first_loss_iteration, 2);
	assert_int_equal(r.norms_off, 0);
	play_tear_down(state);
	play_set_up(state);
	r = said(*state, say_gpus, say_gpus_and_change_norm);
	assert_false(compare_equal(&r));
	assert_int_equal(r.losses_off, 0);
	assert_int_equal(r.first_norm_iteration, 2);
}

/* Whatever computed the gradients, replicas must agree. */
static void replicas_that_differ_are_found(void **state)
{
	struct cluster *c = *state;
	struct store_hash h = { .iteration = 1, .node = 9, .stage = 2, .hash = 5 };
	struct compare_result r;

	assert_int_equal(store_hashes(c->store, &h, 1, NULL), 0);
	r = said(c, say_gpus, NULL);
	assert_false(compare_equal(&r));
	assert_int_equal(r.differing, 1);
	assert_int_equal(r.first.node, 9);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, play_set_up, play_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(this_machines_kind_replays_bit_for_bit),
		TEST(another_kind_is_held_to_limits),
		TEST(beyond_the_limits_is_found),
		TEST(replicas_that_differ_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
