/* Arrays of an arena: zero, apart from one another, aligned; none where there is no memory for so much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void arrays_are_zero_apart_and_aligned(void **state)
{
	struct arena a = { 0 };
	unsigned char *array[100];

	(void)state;
	for (size_t k = 0; k < 100; k++) {
		array[k] = arena_array(&a, k, 3);
		assert_non_null(array[k]);
		assert_int_equal((uintptr_t)array[k] % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < 3 * k; i++)
			assert_int_equal(array[k][i], 0);
		memset(array[k], (int)k + 1, 3 * k);
	}
	for (size_t k = 0; k < 100; k++) {
		for (size_t i = 0; i < 3 * k; i++)
			assert_int_equal(array[k][i], k + 1);
	}
	assert_false(a.failed);
	arena_free(&a);
	assert_null(a.newest);
}

static void too_much_is_told(void **state)
{
	struct arena a = { 0 };

	(void)state;
	assert_null(arena_array(&a, SIZE_MAX / 2, 3));
	assert_true(a.failed);
	assert_non_null(arena_array(&a, 1, 1));
	assert_true(a.failed);
	arena_free(&a);
	assert_false(a.failed);
	assert_null(arena_array(&a, 1, SIZE_MAX));
	assert_true(a.failed);
	arena_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_are_zero_apart_and_aligned),
		cmocka_unit_test(too_much_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
