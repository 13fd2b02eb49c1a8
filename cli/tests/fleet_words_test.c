/* Tests that words reach a shell unchanged, and that a host's text cannot control the terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "cli/fleet/script.h"
#include "cli/fleet/words.h"

static void expect_clean(const char *text, const char *clean)
{
	char out[64];

	words_clean(text, strlen(text), out, sizeof(out));
	assert_string_equal(out, clean);
}

/* The words go through a real shell, which prints each on a line. */
TEST(a_shell_gets_the_words_as_they_are)
{
	static const char *const words[] = { "plain",     "",         "two words", "it's",  "''",
					     "$HOME",     "`id`",     "$(id)",     "a\\b",  "\"q\"",
					     "*;|&<>()",  "-n",       "\tx ",      "a'b'c", "!x",
					     "line\nend", "\xc3\xa9", NULL };
	char *list[32] = { (char *)"printf", (char *)"%s\\n" }, *line, *command;
	char got[512], want[512] = "";
	size_t n;
	FILE *shell;

	for (size_t i = 0; words[i]; i++) {
		list[i + 2] = (char *)words[i];
		n = strlen(want);
		snprintf(want + n, sizeof(want) - n, "%s\n", words[i]);
	}
	line = words_quote(list);
	command = alloc_format("exec %s", line);
	shell = popen(command, "r");
	assert_non_null(shell);
	n = fread(got, 1, sizeof(got) - 1, shell);
	got[n] = '\0';
	assert_int_equal(pclose(shell), 0);
	assert_string_equal(got, want);
	free(command);
	free(line);
}

TEST(no_words_are_an_empty_line)
{
	char *const none[] = { NULL };
	char *line = words_quote(none);

	assert_string_equal(line, "");
	free(line);
}

/* The script has no backslash before a quote or a backslash, because fish and sh read these
 * differently inside single quotes. */
TEST(the_script_is_the_same_in_every_shell)
{
	assert_null(strchr(script_text, '\''));
	assert_null(strstr(script_text, "\\\\"));
	/* Linux limits a word of a command line to 128 KiB */
	assert_true(strlen(script_text) < 100000);
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
