/* Tests that restored stages replay to the same bits, both from a checkpoint and as an average of
 * other stages. Verify must find a stage that was restored with other weights than recorded. */

#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "verify/tests/play.h"

static uint32_t node_of(uint8_t stage)
{
	for (uint32_t n = 0; n < NODES; n++)
		if (play_stage_of[n] == stage)
			return n;
	fail_msg("no node of stage %u", stage);
	return 0;
}

struct state {
	float *arrays[NODES][3];
};

static void arrays_of(struct stage *s, float *to[3])
{
	to[0] = stage_weights(s);
	to[1] = stage_moment1(s);
	to[2] = stage_moment2(s);
}

/* Saves the weights and moments of every node; if `restore` is true, writes the saved arrays
 * back. */
static void copy_states(struct cluster *c, struct state *s, bool restore)
{
	for (uint32_t n = 0; n < NODES; n++) {
		size_t bytes = stage_parameters(c->nodes[n]) * sizeof(float);
		float *now[3];

		arrays_of(c->nodes[n], now);
		for (int k = 0; k < 3; k++) {
			if (!restore)
				s->arrays[n][k] = malloc(bytes);
			memcpy(restore ? now[k] : s->arrays[n][k],
			       restore ? s->arrays[n][k] : now[k], bytes);
			if (restore)
				free(s->arrays[n][k]);
		}
		stage_changed(c->nodes[n]);
	}
}

/* Plays three iterations, restores every stage to its state after the second, and plays the third
 * again. If `wrong` is true, a weight of one restored node is changed. */
static struct compare_result restored(struct cluster *c, bool wrong)
{
	struct store_restore rows[STAGES] = { { .iteration = 0 } };
	struct state states;
	struct error err = { "" };

	play_iteration(c, 1, false, NULL);
	play_iteration(c, 2, false, NULL);
	copy_states(c, &states, false);
	play_iteration(c, 3, false, NULL);
	copy_states(c, &states, true);
	if (wrong)
		stage_weights(c->nodes[node_of(1)])[7] += 1e-6f;
	for (uint8_t s = 0; s < STAGES; s++)
		rows[s] = (struct store_restore){ .iteration = 2,
						  .last = 3,
						  .stage = s,
						  .node = (uint16_t)node_of(s),
						  .hash = stage_hash(c->nodes[node_of(s)]) };
	if (store_restore(c->store, rows, STAGES, &err) != 0)
		fail_msg("%s", err.text);
	play_iteration(c, 3, false, NULL);
	return play_compare(c);
}

#define FIXTURE_TEST(name) TEST_WITH(name, play_set_up, play_tear_down)

FIXTURE_TEST(going_back_to_a_checkpoint_replays_bit_for_bit)
{
	struct compare_result r = restored(*state, false);

	assert_true(compare_equal(&r));
	assert_int_equal(r.replayed, 3);
	assert_int_equal(r.weights.restored, STAGES);
	assert_int_equal(r.weights.compared, 3 * NODES + STAGES);
}

FIXTURE_TEST(another_checkpoint_is_found)
{
	struct compare_result r = restored(*state, true);

	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, 2);
	assert_int_equal(r.weights.first_differing.stage, 1);
}

/* Plays a run in which stage 2 is lost after the second iteration. Its new weights are 3/4 of those
 * of stage 1, computed here. The record names the factor `recorded`. */
static struct compare_result averaged(struct cluster *c, float recorded)
{
	struct store_restore row = { .iteration = 2,
				     .last = 2,
				     .stage = 2,
				     .n_from = 1,
				     .from = { 1 },
				     .weight = { recorded } };
	float *to[3], *from[3];
	struct error err = { "" };

	play_iteration(c, 1, false, NULL);
	play_iteration(c, 2, false, NULL);
	arrays_of(c->nodes[node_of(1)], from);
	for (uint32_t n = 0; n < NODES; n++) {
		if (play_stage_of[n] != 2)
			continue;
		arrays_of(c->nodes[n], to);
		for (int k = 0; k < 3; k++)
			for (size_t i = 0; i < stage_parameters(c->nodes[n]); i++)
				to[k][i] = 0.75f * from[k][i];
		stage_changed(c->nodes[n]);
		row.node = (uint16_t)n;
		row.hash = stage_hash(c->nodes[n]);
	}
	if (store_restore(c->store, &row, 1, &err) != 0)
		fail_msg("%s", err.text);
	play_iteration(c, 3, false, NULL);
	return play_compare(c);
}

FIXTURE_TEST(a_stage_made_of_its_neighbours_replays_bit_for_bit)
{
	struct compare_result r = averaged(*state, 0.75f);

	assert_true(compare_equal(&r));
	assert_int_equal(r.weights.averaged, 1);
	assert_int_equal(r.weights.compared, 3 * NODES + 1);
}

FIXTURE_TEST(another_average_is_found)
{
	struct compare_result r = averaged(*state, 0.7500001f);

	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, 2);
	assert_int_equal(r.weights.first_differing.stage, 2);
}
