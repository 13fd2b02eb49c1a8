/* capacity_test.c - compares the estimated memory and time of a stage with values counted by
 * hand. */

#include "base/tests/test.h"
#include "controller/joining/capacity.h"

TEST(more_memory_holds_more_up_to_a_limit)
{
	struct model_config m;
	struct recipe r;
	uint64_t parameters = 1000000;
	double stage, slot;

	assert_int_equal(model_preset("30m", &m, &r, NULL), 0);
	stage = capacity_stage_bytes(parameters);
	slot = capacity_slot_bytes(&m, &r);
	/* The agent reports the shortage */
	assert_int_equal(capacity_slots(&m, &r, parameters, 0, 8), 1);
	assert_int_equal(capacity_slots(&m, &r, parameters, stage + 2.5 * slot, 8), 2);
	assert_int_equal(capacity_slots(&m, &r, parameters, stage + 100 * slot, 8), 8);
}

/* A layer's input alone is B * T * C floats. */
TEST(a_slot_is_more_than_its_layers_inputs)
{
	struct model_config m;
	struct recipe r;
	double inputs;

	assert_int_equal(model_preset("124m", &m, &r, NULL), 0);
	m.n_stages = 4;
	inputs = 4.0 * r.batch * r.sequence * m.dim * (m.n_layers / 4);
	assert_true(capacity_slot_bytes(&m, &r) > 3 * inputs &&
		    capacity_slot_bytes(&m, &r) < 30 * inputs);
}

TEST(a_wider_vocabulary_makes_the_loss_longer)
{
	struct model_config m;
	struct recipe r;
	double narrow;

	assert_int_equal(model_preset("tiny", &m, &r, NULL), 0);
	narrow = capacity_loss_ratio(&m, &r);
	m.vocab *= 10;
	assert_true(narrow > 0 && capacity_loss_ratio(&m, &r) > 9.9 * narrow);
}
