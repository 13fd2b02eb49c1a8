/* Tests that a reader that pauses does not delay the program, and that only whole lines arrive. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/outlet.h"
#include "base/tests/test.h"

enum { LINES = 20000, SECOND_US = 1000000 };

static bool memory_is_short;

/* Replaces fopencookie of the C library. It fails while memory_is_short, as if memory had run
 * out. */
FILE *fopencookie(void *restrict cookie, const char *restrict mode, cookie_io_functions_t functions)
{
	FILE *(*real)(void *, const char *, cookie_io_functions_t);

	*(void **)&real = dlsym(RTLD_NEXT, "fopencookie");
	return memory_is_short ? NULL : real(cookie, mode, functions);
}

static struct outlet *open_pipe(int ends[2], FILE **to)
{
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	*to = fdopen(ends[1], "w");
	assert_non_null(*to);
	return outlet_new(*to);
}

/* More lines than a pipe holds are written before anything is read. All of them arrive. */
TEST(a_reader_that_pauses_delays_nobody)
{
	int ends[2], n = 0, number;
	FILE *to, *from;
	struct outlet *o = open_pipe(ends, &to);
	char line[64];

	for (int i = 0; i < LINES; i++) {
		fprintf(outlet_stream(o), "line %d of many that the pipe has no room for\n", i);
		fflush(outlet_stream(o));
	}
	from = fdopen(ends[0], "r");
	for (; n < LINES && fgets(line, sizeof(line), from); n++) {
		assert_int_equal(sscanf(line, "line %d of", &number), 1);
		assert_int_equal(number, n);
	}
	assert_int_equal(n, LINES);
	assert_int_equal(outlet_free(o, SECOND_US), 0);
	fclose(from);
	fclose(to);
}

TEST(lines_that_nobody_reads_are_reported_as_missing)
{
	int ends[2];
	FILE *to;
	struct outlet *o = open_pipe(ends, &to);

	for (int i = 0; i < LINES; i++)
		fprintf(outlet_stream(o), "line %d of many that the pipe has no room for\n", i);
	assert_int_equal(outlet_free(o, SECOND_US / 10), -ENOBUFS);
	close(ends[0]);
}

/* A queue without room drops lines, but no parts of lines. Each line reaches the queue in many
 * pieces, so the queue becomes full in the middle of a line. */
TEST(a_full_queue_drops_whole_lines)
{
	enum { PIECES = 1000, WRITTEN = 300, READ = 100 };
	static const char piece[] = "pieces of a line, of which the queue has many, are never "
				    "dropped one by one in the middle. ";
	char line[PIECES * sizeof(piece)];
	int ends[2], n = 0;
	FILE *to, *from;
	struct outlet *o = open_pipe(ends, &to);

	for (int i = 0; i < WRITTEN; i++) {
		for (int k = 0; k < PIECES; k++)
			fputs(piece, outlet_stream(o));
		fputc('\n', outlet_stream(o));
		fflush(outlet_stream(o));
	}
	from = fdopen(ends[0], "r");
	for (; fgets(line, sizeof(line), from) && strcmp(line, "end\n") != 0; n++) {
		assert_int_equal(strlen(line), PIECES * (sizeof(piece) - 1) + 1);
		if (n == READ) { /* the queue has room again */
			fprintf(outlet_stream(o), "end\n");
			fflush(outlet_stream(o));
		}
	}
	assert_string_equal(line, "end\n");
	assert_true(n > READ && n < WRITTEN);
	assert_int_equal(outlet_free(o, SECOND_US), -ENOBUFS);
	fclose(from);
	fclose(to);
}

TEST(a_failed_write_is_reported)
{
	FILE *full = fopen("/dev/full", "w");
	struct outlet *o = outlet_new(full);

	fprintf(outlet_stream(o), "a line\n");
	assert_int_equal(outlet_free(o, SECOND_US), -ENOSPC);
	fclose(full);
}

/* If there is no memory for its stream, a program ends with a message, as base/alloc.h promises. */
TEST(a_program_without_memory_for_the_stream_ends)
{
	int ends[2], messages[2], status;
	FILE *to;
	char text[200] = "";
	pid_t pid;

	assert_int_equal(pipe(messages), 0);
	pid = fork();
	if (pid == 0) {
		dup2(messages[1], STDERR_FILENO);
		memory_is_short = true;
		fputs("a line", outlet_stream(open_pipe(ends, &to)));
		_exit(0);
	}
	close(messages[1]);
	assert_true(read(messages[0], text, sizeof(text) - 1) > 0);
	close(messages[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_non_null(strstr(text, "out of memory"));
}
