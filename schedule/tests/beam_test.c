/* Compares the beam with a plain count. Exactly i states must come before the state at index i of
 * the beam. */

#include "base/rng.h"
#include "base/tests/test.h"
#include "schedule/improve/beam.h"

#define STATES 30

/* Counts the states that are cheaper than this state, or equally cheap with a lower index. */
static int rank_of(const double *cost, int n, int place)
{
	int before = 0;

	for (int i = 0; i < n; i++)
		before += cost[i] < cost[place] || (cost[i] == cost[place] && i < place);
	return before;
}

static void check(const struct beam *b, const double *cost, int n)
{
	assert_int_equal(b->n, n < b->width ? n : b->width);
	for (int i = 0; i < b->n; i++) {
		assert_int_equal(rank_of(cost, n, b->at[i]), i);
		assert_true(b->cost[i] == cost[b->at[i]]);
	}
	for (int i = 0; i < n; i++) {
		if (beam_excludes(b, cost[i]))
			assert_true(rank_of(cost, n, i) >= b->width);
	}
}

/* States are added, and the costs of some states fall. Many costs are equal. */
TEST(holds_the_cheapest_in_order)
{
	struct rng r;

	rng_init(&r, 3);
	for (int round = 0; round < 500; round++) {
		struct beam b = { .width = 1 + (int)rng_below(&r, BEAM_MOST) };
		double cost[STATES];

		for (int n = 0; n < STATES;) {
			bool falls = n > 0 && rng_below(&r, 3) == 0;
			int place = falls ? (int)rng_below(&r, (uint32_t)n) : n;

			if (place < n && cost[place] == 0)
				continue;
			cost[place] = place < n ? cost[place] - 1 : rng_below(&r, 12);
			n += place == n;
			beam_offer(&b, place, cost[place]);
			check(&b, cost, n);
		}
	}
}
