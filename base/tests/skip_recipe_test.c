/* Recipes: their schedules are readable for any number of stages, and begin with all skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/skip_recipe.h"
#include "base/skip_schedule.h"

static void schedules_skip_all_first_and_less_later(void **state)
{
	static const char *const names[] = { "speed", "robust" };
	char text[SKIP_RECIPE_TEXT];
	struct skip_schedule s;
	struct error err;

	(void)state;
	for (uint32_t d = 1; d < 63; d++)
		for (int k = 0; k < 2; k++) {
			assert_int_equal(skip_recipe_schedule(text, names[k], d, &err), 0);
			assert_int_equal(skip_schedule_parse(&s, text, 40, d, &err), 0);
			assert_int_equal(s.phases[0].skip, d);
			assert_int_equal(s.phases[0].share, 0);
			assert_int_equal(s.n, 2);
			assert_int_equal(s.phases[1].skip, k == 0 ? 0 : (d + 1) / 2);
			assert_int_equal(s.phases[1].share, k == 0 ? 0 : 30);
		}
	assert_int_equal(skip_recipe_schedule(text, "robust", 4, &err), 0);
	assert_string_equal(text, "4@0,30%:2@30%");
	assert_int_equal(skip_recipe_schedule(text, "speed", 4, &err), 0);
	assert_string_equal(text, "4@0,0@30%");
}

static void mistakes_are_named(void **state)
{
	char text[SKIP_RECIPE_TEXT];
	struct error err;

	(void)state;
	assert_int_equal(skip_recipe_schedule(text, "quick", 4, &err), -EINVAL);
	assert_non_null(strstr(err.text, "expected speed or robust"));
	assert_int_equal(skip_recipe_schedule(text, "speed", 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "may be skipped"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedules_skip_all_first_and_less_later),
		cmocka_unit_test(mistakes_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
