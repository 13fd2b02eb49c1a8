#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/verbs.h"

static void slips_find_their_verb(void **state)
{
	static const char *const slips[][2] = {
		{ "dmeo", "demo" }, { "verfy", "verify" }, { "cons", "console" },
		{ "simulat", "simulate" }, { "agents", "agent" }, { "keygn", "keygen" },
		{ "Plan", "plan" }, { "tokenise", "tokenize" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
		const struct verb *v = verbs_nearest(slips[i][0]);

		assert_null(verbs_find(slips[i][0]));
		assert_non_null(v);
		assert_string_equal(v->name, slips[i][1]);
	}
}

static void what_is_far_from_all_finds_none(void **state)
{
	char long_word[200];

	(void)state;
	memset(long_word, 'a', sizeof(long_word) - 1);
	long_word[sizeof(long_word) - 1] = '\0';
	assert_null(verbs_nearest("zebra"));
	assert_null(verbs_nearest(""));
	assert_null(verbs_nearest("--frobnicate"));
	assert_null(verbs_nearest(long_word));
}

static void a_missing_program_is_named(void **state)
{
	struct error err = { "" };
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(verbs_program("skippipe-nothing", path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.text, "skippipe-nothing"));
	assert_int_equal(verbs_program("x", path, 3, &err), -ENAMETOOLONG);
}

static void the_overview_names_every_verb(void **state)
{
	static const char *const verbs[] = { "demo", "controller", "agent", "console", "plan",
					     "simulate", "train", "eval", "generate", "export",
					     "import", "tokenize", "verify", "keygen", "admit",
					     "expel" };
	char text[8192];
	FILE *f = fmemopen(text, sizeof(text), "w");

	(void)state;
	verbs_print(f);
	fclose(f);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		assert_non_null(verbs_find(verbs[i]));
		assert_non_null(strstr(text, verbs[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slips_find_their_verb),
		cmocka_unit_test(what_is_far_from_all_finds_none),
		cmocka_unit_test(a_missing_program_is_named),
		cmocka_unit_test(the_overview_names_every_verb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
