/* Tests the hosts' lines: progress_set rewrites them on a terminal, and prints new lines
 * elsewhere. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "cli/fleet/progress.h"

static const struct host hosts[] = { { .name = "m1" }, { .name = "left" } };

static void show_some(FILE *to)
{
	struct progress *p = progress_new(to, hosts, 2);

	progress_set(p, 0, "connecting");
	progress_set(p, 1, "connecting");
	/* An unchanged text is not printed again. */
	progress_set(p, 1, "connecting");
	progress_print(p, "%d checked", 2);
	progress_set(p, 1, "FAILED: %s", "Connection refused");
	progress_free(p);
}

TEST(a_log_gets_a_line_for_each_change)
{
	char text[512];
	int fd = memfd_create("log", 0);
	FILE *to = fdopen(fd, "w+");
	ssize_t n;

	assert_non_null(to);
	show_some(to);
	n = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	fclose(to);
	assert_string_equal(text, "m1    connecting\n"
				  "left  connecting\n"
				  "2 checked\n"
				  "left  FAILED: Connection refused\n");
}

/* Reads the terminal's output until it ends with "end", and removes this word. A single read may
 * return only a part of the output. */
static void read_to_end(int master, char *text, size_t room)
{
	size_t used = 0;

	do {
		ssize_t n = read(master, text + used, room - 1 - used);

		assert_true(n > 0);
		used += (size_t)n;
	} while (used < 3 || memcmp(text + used - 3, "end", 3) != 0);
	text[used - 3] = '\0';
}

/* Shows some lines on a terminal with `rows` rows, and copies what it received to `text`. */
static void show_on_terminal(unsigned short rows, char *text, size_t room)
{
	const struct winsize size = { .ws_row = rows, .ws_col = 80 };
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	FILE *to;

	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
	setenv("TERM", "xterm", 1);
	to = fdopen(slave, "w");
	show_some(to);
	fputs("end", to);
	fflush(to);
	read_to_end(master, text, room);
	fclose(to);
	close(master);
}

TEST(a_terminal_keeps_a_line_for_each_host)
{
	char text[1024];

	show_on_terminal(24, text, sizeof(text));
	assert_string_equal(text, "m1    connecting\033[K\r\nleft  \033[K\r\n"
				  "\033[2A\rm1    connecting\033[K\r\nleft  connecting\033[K\r\n"
				  "\033[2A\r\033[J2 checked\r\n"
				  "m1    connecting\033[K\r\nleft  connecting\033[K\r\n"
				  "\033[2A\rm1    connecting\033[K\r\n"
				  "left  FAILED: Connection refused\033[K\r\n");
}

TEST(a_terminal_with_too_few_rows_scrolls)
{
	char text[1024];

	show_on_terminal(2, text, sizeof(text));
	assert_null(strstr(text, "\033["));
}
