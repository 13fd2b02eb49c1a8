/* capacity_test.c - compares the estimated memory and time of a stage with values counted by
 * hand. */

#include <math.h>

#include "base/tests/test.h"
#include "controller/members/capacity.h"

TEST(more_memory_holds_more_up_to_a_limit)
{
	struct model_config m;
	struct hyperparameters r;
	uint64_t parameters = 1000000;
	double stage, slot;

	assert_int_equal(model_preset("30m", &m, &r, NULL), 0);
	stage = capacity_stage_bytes(parameters);
	slot = capacity_slot_bytes(&m, &r);
	/* No slot fits into 0 bytes. The result is still 1, because the agent itself reports that
	 * its memory is too small */
	assert_int_equal(capacity_slots(&m, &r, parameters, 0, 8), 1);
	assert_int_equal(capacity_slots(&m, &r, parameters, stage + 2.5 * slot, 8), 2);
	assert_int_equal(capacity_slots(&m, &r, parameters, stage + 100 * slot, 8), 8);
}

/* A layer's input alone takes batch * sequence * dim floats. */
TEST(a_slot_is_more_than_its_layers_inputs)
{
	struct model_config m;
	struct hyperparameters r;
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
	struct hyperparameters r;
	double narrow;

	assert_int_equal(model_preset("tiny", &m, &r, NULL), 0);
	narrow = capacity_loss_ratio(&m, &r);
	m.vocab *= 10;
	assert_true(narrow > 0 && capacity_loss_ratio(&m, &r) > 9.9 * narrow);
}

/* A slot is large enough for a microbatch in the largest stage. The loss takes a multiple of the
 * time of a forward pass through a stage of mean depth. */
TEST(unequal_stages_count_their_own_layers)
{
	static const struct stage_layers cut = { 3, { 0, 9, 3 } };
	struct model_config equal, unequal;
	struct hyperparameters r;
	double rows, slot;

	assert_int_equal(model_preset("tiny", &equal, &r, NULL), 0);
	equal.n_stages = 3;
	unequal = equal;
	assert_int_equal(model_cut(&unequal, &cut, "cut", NULL), 0);
	rows = 4 * sizeof(float) * (double)r.batch * r.sequence * equal.dim;
	slot = capacity_slot_bytes(&equal, &r) - rows;
	assert_true(fabs(capacity_slot_bytes(&unequal, &r) - rows - slot * 9 / 4) < 1);
	assert_true(capacity_loss_ratio(&unequal, &r) == capacity_loss_ratio(&equal, &r));
	assert_true(model_stage_work(&unequal, 1) == 9 / 4.0);
	assert_true(model_stage_work(&unequal, 2) == 3 / 4.0);
	assert_true(model_stage_work(&unequal, 0) > 0 && model_stage_work(&unequal, 0) < 0.05);
	for (uint32_t s = 0; s < 3; s++)
		assert_true(model_stage_work(&equal, s) == 1);
}
