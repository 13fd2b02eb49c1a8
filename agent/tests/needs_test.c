/* Tests the memory needs of an iteration, and the report of missing memory. */

#include <errno.h>
#include <string.h>

#include "agent/execution/needs.h"
#include "base/tests/test.h"

enum { MIB = 1 << 20 };

TEST(the_needs_are_the_sum_of_their_parts)
{
	/* The stage has 1 MiB of parameters, and an activation has 2 MiB. 3 microbatches visit
	 * the node, and early tensors take at most 100 MiB. */
	struct needs n = needs_of(MIB / 4, MIB / 2, 3, 100ull * MIB, false);

	assert_int_equal(n.kept, 2 * 3 * 2 * MIB);
	assert_int_equal(n.waiting, 3 * 2 * MIB);
	assert_int_equal(n.early, (3 * 2 + 1) * MIB);
	assert_int_equal(n.reduction, 5 * MIB);
	assert_int_equal(n.copies, 3 * MIB);
	assert_int_equal(n.total, (12 + 6 + 7 + 5 + 3) * MIB);
	assert_int_equal(needs_of(MIB / 4, MIB / 2, 3, MIB, false).early, MIB);
	assert_int_equal(needs_of(MIB / 4, MIB / 2, 3, 100ull * MIB, true).total,
			 n.total + 3 * MIB);
}

/* A stage of the 7b preset and 60 microbatches of 1 x 4096 tokens need more bytes than 32 bits
 * can count. */
TEST(large_models_do_not_overflow)
{
	struct needs n = needs_of((size_t)900 << 20, (size_t)4096 * 4096, 60, UINT64_MAX, true);

	assert_true(n.kept == 60ull * 2 * 64 * MIB);
	assert_true(n.reduction == 5ull * 3600 * MIB && n.copies == 6ull * 3600 * MIB);
}

TEST(the_error_names_the_missing_memory)
{
	struct needs n = needs_of(MIB / 4, MIB / 2, 3, MIB, false);
	struct error err = { "" };

	assert_int_equal(needs_check(&n, n.total, &err), 0);
	assert_int_equal(needs_check(&n, n.total - MIB / 2, &err), -ENOMEM);
	assert_string_equal(
		err.text,
		"an iteration needs 27.0 MiB beside the stage (outputs kept 12.0, tensors "
		"that wait 6.0, early ones 1.0, the gradient's sum 5.0, copies of the stage "
		"3.0), but only 26.5 MiB are free");
}

/* If a larger plan needs more memory, only the additional memory must be free. */
TEST(only_the_additional_memory_must_be_free)
{
	struct needs first = needs_of(MIB / 4, MIB / 2, 3, 100ull * MIB, false);
	struct needs larger = needs_of(MIB / 4, MIB / 2, 5, 100ull * MIB, false);
	struct needs more = needs_beyond(&larger, &first), none = needs_beyond(&first, &larger);

	assert_int_equal(more.kept, 2 * 2 * 2 * MIB);
	assert_int_equal(more.reduction, 0);
	assert_int_equal(more.total, larger.total - first.total);
	assert_int_equal(none.total, 0);
}

TEST(early_tensors_use_the_remaining_memory)
{
	/* A correct peer sends at most 7 MiB early: 3 inputs of 2 MiB and a gradient of 1 MiB. */
	struct needs n = needs_of(MIB / 4, MIB / 2, 3, 1024ull * MIB, false);

	assert_int_equal(needs_early_room(&n, n.total + 200ull * MIB, 1024ull * MIB), 207ull * MIB);
	assert_int_equal(needs_early_room(&n, n.total + 2000ull * MIB, 1024ull * MIB),
			 1024ull * MIB);
	/* With little memory, the room is still 64 MiB plus four times what a correct peer sends
	 * early. */
	assert_int_equal(needs_early_room(&n, n.total, 1024ull * MIB), (4 * 7 + 64) * MIB);
	assert_int_equal(needs_early_room(&n, 0, 1024ull * MIB), (4 * 7 + 64) * MIB);
}
