/* capacity_test.c - compares the estimated memory and time of a stage with values counted by
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/members/capacity.h"

static void more_memory_holds_more_up_to_a_limit(void **state)
{
	struct model_config m;
	struct recipe r;
	uint64_t parameters = 1000000;
	double stage, slot;

	(void)state;
	assert_int_equal(model_preset("30m", &m, &r, NULL), 0);
	stage = capacity_stage_bytes(parameters);
	slot = capacity_slot_bytes(&m, &r);
	/* The agent reports the shortage */
	assert_int_equal(capacity_slots(&m, &r, parameters, 0, 8), 1);
	assert_int_equal(capacity_slots(&m, &r, parameters, stage + 2.5 * slot, 8), 2);
	assert_int_equal(capacity_slots(&m, &r, parameters, stage + 100 * slot, 8), 8);
}

/* A layer's input alone is B * T * C floats. */
static void a_slot_is_more_than_its_layers_inputs(void **state)
{
	struct model_config m;
	struct recipe r;
	double inputs;

	(void)state;
	assert_int_equal(model_preset("124m", &m, &r, NULL), 0);
	m.n_stages = 4;
	inputs = 4.0 * r.batch * r.sequence * m.dim * (m.n_layers / 4);
	assert_true(capacity_slot_bytes(&m, &r) > 3 * inputs &&
		    capacity_slot_bytes(&m, &r) < 30 * inputs);
}

static void a_wider_vocabulary_makes_the_loss_longer(void **state)
{
	struct model_config m;
	struct recipe r;
	double narrow;

	(void)state;
	assert_int_equal(model_preset("tiny", &m, &r, NULL), 0);
	narrow = capacity_loss_ratio(&m, &r);
	m.vocab *= 10;
	assert_true(narrow > 0 && capacity_loss_ratio(&m, &r) > 9.9 * narrow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_memory_holds_more_up_to_a_limit),
		cmocka_unit_test(a_slot_is_more_than_its_layers_inputs),
		cmocka_unit_test(a_wider_vocabulary_makes_the_loss_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
