/* command_test.c - runs real commands: they succeed, fail, ignore SIGTERM, or are ended on
 * request. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/command.h"
#include "base/tests/test.h"

static int run_line(const char *line, struct command c, struct error *err)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)line, NULL };

	c.argv = argv;
	return command_run(&c, err);
}

TEST(a_command_gets_its_input_environment_and_output)
{
	char *const environment[] = { (char *)"WORD=given", NULL };
	char text[32] = "";
	struct error err;
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(write(in[1], "piped\n", 6), 6);
	close(in[1]);
	assert_int_equal(
		run_line("read x; echo $x $WORD $HOME",
			 (struct command){ .environment = environment, .in = in[0], .out = out[1] },
			 &err),
		0);
	assert_int_equal(read(out[0], text, sizeof(text) - 1), 12);
	assert_string_equal(text, "piped given\n");
	close(in[0]);
	close(out[0]);
	close(out[1]);
}

TEST(a_failure_has_its_reason_and_no_word_of_the_command)
{
	char *const missing[] = { (char *)"/nowhere/secret", NULL };
	struct command c = { .argv = missing, .in = -1, .out = -1 };
	struct error err;

	assert_int_equal(run_line("exit 7 # secret", c, &err), -EIO);
	assert_string_equal(err.text, "failed with exit status 7");
	assert_int_equal(run_line("kill -KILL $$", c, &err), -EIO);
	assert_string_equal(err.text, "was ended by signal 9");
	assert_int_equal(command_run(&c, &err), -ENOENT);
	assert_null(strstr(err.text, "secret"));
}

TEST(a_command_that_ignores_sigterm_is_killed_after_its_limit)
{
	struct error err;

	assert_int_equal(run_line("trap '' TERM; sleep 1000; sleep 1000",
				  (struct command){ .in = -1, .out = -1, .limit_us = 50000 }, &err),
			 -ETIMEDOUT);
	assert_non_null(strstr(err.text, "was killed"));
}

static void *stop_soon(void *stopped)
{
	usleep(50000);
	*(atomic_bool *)stopped = true;
	return NULL;
}

TEST(a_command_is_ended_on_request)
{
	atomic_bool stopped = false;
	struct error err;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stopped), 0);
	assert_int_equal(run_line("sleep 1000",
				  (struct command){ .in = -1, .out = -1, .stopped = &stopped },
				  &err),
			 -ECANCELED);
	pthread_join(thread, NULL);
}

TEST(a_program_is_found_in_path_only)
{
	assert_true(command_is_installed("sh"));
	assert_false(command_is_installed("no-such-program-anywhere"));
}
