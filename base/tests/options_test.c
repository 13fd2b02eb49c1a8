/* options_test.c - a table of options: defaults, values, limits, words and the help. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/options.h"
#include "base/tests/test.h"

struct options {
	bool flag, second, given;
	const char *text, *words[4];
	int choice, number, n_words;
	uint32_t u32;
	double real;
	int64_t wait_us;
};

static int take_word(void *options, const char *word, struct error *err)
{
	struct options *o = options;

	if (o->n_words == 4)
		return error_set(err, -E2BIG, "--many: too many");
	o->words[o->n_words++] = word;
	return 0;
}

static const char *const two[] = { "late", "early", NULL };
static const char *const three[] = { "red", "green", "blue", NULL };

#define AT(field) .at = offsetof(struct options, field)
static const struct options_row rows[] = {
	{ "flag", OPTIONS_FLAG, AT(flag), .help = "a flag" },
	{ "text", OPTIONS_TEXT, "FILE", "none", "a text", AT(text),
	  offsetof(struct options, given) },
	{ NULL, .help = "Values" },
	{ "sums", OPTIONS_SECOND, "early|late", "early", "when", AT(second), .words = two },
	{ "choice", OPTIONS_CHOICE, "COLOUR", AT(choice), .words = three, .help = "a colour" },
	{ "number", OPTIONS_NUMBER, AT(number), .number = 7 },
	{ "u32", OPTIONS_U32, "N", "3",
	  "a number whose text is so long that it needs a second line, "
	  "where it goes on",
	  AT(u32), .least = 1, .most = 9 },
	{ "real", OPTIONS_REAL, "X", AT(real), .least = 0, .most = 2, .help = "any" },
	{ "wait-ms", OPTIONS_MILLISECONDS, "N", "450", "a wait", AT(wait_us), .most = 1e7 },
	{ "many", OPTIONS_PARSED, "FILE...", .parse = take_word, .many = true, .help = "files" },
	{ "help", OPTIONS_HELP, .help = "print this help" },
};
#undef AT

static const struct options_table table = { rows, sizeof(rows) / sizeof(rows[0]),
					    .intro = "usage: x\n\n" };

static int read_line(struct options *o, const char *line, bool *given, struct error *err)
{
	static char copy[400];
	char *argv[32] = { "x" };
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
		assert_true(argc + 1 < 32); /* options_read may need the NULL at the end */
		argv[argc++] = word;
	}
	*o = (struct options){ .choice = -1 };
	return options_read(&table, o, argc, argv, given, err);
}

TEST(defaults_and_values)
{
	bool given[sizeof(rows) / sizeof(rows[0])] = { false };
	struct options o;

	assert_int_equal(read_line(&o, "", given, NULL), 0);
	assert_true(o.second && !o.flag && !o.given && o.u32 == 3 && o.wait_us == 450000);
	assert_int_equal(o.choice, -1);
	assert_string_equal(o.text, "none");
	assert_false(given[1]);
	assert_int_equal(read_line(&o,
				   "--flag --text=a --sums late --choice blue --number "
				   "--u32 9 --real 0.5 --wait-ms 1 --many b c --text d",
				   given, NULL),
			 0);
	assert_true(o.flag && !o.second && o.given && o.u32 == 9 && o.wait_us == 1000);
	assert_true(o.real == 0.5 && o.choice == 2 && o.number == 7 && o.n_words == 2);
	assert_string_equal(o.text, "d"); /* the last one counts */
	assert_true(given[1] && given[6] && !given[10]);
	assert_int_equal(read_line(&o, "--help --u32 10", NULL, NULL), 1);
	assert_int_equal(read_line(&o, "-h", NULL, NULL), 1);
}

TEST(every_message_names_the_option)
{
	static const char *const cases[][2] = {
		{ "--u32 0", "--u32: expected a whole number from 1 to 9, got \"0\"" },
		{ "--u32 1.5", "--u32: expected a whole number from 1 to 9, got \"1.5\"" },
		{ "--u32 10", "--u32: " },
		{ "--real x", "--real: expected a number from 0 to 2, got \"x\"" },
		{ "--real nan", "--real: " },
		{ "--choice pink", "--choice: expected red, green or blue, got \"pink\"" },
		{ "--sums now", "--sums: expected late or early, got \"now\"" },
		{ "--text", "--text: needs a value" },
		{ "--nonsense", "--nonsense: unknown option" },
		{ "--many a b c d e", "--many: too many" },
		{ "word", "word: unexpected" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = { "" };
		struct options o;

		assert_true(read_line(&o, cases[i][0], NULL, &err) < 0);
		if (strncmp(err.text, cases[i][1], strlen(cases[i][1])) != 0)
			fail_msg("%s: %s", cases[i][0], err.text);
	}
}

TEST(the_help_shows_every_option_with_its_default)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	options_help(&table, to);
	fclose(to);
	assert_string_equal(
		text, "usage: x\n\n"
		      "  --flag                a flag\n"
		      "  --text FILE           a text  [none]\n"
		      "\nValues\n"
		      "  --sums early|late     when  [early]\n"
		      "  --choice COLOUR       a colour\n"
		      "  --u32 N               a number whose text is so long that it needs a "
		      "second line,\n"
		      "                        where it goes on  [3]\n"
		      "  --real X              any\n"
		      "  --wait-ms N           a wait  [450]\n"
		      "  --many FILE...        files\n"
		      "  --help                print this help\n");
	free(text);
}

/* Counts the words, because those of a variable are not kept. */
static int count_word(void *options, const char *word, struct error *err)
{
	struct options *o = options;

	(void)err;
	o->n_words += word[0] == 'f';
	return 0;
}

TEST(the_command_line_wins_over_the_environment)
{
	static const struct options_row of[] = {
		{ "text-of-it", OPTIONS_TEXT, "FILE", .at = offsetof(struct options, text) },
		{ "u32", OPTIONS_U32, "N", "3", .at = offsetof(struct options, u32), .least = 1,
		  .most = 9 },
		{ "flag", OPTIONS_FLAG, .at = offsetof(struct options, flag) },
		{ "many", OPTIONS_PARSED, "FILE...", .parse = count_word, .many = true },
	};
	static const struct options_table both = { of, 4, .environment = "OPTIONS_TEST_" };
	char *none[] = { "x", NULL }, *given[] = { "x", "--u32", "5", "--many", "f", NULL };
	struct options o = { .n_words = 0 };
	struct error err = { "" };

	setenv("OPTIONS_TEST_TEXT_OF_IT", "there", 1);
	setenv("OPTIONS_TEST_U32", "7", 1);
	setenv("OPTIONS_TEST_FLAG", "1", 1);
	setenv("OPTIONS_TEST_MANY", "f1:f2:f3", 1);
	assert_int_equal(options_read(&both, &o, 1, none, NULL, &err), 0);
	assert_string_equal(o.text, "there");
	assert_int_equal(o.u32, 7);
	assert_false(o.flag);
	assert_int_equal(o.n_words, 3);
	o.n_words = 0;
	assert_int_equal(options_read(&both, &o, 5, given, NULL, &err), 0);
	assert_int_equal(o.u32, 5);
	assert_int_equal(o.n_words, 1);
	setenv("OPTIONS_TEST_U32", "many", 1);
	assert_int_equal(options_read(&both, &o, 1, none, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "OPTIONS_TEST_U32: --u32: expected"));
	setenv("OPTIONS_TEST_U32", "", 1);
	assert_int_equal(options_read(&both, &o, 1, none, NULL, &err), 0);
	assert_int_equal(o.u32, 3);
	unsetenv("OPTIONS_TEST_TEXT_OF_IT");
	unsetenv("OPTIONS_TEST_MANY");
}
