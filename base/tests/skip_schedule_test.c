/* Tests of skip schedules: both written forms, the schedules of recipes, and refusals. For any
 * number of stages, the schedule of a recipe must be valid, and its first phase must skip all
 * stages that may be skipped. */
#include <errno.h>
#include <string.h>

#include "base/skip_schedule.h"
#include "base/tests/test.h"

static void expect(const char *text, uint64_t iterations, const struct skip_phase *phases,
		   uint32_t n)
{
	struct skip_schedule s;
	struct error err = { "" };

	if (skip_schedule_parse(&s, text, iterations, 4, &err) != 0)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(s.n, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(s.phases[i].from, phases[i].from);
		assert_int_equal(s.phases[i].skip, phases[i].skip);
		assert_int_equal(s.phases[i].share, phases[i].share);
		assert_int_equal(skip_schedule_at(&s, phases[i].from), i);
		if (i > 0)
			assert_int_equal(skip_schedule_at(&s, phases[i].from - 1), i - 1);
	}
	assert_int_equal(skip_schedule_at(&s, UINT64_MAX), n - 1);
}

TEST(schedules_are_read)
{
	const struct skip_phase quarters[] = {
		{ 1, 4, 0 }, { 101, 3, 0 }, { 201, 1, 0 }, { 301, 0, 0 }
	};
	const struct skip_phase shares[] = {
		{ 1, 4, 0 }, { 26, 3, 0 }, { 51, 1, 0 }, { 81, 0, 0 }
	};

	expect("4,3,1,0", 400, quarters, 4);
	expect("4@0,3@25%,1@50%,0@80", 100, shares, 4);
	expect("2", 0, &(struct skip_phase){ 1, 2, 0 }, 1);
	expect("1,0", 3, (struct skip_phase[]){ { 1, 1, 0 }, { 3, 0, 0 } }, 2);
	expect("4@0,30%:2@30%", 100, (struct skip_phase[]){ { 1, 4, 0 }, { 31, 2, 30 } }, 2);
	expect("4,99%:1,1%:4", 3, (struct skip_phase[]){ { 1, 4, 0 }, { 2, 1, 99 }, { 3, 4, 1 } },
	       3);
	expect("4@0,0@500", 0, (struct skip_phase[]){ { 1, 4, 0 }, { 501, 0, 0 } }, 2);
}

static void refuse(const char *text, uint64_t iterations, const char *words)
{
	struct skip_schedule s = { .n = 7 };
	struct error err = { "" };

	assert_int_equal(skip_schedule_parse(&s, text, iterations, 4, &err), -EINVAL);
	if (!strstr(err.text, words))
		fail_msg("%s: \"%s\" does not contain \"%s\"", text, err.text, words);
	assert_int_equal(s.n, 7);
}

TEST(mistakes_name_the_phase)
{
	char many[256] = "0@0";

	refuse("", 100, "phase 1 of the skip schedule: expected 0 to 4 stages");
	refuse("5,0", 100, "phase 1");
	refuse("4,-1", 100, "phase 2");
	refuse("4,", 100, "phase 2");
	refuse("4,30%", 100, "phase 2 of the skip schedule: expected a share of 1% to 99%");
	refuse("4,0%:2", 100, "expected a share of 1% to 99%");
	refuse("4,100%:2", 100, "expected a share of 1% to 99%");
	refuse("4,30%:5", 100, "phase 2 of the skip schedule: expected 0 to 4 stages");
	refuse("4@0,30%2@30%", 100, "phase 2");
	refuse("4;0", 100, "expected a comma");
	refuse("4,0", 0, "--iterations");
	refuse("4@0,0@50%", 0, "50% of a run without an end");
	refuse("4@0,0", 100, "phase 2 of the skip schedule: expected @");
	refuse("4@1,0@50", 100, "the first phase of the skip schedule begins after iteration 1");
	refuse("4@0,2@50,0@50", 100, "phase 3");
	refuse("4@0,0@120%", 100, "phase 2");
	refuse("4@0,0@nan", 100, "phase 2");
	refuse("4,3,2,1,0", 3, "not after phase");
	for (int i = 0; i < SKIP_SCHEDULE_MOST; i++)
		strcat(many, ",0@9");
	refuse(many, 100, "more than 32 phases");
}

TEST(recipes_skip_all_first_and_less_later)
{
	static const char *const names[] = { "speed", "robust" };
	char text[SKIP_SCHEDULE_RECIPE];
	struct skip_schedule s;
	struct error err;

	for (uint32_t d = 1; d < 63; d++)
		for (int k = 0; k < 2; k++) {
			assert_int_equal(skip_schedule_of_recipe(text, names[k], d, &err), 0);
			assert_int_equal(skip_schedule_parse(&s, text, 40, d, &err), 0);
			assert_int_equal(s.phases[0].skip, d);
			assert_int_equal(s.phases[0].share, 0);
			assert_int_equal(s.n, 2);
			assert_int_equal(s.phases[1].skip, k == 0 ? 0 : (d + 1) / 2);
			assert_int_equal(s.phases[1].share, k == 0 ? 0 : 30);
		}
	assert_int_equal(skip_schedule_of_recipe(text, "robust", 4, &err), 0);
	assert_string_equal(text, "4@0,30%:2@20%");
	assert_int_equal(skip_schedule_of_recipe(text, "speed", 4, &err), 0);
	assert_string_equal(text, "4@0,0@30%");
}

TEST(unknown_recipes_are_refused)
{
	char text[SKIP_SCHEDULE_RECIPE];
	struct error err;

	assert_int_equal(skip_schedule_of_recipe(text, "quick", 4, &err), -EINVAL);
	assert_non_null(strstr(err.text, "expected speed or robust"));
	assert_int_equal(skip_schedule_of_recipe(text, "speed", 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "may be skipped"));
}
