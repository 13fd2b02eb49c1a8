/* Tests functions that run in a child process. */
#include "base/process/trial.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tests/test.h"

enum { SIZE = 200000 /* bytes of a report, more than a pipe holds */ };

static int fill(void *context, void *result, struct error *err)
{
	memset(result, *(const char *)context, SIZE);
	return error_set(err, -ENODEV, "there is none");
}

static int crash(void *context, void *result, struct error *err)
{
	(void)result;
	(void)err;
	return raise(*(const int *)context);
}

static int hang(void *context, void *result, struct error *err)
{
	(void)context;
	(void)result;
	(void)err;
	while (pause() < 0)
		;
	return 0;
}

TEST(a_result_and_a_message_return)
{
	char *result = calloc(1, SIZE);
	struct error err = { "" };

	assert_int_equal(trial_run(fill, (void *)(uintptr_t) "x", result, SIZE, 100, "it", &err),
			 -ENODEV);
	assert_string_equal(err.text, "there is none");
	assert_int_equal(result[0], 'x');
	assert_int_equal(result[SIZE - 1], 'x');
	free(result);
}

TEST(a_crash_ends_the_child_alone)
{
	int number = SIGKILL, result = 7;
	struct error err = { "" };

	assert_int_equal(trial_run(crash, &number, &result, sizeof(result), 100, "disk", &err),
			 -EIO);
	assert_string_equal(err.text, "disk: the program crashed in it: Killed");
	assert_int_equal(result, 7);
}

TEST(a_hang_ends)
{
	int result = 7;
	struct error err = { "" };

	assert_int_equal(trial_run(hang, NULL, &result, sizeof(result), 1, "disk", &err),
			 -ETIMEDOUT);
	assert_string_equal(err.text, "disk: nothing happened within 1 s");
	assert_int_equal(result, 7);
}
