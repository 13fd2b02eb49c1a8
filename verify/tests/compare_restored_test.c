/* Tests that stages replay to the same bits if they were restored from a checkpoint, or as an
 * average of other stages. Verify must find a stage that was restored with other weights than
 * recorded. */

#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "verify/tests/play.h"

struct state {
	float *arrays[NODES][3];
};

/* If `restore` is false, saves the weights and moments of every node. If `restore` is true,
 * writes the saved arrays back. */
static void copy_states(struct cluster *c, struct state *s, bool restore)
{
	for (uint32_t n = 0; n < NODES; n++) {
		size_t bytes = stage_parameters(c->nodes[n]) * sizeof(float);
		float *now[3];

		play_arrays_of(c->nodes[n], now);
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

/* Plays three iterations, restores every stage to its state after the second iteration, and plays
 * the third iteration again. If `wrong` is true, a weight of one restored node is changed. */
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
		stage_weights(c->nodes[play_node_of(1)])[7] += 1e-6f;
	for (uint8_t s = 0; s < STAGES; s++)
		rows[s] = (struct store_restore){ .iteration = 2,
						  .last = 3,
						  .stage = s,
						  .node = (uint16_t)play_node_of(s),
						  .hash = stage_hash(c->nodes[play_node_of(s)]) };
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

/* Plays a run in which stage 2 is lost after the second iteration, and replaced by 3/4 of stage 1.
 * The record names the factor `recorded`. */
static struct compare_result averaged(struct cluster *c, float recorded)
{
	play_iteration(c, 1, false, NULL);
	play_iteration(c, 2, false, NULL);
	play_average(c, 2, 2, 1, recorded);
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
