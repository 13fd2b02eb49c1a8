/* Sets of stages: the nearest member, and sets from outside. */
#include "base/stage_set.h"
#include "base/tests/test.h"

TEST(the_nearest_stage_is_found)
{
	const int nearest[] = { 0, 0, 0, 5, 5, 5 };

	for (int s = 0; s < 6; s++) {
		assert_int_equal(stage_set_nearest(0x21, s), nearest[s]);
		assert_int_equal(stage_set_nearest(1, s), 0);
	}
	assert_int_equal(stage_set_nearest(0x5, 1), 0); /* of two the earlier */
	assert_int_equal(stage_set_nearest(UINT64_C(1) << 63, 0), 63);
}

TEST(a_set_from_outside_is_checked)
{
	assert_true(stage_set_fits(0x21, 6));
	assert_true(stage_set_fits(UINT64_MAX, 64));
	assert_false(stage_set_fits(0x41, 6));
	assert_false(stage_set_fits(0x20, 6));
	assert_false(stage_set_fits(0, 6));
}
