/* Tests that an arena's arrays are zeroed and aligned, and do not overlap. */
#include <string.h>

#include "base/arena.h"
#include "base/tests/test.h"

TEST(arrays_are_zero_apart_and_aligned)
{
	struct arena a = { 0 };
	unsigned char *array[100];

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
	arena_free(&a);
	assert_null(a.newest);
}
