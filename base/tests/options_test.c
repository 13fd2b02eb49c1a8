/* options_test.c - tests a table of options: defaults, values, limits, words and the help. */
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
		/* Leaves room for the NULL at the end, which options_read may need. */
		assert_true(argc + 1 < 32);
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
	assert_string_equal(o.text, "d"); /* the last value counts */
	assert_true(given[1] && given[6] && !given[10]);
	assert_int_equal(read_line(&o, "--help --u32 10", NULL, NULL), 1);
	assert_int_equal(read_line(&o, "-h", NULL, NULL), 1);
}

TEST(the_only_word_has_a_field)
{
	struct options_table t = { .rows = rows, .n = sizeof(rows) / sizeof(rows[0]) };
	char *argv[] = { "x", "run", "--flag", "again", NULL };
	struct error err = { "" };
	struct options o = { 0 };

	assert_int_equal(options_read(&t, &o, 2, argv, NULL, &err), -EINVAL);
	assert_string_equal(err.text, "run: unexpected (see --help)");
	t.only_word_expected = "one RUN-DIR";
	t.only_word = offsetof(struct options, words);
	assert_int_equal(options_read(&t, &o, 3, argv, NULL, NULL), 0);
	assert_string_equal(o.words[0], "run");
	o = (struct options){ 0 };
	assert_int_equal(options_read(&t, &o, 4, argv, NULL, &err), -EINVAL);
	assert_string_equal(err.text, "again: expected one RUN-DIR (see --help)");
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
		{ "--rea 1", "--rea: no such option; is --real meant?" },
		{ "--fla", "--fla: no such option; is --flag meant?" },
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

/* Counts the words that begin with 'f'. A function of this kind must not keep the word:
 * options_read frees the words of an environment variable after the call. */
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

/* A table of two verbs, `take` (bit 1) and `give` (bit 2), with some options of the kind
 * OPTIONS_PASSED. */
struct trade {
	char passed[64];
	uint64_t size;
	float share;
	const char *name;
};

static int pass(void *options, const struct options_row *r, const char *value, struct error *err)
{
	struct trade *o = options;
	size_t n = strlen(o->passed);

	if (value && strcmp(value, "bad") == 0)
		return error_set(err, -EINVAL, "--%s: bad", r->name);
	snprintf(o->passed + n, sizeof(o->passed) - n, "%s=%s ", r->name, value ? value : "");
	return 0;
}

static const struct options_row trade_rows[] = {
	{ "name", OPTIONS_TEXT, "A", "anna", "who takes", .at = offsetof(struct trade, name),
	  .mark = 1 },
	{ "name", OPTIONS_TEXT, "B", "bert", "who gives", .at = offsetof(struct trade, name),
	  .mark = 2 },
	{ "size", OPTIONS_U64, "N", .at = offsetof(struct trade, size), .most = 0x1p63, .mark = 1,
	  .help = "a size" },
	{ "share", OPTIONS_FLOAT, "X", .at = offsetof(struct trade, share), .most = 1, .mark = 2,
	  .help = "a share" },
	{ "far", OPTIONS_PASSED, "N", .help = "passed on" },
	{ "wide", OPTIONS_PASSED, .help = NULL },
	{ "list", OPTIONS_PASSED, "FILE...", .many = true },
};

static int trade(unsigned part, struct trade *o, const char *line, struct error *err)
{
	const struct options_table t = { trade_rows,
					 sizeof(trade_rows) / sizeof(trade_rows[0]),
					 .part = part,
					 .verb = part == 1 ? "take" : "give",
					 .hint = part == 1 ? "it takes" : NULL,
					 .pass = pass };
	static char copy[400];
	char *argv[16] = { "x" };
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word && argc < 15; word = strtok(NULL, " "))
		argv[argc++] = word;
	*o = (struct trade){ .size = 0 };
	return options_read(&t, o, argc, argv, NULL, err);
}

TEST(a_verb_has_its_own_rows)
{
	const struct options_table t = { trade_rows, sizeof(trade_rows) / sizeof(trade_rows[0]),
					 .part = 2, .verb = "give", .pass = pass };
	struct error err = { "" };
	struct trade o;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_int_equal(trade(1, &o, "--size 9223372036854775807", &err), 0);
	assert_true(o.size == INT64_MAX);
	assert_string_equal(o.name, "anna");
	assert_int_equal(trade(2, &o, "--share 0.25 --name c", &err), 0);
	assert_true(o.share == 0.25f);
	assert_string_equal(o.name, "c");
	assert_int_equal(trade(1, &o, "--share 0.25", &err), -EINVAL);
	assert_string_equal(err.text, "--share is no option of take (it takes)");
	assert_int_equal(trade(2, &o, "--size=1", &err), -EINVAL);
	assert_string_equal(err.text, "--size is no option of give (skippipe help give)");
	assert_int_equal(trade(1, &o, "--size 9223372036854775808", &err), -EINVAL);
	assert_string_equal(err.text, "--size: expected a whole number from 0 to "
				      "9223372036854775807, got \"9223372036854775808\"");
	assert_non_null(to);
	options_help(&t, to);
	fclose(to);
	assert_string_equal(text, "  --name B              who gives  [bert]\n"
				  "  --share X             a share\n"
				  "  --far N               passed on\n");
	free(text);
}

TEST(options_are_passed_on_in_their_order)
{
	struct error err = { "" };
	struct trade o;

	assert_int_equal(trade(1, &o, "--far -1 --wide --far=2 --list a b --wide", &err), 0);
	assert_string_equal(o.passed, "far=-1 wide= far=2 list=a list=b wide= ");
	assert_int_equal(trade(1, &o, "--list a bad", &err), -EINVAL);
	assert_string_equal(err.text, "--list: bad");
}
