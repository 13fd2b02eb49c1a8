/* Tests that words reach a shell unchanged, and that a host's text cannot control the terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/command.h"
#include "base/tests/test.h"
#include "cli/fleet/script.h"
#include "cli/fleet/words.h"

static void expect_clean(const char *text, const char *clean)
{
	char out[64];

	words_clean(text, strlen(text), out, sizeof(out));
	assert_string_equal(out, clean);
}

/* Checks that the shell runs the line, and that the line's command prints `want`. A shell that this
 * machine does not have is skipped. */
static void expect_from(const char *shell, char *line, const char *want)
{
	char *argv[] = { (char *)shell, (char *)"-c", line, NULL };
	FILE *out = tmpfile();
	char got[2000];
	size_t n;

	assert_non_null(out);
	if (command_is_installed(shell)) {
		const struct command c = { .argv = argv, .in = -1, .out = fileno(out) };

		assert_int_equal(command_run(&c, NULL), 0);
		rewind(out);
		n = fread(got, 1, sizeof(got) - 1, out);
		got[n] = '\0';
		assert_string_equal(got, want);
	}
	fclose(out);
}

static void expect_from_all(char *line, const char *want)
{
	expect_from("sh", line, want);
	expect_from("bash", line, want);
	expect_from("zsh", line, want);
	expect_from("fish", line, want);
	expect_from("tcsh", line, want);
	expect_from("bsd-csh", line, want);
}

TEST(every_login_shell_gets_the_words_as_they_are)
{
	static const char *const words[] = { "plain",     "",         "two words", "it's",  "''",
					     "$HOME",     "`id`",     "$(id)",     "a\\b",  "\"q\"",
					     "*;|&<>()",  "-n",       "\tx ",      "a'b'c", "!x",
					     "line\nend", "\xc3\xa9", "\\\\'%s%%", NULL };
	char *list[32] = { (char *)"printf", (char *)"%s\\n" }, *line;
	char want[512] = "";
	size_t n;

	for (size_t i = 0; words[i]; i++) {
		list[i + 2] = (char *)words[i];
		n = strlen(want);
		snprintf(want + n, sizeof(want) - n, "%s\n", words[i]);
	}
	line = words_login_line(list);
	expect_from_all(line, want);
	/* csh ends a command at a line's end and replaces '!', even between single quotes. fish
	 * replaces two backslashes. These shells are rarely installed where this test runs. */
	assert_null(strpbrk(line, "\n!"));
	assert_null(strstr(line, "\\\\"));
	free(line);
}

TEST(the_script_runs_from_words_that_no_shell_refuses)
{
	char *const words[] = { (char *)"sh",    (char *)"-c", (char *)script_text,
				(char *)"fleet", (char *)"",   (char *)"",
				(char *)"0",     (char *)"",   NULL };
	char *line = words_login_line(words);
	size_t n;

	/* Linux limits the whole line, which is an argument of the login shell, to 128 KiB */
	assert_true(strlen(line) < 100000);
	expect_from_all(line, "\n@ here\n");
	/* The words of the line are all in single quotes, except the first and "fleet" */
	for (const char *word = strchr(line, '\''); word; word = strchr(word, '\'')) {
		n = strcspn(word + 1, "'");
		assert_in_range(n, 1, 1000);
		word += n + 2;
	}
	free(line);
}

/* An escape has five bytes. The text before the escapes gets five different lengths, so that a part
 * of the line becomes full at each byte of an escape. */
TEST(a_long_word_arrives_whole)
{
	static char word[2000];
	char *const words[] = { (char *)"printf", (char *)"%s", word, NULL };

	for (size_t n = 880; n < 885; n++) {
		char *line;

		memset(word, 'x', n);
		memset(word + n, '!', 300);
		line = words_login_line(words);
		expect_from("sh", line, word);
		free(line);
	}
}

TEST(a_hosts_text_cannot_steer_the_terminal)
{
	expect_clean("plain text", "plain text");
	expect_clean("a\tb \r", "a b");
	expect_clean("\033[31mred\033[0m", "?[31mred?[0m");
	expect_clean("\033]0;title\007", "?]0;title?");
	expect_clean("x\b\bok", "x??ok");
	expect_clean("\x7f", "?");
	expect_clean("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		     "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	expect_clean("\xc2\x9b"
		     "31m",
		     "??31m"); /* CSI as one C1 control character */
	expect_clean("\xe2\x80\xae"
		     "abc",
		     "???abc"); /* characters that reverse the direction of the text */
	expect_clean("\xe2\x81\xa6"
		     "abc",
		     "???abc");
	expect_clean("\xff\xfe\xc3", "???"); /* bytes that are not UTF-8 */
	/* An overlong encoding, and half of a surrogate pair */
	expect_clean("\xc0\xaf\xed\xa0\x80", "?????");
}

TEST(a_text_is_cut_between_characters)
{
	char out[6];

	words_clean("abcdefgh", 8, out, sizeof(out));
	assert_string_equal(out, "abcde");
	words_clean("abcd\xc3\xa9", 6, out, sizeof(out));
	assert_string_equal(out, "abcd");
}
