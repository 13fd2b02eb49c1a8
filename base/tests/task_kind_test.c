/* Tests that each kind of task has one letter, and that no other letter is accepted. */

#include "base/task_kind.h"
#include "base/tests/test.h"

TEST(a_letter_names_one_kind)
{
	enum task_kind kind = TASK_FORWARD;
	int found = 0;

	for (int letter = 0; letter < 128; letter++) {
		if (!task_kind_parse((char)letter, &kind))
			continue;
		assert_int_equal(*task_kind_name(kind), letter);
		found++;
	}
	assert_int_equal(found, TASK_EVALUATE + 1);
	assert_true(task_kind_parse('B', &kind));
	assert_int_equal(kind, TASK_BACKWARD);
	assert_false(task_kind_parse('W', &kind));
	assert_int_equal(kind, TASK_BACKWARD);
}
