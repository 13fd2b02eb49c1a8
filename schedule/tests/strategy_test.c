/* Tests the table of regimes: a range includes both of its limits, and all ranges of a row must
 * hold. */

#include "base/tests/test.h"
#include "schedule/problem/strategy.h"

TEST(limits_belong_to_their_regime)
{
	assert_true(strategy_holds(REGIME_SHORT_ROUNDS, 60, 20));
	assert_false(strategy_holds(REGIME_SHORT_ROUNDS, 61, 20));
	assert_false(strategy_holds(REGIME_STEEP_NORM, 299, 20));
	assert_true(strategy_holds(REGIME_STEEP_NORM, 300, 20));
}

TEST(all_ranges_of_a_regime_must_hold)
{
	assert_true(strategy_holds(REGIME_LANES, 41, 40));
	assert_false(strategy_holds(REGIME_LANES, 40, 40));
	assert_false(strategy_holds(REGIME_LANES, 41, 39));
}

/* The set of regimes has the bit of each regime that holds, and no other bit. */
TEST(each_regime_has_a_bit)
{
	static const int sizes[] = { 1, 12, 41, 60, 61, 64, 150, 200, 300, 501, 20000 };

	for (int i = 0; i < 11; i++) {
		uint32_t regimes = strategy_regimes(sizes[i], sizes[10 - i]);

		for (int r = 0; r < REGIMES; r++)
			assert_int_equal(regimes >> r & 1,
					 strategy_holds((enum regime)r, sizes[i], sizes[10 - i]));
		assert_int_equal(regimes >> REGIMES, 0);
	}
}

TEST(large_repairs_and_large_clusters_have_their_own_cooling)
{
	uint32_t small = strategy_regimes(30, 20), large = strategy_regimes(300, 100);
	const struct cooling *usual = strategy_cooling(small, false, false);
	const struct cooling *lanes = strategy_cooling(large, false, true);
	const struct cooling *plain = strategy_cooling(large, false, false);

	assert_ptr_equal(strategy_cooling(small, true, false), usual);
	assert_true(strategy_cooling(large, true, true)->warm < lanes->warm);
	assert_true(usual->cold < usual->warm);
	assert_true(plain->cold == plain->warm);
}
