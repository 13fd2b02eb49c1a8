/* Tests sets of stages: the stage from which a new stage starts, the check of a set from a file or
 * a peer, and the check of a path's order. */
#include "base/stage_set.h"
#include "base/tests/test.h"

TEST(trained_stages_are_repeated_in_order)
{
	const int of_two[] = { 0, 5, 0, 5, 0, 5 }, of_three[] = { 0, 2, 2, 0, 2, 5 };

	for (int s = 0; s < 6; s++) {
		assert_int_equal(stage_set_source(0x21, s), of_two[s]);
		assert_int_equal(stage_set_source(0x25, s), of_three[s]);
		assert_int_equal(stage_set_source(1, s), 0);
	}
	assert_int_equal(stage_set_source(UINT64_C(1) << 63, 0), 63);
}

TEST(a_set_from_outside_is_checked)
{
	assert_true(stage_set_fits(0x21, 6));
	assert_true(stage_set_fits(UINT64_MAX, 64));
	assert_false(stage_set_fits(0x41, 6));
	assert_false(stage_set_fits(0x20, 6));
	assert_false(stage_set_fits(0, 6));
}

static int misplaced(const int *stages, int n)
{
	int after = -2, at = stage_path_misplaced(stages, n, &after);

	assert_true(at < 0 || after >= 0);
	return at;
}

#define MISPLACED(...) misplaced((const int[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / 4)

TEST(the_order_of_a_path_is_checked)
{
	assert_int_equal(MISPLACED(0, 1, 2, 5), -1);
	assert_int_equal(MISPLACED(0, 2, 1, 4, 3, 5), -1);
	assert_int_equal(MISPLACED(0, 1, 1), 2);
	assert_int_equal(MISPLACED(0, 1, 2, 1), 2);
	assert_int_equal(MISPLACED(0, 3, 1), 2); /* 3 and 1 are not neighbours */
	assert_int_equal(MISPLACED(0, 3, 2, 1), 3); /* exchanges that overlap */
	assert_int_equal(MISPLACED(1, 0, 2), 1);
}
