
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/tests/test.h"
#include "cli/verbs.h"

TEST(slips_find_their_verb)
{
	static const char *const slips[][2] = {
		{ "dmeo", "demo" }, { "verfy", "verify" }, { "cons", "console" },
		{ "simulat", "simulate" }, { "agents", "agent" }, { "keygn", "keygen" },
		{ "Plan", "plan" }, { "tokenise", "tokenize" },
	};

	for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
		const struct verb *v = verbs_nearest(slips[i][0]);

		assert_null(verbs_find(slips[i][0]));
		assert_non_null(v);
		assert_string_equal(v->name, slips[i][1]);
	}
}

TEST(a_word_far_from_all_verbs_finds_none)
{
	char long_word[200];

	memset(long_word, 'a', sizeof(long_word) - 1);
	long_word[sizeof(long_word) - 1] = '\0';
	assert_null(verbs_nearest("zebra"));
	assert_null(verbs_nearest(""));
	assert_null(verbs_nearest("--frobnicate"));
	assert_null(verbs_nearest(long_word));
}

TEST(a_missing_program_is_named)
{
	struct error err = { "" };
	char path[PATH_MAX];

	assert_int_equal(verbs_program("skippipe-nothing", path, sizeof(path), &err), -ENOENT);
	assert_non_null(strstr(err.text, "skippipe-nothing"));
	assert_int_equal(verbs_program("x", path, 3, &err), -ENAMETOOLONG);
}

TEST(the_overview_names_every_verb)
{
	static const char *const verbs[] = { "demo", "controller", "agent", "console", "plan",
					     "simulate", "train", "eval", "generate", "export",
					     "import", "tokenize", "verify", "keygen", "admit",
					     "expel" };
	char text[8192];
	FILE *f = fmemopen(text, sizeof(text), "w");

	verbs_print(f);
	fclose(f);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		assert_non_null(verbs_find(verbs[i]));
		assert_non_null(strstr(text, verbs[i]));
	}
}
