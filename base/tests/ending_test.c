/* ending_test.c - ends real commands: a command that obeys SIGTERM, one that ignores SIGTERM, one
 * whose shell ends first, and one that is stopped. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/ending.h"
#include "base/tests/test.h"

enum { SHORT_US = 50000, LONG_US = 600000000 };

/* Starts a shell in a process group of its own, and returns once it has written a byte. */
static pid_t start(const char *script)
{
	int pipes[2];
	char byte;
	pid_t pid;

	/* Lets orphans become children of this process, so that the test does not depend on the
	 * system's first process. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	return pid;
}

static bool nothing_is_left(pid_t pid)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD && kill(-pid, 0) != 0;
}

TEST(a_wait_for_a_child_has_a_limit)
{
	pid_t pid = start("echo; sleep 1000; exit 3");
	int status = 0;

	assert_int_equal(process_wait(pid, SHORT_US, &status), -ETIMEDOUT);
	assert_int_equal(kill(-pid, SIGKILL), 0);
	assert_int_equal(process_wait(pid, LONG_US, &status), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	while (!nothing_is_left(pid))
		usleep(1000);
}

TEST(a_command_that_obeys_ends_by_its_own_status)
{
	pid_t pid = start("trap 'exit 7' TERM; echo; while :; do sleep 0.01; done");
	int status = 0;

	assert_int_equal(process_end(pid, true, LONG_US, &status), 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_true(nothing_is_left(pid));
}

TEST(a_command_that_ignores_the_signal_is_killed)
{
	pid_t pid = start("trap '' TERM; echo; while :; do sleep 1; done");
	int status = 0;

	assert_int_equal(process_end(pid, true, SHORT_US, &status), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(nothing_is_left(pid));
}

/* The shell obeys SIGTERM, and its command does not. */
TEST(a_command_whose_shell_has_ended_is_killed)
{
	pid_t pid = start("(trap '' TERM; echo; while :; do sleep 1; done) & wait");
	int status = 0;

	assert_int_equal(process_end(pid, true, SHORT_US, &status), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_true(nothing_is_left(pid));
}

TEST(a_stopped_command_ends)
{
	pid_t pid = start("echo; exec sleep 1000");
	int status = 0;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(process_end(pid, true, LONG_US, &status), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_true(nothing_is_left(pid));
}
