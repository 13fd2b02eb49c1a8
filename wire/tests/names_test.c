/* Tests the tables of faults, states and verbs: rows must be complete, and names must lead back to
 * their numbers. */

#include <math.h>
#include <string.h>

#include "base/gpu_figures.h"
#include "base/tests/test.h"
#include "wire/faults.h"
#include "wire/names.h"

TEST(every_fault_is_described)
{
	assert_int_equal(FAULT_LAST, FAULT_CORRUPT);
	assert_int_equal(fault_named("none"), FAULT_NONE);
	assert_int_equal(fault_named("no such"), -1);
	assert_string_equal(fault_name(FAULT_LAST + 1), "?");
	for (unsigned k = FAULT_NONE + 1; k <= FAULT_LAST; k++) {
		const struct fault_description *f = fault_describe(k);

		assert_int_equal(fault_named(fault_name(k)), k);
		assert_true(*f->words && *f->what);
		assert_non_null(strstr(FAULT_NAMES, f->name));

	}
	assert_string_equal(FAULT_NAMES,
			    "kill, hang, slow-node, slow-link, loss, partition, corrupt");
}

TEST(a_factor_without_sense_is_refused)
{
	assert_non_null(fault_refusal(FAULT_NONE, 1));
	assert_non_null(fault_refusal(FAULT_LAST + 1, 1));
	assert_null(fault_refusal(FAULT_SLOW_NODE, 1));
	assert_null(fault_refusal(FAULT_SLOW_LINK, 1000));
	assert_non_null(fault_refusal(FAULT_SLOW_LINK, 1001));
	assert_non_null(fault_refusal(FAULT_SLOW_NODE, 0.5f));
	assert_non_null(fault_refusal(FAULT_SLOW_NODE, NAN));
	assert_null(fault_refusal(FAULT_LOSS, 0.99f));
	assert_non_null(fault_refusal(FAULT_LOSS, 1));
	assert_non_null(fault_refusal(FAULT_LOSS, -0.1f));
	/* FAULT_PARTITION has no factor, so any value is valid. */
	assert_null(fault_refusal(FAULT_PARTITION, -7));
}

TEST(names_lead_back)
{
	for (unsigned i = 0; i <= NODE_LAST; i++)
		assert_int_equal(node_state_named(node_state_name(i)), i);
	for (unsigned i = 0; i <= PHASE_LAST; i++)
		assert_int_equal(phase_named(phase_name(i)), i);
	for (unsigned i = 0; i <= NOTE_LAST; i++)
		assert_int_equal(note_named(note_name(i)), i);
	assert_int_equal(node_state_named("DEAD"), -1);
	assert_string_equal(node_state_name(NODE_LAST + 1), "?");
	assert_string_equal(node_state_shown(NODE_LAST + 1), "?");
	assert_string_equal(verb_name(COMMAND_LAST), "cut");
	assert_string_equal(verb_name(COMMAND_LAST + 1), "?");
	assert_int_equal(node_presence(NODE_DEAD), NODE_LOST);
	assert_int_equal(node_presence(NODE_SUSPECT), NODE_TAKES_PART);
}

TEST(reasons_for_throttling_are_named_the_worst_first)
{
	char text[GPU_THROTTLING_TEXT];

	assert_string_equal(gpu_throttling_text(0, text), "");
	assert_string_equal(gpu_throttling_text(GPU_HARDWARE, text), "hardware");
	assert_string_equal(gpu_throttling_text(GPU_POWER_CAP | GPU_HEAT, text),
			    "heat, power limit");
	assert_string_equal(gpu_throttling_text(~0u, text),
			    "heat, power brake, hardware, power limit");
	for (int i = 0; i <= GPU_THROTTLING_ALL; i++)
		assert_int_equal(gpu_throttling_named(gpu_throttling_text((unsigned)i, text)), i);
	assert_int_equal(gpu_throttling_named("power limit, heat"), -1);
	assert_int_equal(gpu_throttling_named(NULL), -1);
}

/* The numbers must not change, because records and other builds use them. */
TEST(numbers_stay)
{
	assert_int_equal(FAULT_KILL, 1);
	assert_int_equal(NODE_DEAD, 6);
	assert_int_equal(PHASE_FINISHED, 8);
	assert_int_equal(NOTE_ALERT, 5);
	assert_int_equal(NOTE_AGENT, 6);
	assert_int_equal(COMMAND_STOP, 12);
	assert_int_equal(COMMAND_SPEED, 15);
}
