/* Tests that the record of a played run replays to the same bits, and that verify finds every
 * change of the record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "verify/tests/play.h"

static struct compare_result played(struct cluster *c, void (*tamper)(struct played *r))
{
	return play_all(c, false, tamper);
}

static void a_recorded_run_replays_bit_for_bit(void **state)
{
	struct compare_result r = played(*state, NULL);

	assert_string_equal(r.broken_rule.text, "");
	assert_true(compare_equal(&r));
	assert_int_equal(r.replayed, ITERATIONS);
	assert_int_equal(r.weights.compared, ITERATIONS * NODES);
	assert_int_equal(r.weights.unannounced, 0);
	assert_int_equal(r.nodes, NODES);
	assert_int_equal(r.losses.equal_bits, ITERATIONS);
}

static void reruns_replay_bit_for_bit(void **state)
{
	struct compare_result r = play_all(*state, true, NULL);

	assert_string_equal(r.broken_rule.text, "");
	assert_true(compare_equal(&r));
	assert_int_equal(r.replayed, ITERATIONS);
	assert_int_equal(r.weights.compared, ITERATIONS * NODES);
}

/* The run rounded its activations, but the record says that it did not round them, or the
 * reverse. */
static void another_rounding_than_recorded_is_found(void **state)
{
	struct cluster *c = *state;
	struct compare_result r;

	c->wire = c->wire == FORMAT_FP32 ? FORMAT_BF16 : FORMAT_FP32;
	r = played(c, NULL);
	assert_string_equal(r.broken_rule.text, "");
	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, 1);
}

/* Changes the order in which a data node counted its gradients. This changes the bits of the
 * node's sum. In the new order, first come all L in reverse order, then all B in reverse order. A
 * node could have counted in this order, because every L comes before the B of its microbatch. */
static void reverse_an_order(struct played *r)
{
	struct store_order *o = r->orders[3].n_counted > r->orders[0].n_counted ? &r->orders[3]
										 : &r->orders[0];
	struct store_counted recorded[2 * MICROBATCHES];
	uint32_t n = o->n_counted, at = 0;

	memcpy(recorded, o->counted, n * sizeof(*recorded));
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t k = n; k-- > 0;)
			if (recorded[k].kind == (pass ? 'B' : 'L'))
				r->counted[o->node][at++] = recorded[k];
}

static void another_format_of_sums_is_found(void **state)
{
	struct cluster *c = *state;
	struct compare_result r;

	c->sum_wire = c->sum_wire == FORMAT_FP32 ? FORMAT_Q8 : FORMAT_FP32;
	r = played(c, NULL);
	assert_string_equal(r.broken_rule.text, "");
	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, 1);
}

/* Plays a run whose formats change after the first iteration. If `recorded` is true, the record
 * names the new formats. */
static struct compare_result play_change(struct cluster *c, bool recorded)
{
	play_iteration(c, 1, false, NULL);
	c->wire = FORMAT_Q8;
	c->sum_wire = FORMAT_Q4;
	if (recorded)
		c->recorded = (struct tensor_formats){ c->wire, c->sum_wire };
	for (uint64_t i = 2; i <= ITERATIONS; i++)
		play_iteration(c, i, false, NULL);
	return play_compare(c);
}

static void each_iteration_replays_in_its_own_formats(void **state)
{
	struct compare_result r = play_change(*state, true);

	assert_string_equal(r.broken_rule.text, "");
	assert_true(compare_equal(&r));
	assert_int_equal(r.losses.equal_bits, ITERATIONS);
}

static void a_change_that_is_not_recorded_is_found(void **state)
{
	struct compare_result r = play_change(*state, false);

	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, 2);
}

static void another_order_is_found(void **state)
{
	struct compare_result r = played(*state, reverse_an_order);

	assert_string_equal(r.broken_rule.text, "");
	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, 2);
	assert_int_equal(r.weights.first_differing.stage, 0);
}

static void move_data(struct played *r)
{
	uint32_t wave = r->routes[0].wave;

	r->routes[0].wave = r->routes[2].wave;
	r->routes[2].wave = wave;
}

static void other_data_is_found(void **state)
{
	struct compare_result r = played(*state, move_data);

	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, 2);
}

static void change_lr(struct played *r)
{
	r->commit.lr = nextafterf(r->commit.lr, 1.0f);
}

static void one_bit_of_the_learning_rate_is_found(void **state)
{
	struct compare_result r = played(*state, change_lr);

	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, 2);
}

static void change_loss(struct played *r)
{
	r->commit.loss *= 1.0001f;
}

static void another_loss_is_found(void **state)
{
	struct compare_result r = played(*state, change_loss);

	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.differing, 0);
	assert_int_equal(r.losses.differing, 1);
	assert_int_equal(r.losses.first_differing, 2);
}

/* Each of the following functions changes a record so that it breaks one rule of the audit. */
static void forget_one(struct played *r)
{
	struct store_order *o = &r->orders[0];

	o = o->n_counted ? o : &r->orders[3];
	o->n_counted--;
}
static void count_twice(struct played *r)
{
	struct store_order *o = r->orders[0].n_counted ? &r->orders[0] : &r->orders[3];

	r->counted[o->node][o->n_counted] = o->counted[0];
	o->n_counted++;
}
static void exclude_from_the_sum(struct played *r)
{
	uint16_t node = r->orders[0].n_counted ? 0 : 3;

	r->replicas[0][0] = node == 0 ? 3 : 0;
	r->reductions[0].n_nodes = 1;
}
static void sum_out_of_order(struct played *r)
{
	r->replicas[2][0] = 6;
	r->replicas[2][2] = 2;
}
static void read_data_twice(struct played *r)
{
	r->routes[1].wave = r->routes[3].wave;
	r->routes[1].shard = r->routes[3].shard;
}
static void start_elsewhere(struct played *r)
{
	r->routes[4].stages[0] = 1;
}
static void invent_a_microbatch(struct played *r)
{
	struct store_order *o = r->orders[0].n_counted ? &r->orders[0] : &r->orders[3];

	r->counted[o->node][0].microbatch = 999;
}

static void divide_by_fewer_visits(struct played *r)
{
	r->commit.visits = (struct stage_visits){ STAGES, { MICROBATCHES - 1 } };
}
static void divide_by_fewer_stages(struct played *r)
{
	r->commit.visits.n = STAGES - 1;
}

static void every_broken_rule_is_found(void **state)
{
	static const struct {
		void (*tamper)(struct played *r);
		const char *words;
	} cases[] = {
		{ forget_one, "counted nowhere" },
		{ count_twice, "counted twice" },
		{ exclude_from_the_sum, "took no part in the sum" },
		{ sum_out_of_order, "not in ascending order" },
		{ read_data_twice, "which another microbatch has read" },
		{ start_elsewhere, "does not start in stage 0" },
		{ invent_a_microbatch, "which has no route" },
		{ divide_by_fewer_visits, "visited it" },
		{ divide_by_fewer_stages, "the visits of 2 stages" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct compare_result r;

		r = played(*state, cases[i].tamper);
		assert_false(compare_equal(&r));
		assert_int_equal(r.replayed, 1);
		if (!strstr(r.broken_rule.text, cases[i].words) ||
		    !strstr(r.broken_rule.text, "iteration 2"))
			fail_msg("%s", r.broken_rule.text);
		if (i + 1 < sizeof(cases) / sizeof(cases[0])) {
			play_tear_down(state);
			play_set_up(state);
		}
	}
}

static void another_corpus_is_refused(void **state)
{
	struct cluster *c = *state;
	struct compare_options o = { .from = 1 };
	struct compare_result result;
	struct error err = { "" };

	assert_int_equal(compare_run(c->store, &o, &result, &err), -ENODATA);
	play_iteration(c, 1, false, NULL);
	play_make_text(c);
	assert_int_equal(compare_run(c->store, &o, &result, &err), -ESTALE);
	assert_non_null(strstr(err.text, "has changed"));
	unlink(c->text);
	assert_int_equal(compare_run(c->store, &o, &result, &err), -ENOENT);
	assert_non_null(strstr(err.text, c->text));
}

/* Hashes of different hash functions cannot be compared. The error must name both functions. */
static void hashes_of_another_function_are_refused(void **state)
{
	struct cluster *c = *state;
	struct compare_options o = { .from = 1 };
	struct compare_result result;
	struct error err = { "" };

	play_iteration(c, 1, false, NULL);
	assert_int_equal(store_set(c->store, "hash", "other", NULL), 0);
	store_close(c->store);
	assert_int_equal(store_open(&c->store, c->folder, NULL), 0);
	assert_int_equal(compare_run(c->store, &o, &result, &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "hashes are other"));
	assert_non_null(strstr(err.text, "version t"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, play_set_up, play_tear_down)
#define TEST_BF16(name) { "bf16: " #name, name, play_set_up_bf16, play_tear_down, NULL }
#define TEST_Q6(name) { "q6: " #name, name, play_set_up_q6, play_tear_down, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_recorded_run_replays_bit_for_bit),
		TEST(reruns_replay_bit_for_bit),
		TEST_BF16(a_recorded_run_replays_bit_for_bit),
		TEST_BF16(reruns_replay_bit_for_bit),
		TEST(another_rounding_than_recorded_is_found),
		TEST_BF16(another_rounding_than_recorded_is_found),
		TEST_Q6(a_recorded_run_replays_bit_for_bit),
		TEST_Q6(reruns_replay_bit_for_bit),
		TEST_Q6(another_rounding_than_recorded_is_found),
		TEST(another_format_of_sums_is_found),
		TEST_Q6(another_format_of_sums_is_found),
		TEST(each_iteration_replays_in_its_own_formats),
		TEST(a_change_that_is_not_recorded_is_found),
		TEST(another_order_is_found),
		TEST(other_data_is_found),
		TEST(one_bit_of_the_learning_rate_is_found),
		TEST(another_loss_is_found),
		TEST(every_broken_rule_is_found),
		TEST(another_corpus_is_refused),
		TEST(hashes_of_another_function_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
