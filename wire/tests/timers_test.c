/* Compares the earliest of many timers with the result of a linear search. */
#include "base/rng.h"
#include "base/tests/test.h"
#include "wire/delivery/timers.h"

enum { N = 40 };

TEST(the_first_timer_is_the_earliest)
{
	struct timers t = {.n = 0};
	struct timer timers[N] = {{.place = 0}};
	struct rng rng;

	rng_init(&rng, 3);
	assert_null(timers_first(&t));
	for (int step = 0; step < 20000; step++) {
		struct timer *changed = &timers[rng_below(&rng, N)];
		int64_t earliest = INT64_MAX;

		timers_set(&t, changed, rng_below(&rng, 3) == 0 ? INT64_MAX : rng_below(&rng, 30));
		for (int i = 0; i < N; i++)
			if (timers[i].place > 0 && timers[i].at_us < earliest)
				earliest = timers[i].at_us;
		assert_int_equal(changed->place > 0, changed->at_us != INT64_MAX);
		assert_int_equal(timers_first_us(&t), earliest);
		assert_true(earliest == INT64_MAX ? timers_first(&t) == NULL
						  : timers_first(&t)->at_us == earliest);
	}
	timers_fini(&t);
}
