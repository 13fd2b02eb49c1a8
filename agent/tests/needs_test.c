/* What an iteration takes is all there, and what is missing is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "agent/needs.h"

enum { MIB = 1 << 20 };

static void everything_is_in_the_sum(void **state)
{
	/* 1 MiB of parameters, 2 MiB an activation, 3 visits */
	struct needs n = needs_of(MIB / 4, MIB / 2, 3, 100ull * MIB, false);

	(void)state;
	assert_int_equal(n.kept, 2 * 3 * 2 * MIB);
	assert_int_equal(n.waiting, 3 * 2 * MIB);
	assert_int_equal(n.early, (3 * 2 + 1) * MIB);
	assert_int_equal(n.reduction, 5 * MIB);
	assert_int_equal(n.copies, 3 * MIB);
	assert_int_equal(n.total, (12 + 6 + 7 + 5 + 3) * MIB);
	assert_int_equal(needs_of(MIB / 4, MIB / 2, 3, MIB, false).early, MIB);
	assert_int_equal(needs_of(MIB / 4, MIB / 2, 3, 100ull * MIB, true).total, n.total + 3 * MIB);
}

/* A stage of the 7b preset, 60 visits of 1 x 4096 tokens: more than 32 bits can say. */
static void large_models_do_not_overflow(void **state)
{
	struct needs n = needs_of((size_t)900 << 20, (size_t)4096 * 4096, 60, UINT64_MAX, true);

	(void)state;
	assert_true(n.kept == 60ull * 2 * 64 * MIB);
	assert_true(n.reduction == 5ull * 3600 * MIB && n.copies == 6ull * 3600 * MIB);
}

static void what_is_missing_is_said(void **state)
{
	struct needs n = needs_of(MIB / 4, MIB / 2, 3, MIB, false);
	struct error err = { "" };

	(void)state;
	assert_int_equal(needs_check(&n, n.total, &err), 0);
	assert_int_equal(needs_check(&n, n.total - MIB / 2, &err), -ENOMEM);
	assert_string_equal(err.text,
			    "an iteration needs 27.0 MiB beside the stage (outputs kept 12.0, tensors "
			    "that wait 6.0, early ones 1.0, the gradient's sum 5.0, copies of the stage "
			    "3.0), 26.5 are free: 0.5 are missing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_in_the_sum),
		cmocka_unit_test(large_models_do_not_overflow),
		cmocka_unit_test(what_is_missing_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
