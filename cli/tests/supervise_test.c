/* Tests the supervisor with shell scripts in place of controller and agents. It ends processes in
 * the right order and obeys orders, and no process outlives it. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "cli/supervise.h"

struct fixture {
	char folder[64];
	struct processes processes;
	struct child agents[3];
	struct log log;
};

static int set_up(void **state)
{
	struct fixture *f = alloc_new(sizeof(*f));
	int orders[2];

	strcpy(f->folder, "/tmp/skippipe-cli-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	assert_int_equal(pipe2(orders, O_CLOEXEC | O_NONBLOCK), 0);
	f->processes = (struct processes){ .agents = f->agents,
					   .orders = orders[0],
					   .orders_to = orders[1],
					   .headless = true };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char command[128];

	for (uint32_t i = 0; i < 3; i++)
		child_free(&f->agents[i]);
	if (f->processes.controller.args.list != f->processes.resume.list)
		args_free(&f->processes.resume);
	child_free(&f->processes.controller);
	close(f->processes.orders);
	if (f->processes.orders_to >= 0)
		close(f->processes.orders_to);
	snprintf(command, sizeof(command), "rm -r %s", f->folder);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

/* Makes a child process that runs a script in the test's folder. The environment variable ORDERS
 * gives the script the descriptor for orders. Each script first appends its process id to the file
 * `pids`. */
static void part(struct fixture *f, struct child *c, const char *name, const char *script)
{
	args_add(&c->args, "/bin/sh");
	args_add(&c->args, "-c");
	args_addf(&c->args, "cd %s; ORDERS=%d; echo $$ >>pids; %s", f->folder,
		  f->processes.orders_to, script);
	assert_true(asprintf(&c->log, "%s/%s.log", f->folder, name) > 0);
}

static void agent(struct fixture *f, const char *script)
{
	char name[16];

	snprintf(name, sizeof(name), "agent%u", f->processes.n_agents);
	part(f, &f->agents[f->processes.n_agents], name, script);
	f->processes.n_agents++;
}

static bool exists(const struct fixture *f, const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	return stat(path, &st) == 0;
}

/* Returns the number of scripts that still run. A zombie of another parent does not count. */
static int alive(const struct fixture *f)
{
	char path[128], line[64];
	int n = 0;
	FILE *pids;

	snprintf(path, sizeof(path), "%s/pids", f->folder);
	pids = fopen(path, "r");
	assert_non_null(pids);
	while (fgets(line, sizeof(line), pids)) {
		char stat_path[64], status = 'X';
		FILE *st;

		snprintf(stat_path, sizeof(stat_path), "/proc/%d/stat", atoi(line));
		st = fopen(stat_path, "r");
		if (!st)
			continue;
		if (fscanf(st, "%*d (%*[^)]) %c", &status) == 1 && status != 'Z' && status != 'X')
			n++;
		fclose(st);
	}
	fclose(pids);
	return n;
}

/* Runs the processes. Checks that supervise returns `expected` and that no process is left. */
static void ends_with(struct fixture *f, int expected)
{
	struct error err = { "" };
	int status = -1;

	assert_int_equal(supervise(&f->processes, &f->log, &status, &err), 0);
	assert_int_equal(status, expected);
	assert_int_equal(alive(f), 0);
}

/* Sets the script that replaces the controller when it is restarted. */
static void resume_as(struct fixture *f, const char *script)
{
	struct child again = { 0 };

	part(f, &again, "again", script);
	f->processes.resume = again.args;
	free(again.log);
}

#define FIXTURE_TEST(name) TEST_WITH(name, set_up, tear_down)

FIXTURE_TEST(the_controllers_status_is_the_result)
{
	struct fixture *f = *state;

	part(f, &f->processes.controller, "controller",
	     "until [ -e ready ]; do sleep 0.02; done; exit 3");
	agent(f, "trap 'touch ended; exit 0' TERM; touch ready; while :; do sleep 0.05; done");
	/* This agent ends by itself soon after the controller, so the supervisor must not kill
	 * it. */
	agent(f, "sleep 0.4");
	ends_with(f, 3);
	assert_true(exists(f, "ended"));
}

FIXTURE_TEST(agents_that_ignore_sigterm_or_are_stopped_are_killed)
{
	struct fixture *f = *state;

	part(f, &f->processes.controller, "controller", "sleep 0.3; exit 0");
	agent(f, "trap '' TERM; while :; do sleep 0.1; done");
	agent(f, "kill -STOP $$");
	ends_with(f, 0);
}

FIXTURE_TEST(orders_are_obeyed)
{
	struct fixture *f = *state;

	/* The controller orders that agent 0 be killed and started again. The unknown order
	 * between these two orders is ignored. */
	part(f, &f->processes.controller, "controller",
	     "until [ -e first ]; do sleep 0.02; done;"
	     "eval \"echo 'kill 0' >&$ORDERS\"; sleep 0.3; [ ! -e died_politely ] || exit 9;"
	     "eval \"echo 'dance 0' >&$ORDERS\"; eval \"echo 'kill 77' >&$ORDERS\";"
	     "eval \"echo 'start 0' >&$ORDERS\"; n=0;"
	     "until [ -e second ]; do sleep 0.02; n=$((n+1)); [ $n -lt 250 ] || exit 8; done");
	agent(f, "trap 'touch died_politely; exit' TERM;"
		 "if [ -e first ]; then touch second; else touch first; fi; while :; do sleep "
		 "0.05; done");
	agent(f, "exec sleep 60");
	ends_with(f, 0);
}

/* A killed controller is restarted with --resume and the same pipe for orders. */
FIXTURE_TEST(a_killed_controller_is_resumed)
{
	struct fixture *f = *state;

	part(f, &f->processes.controller, "controller", "sleep 0.1; kill -9 $$");
	resume_as(f,
		  "eval \"echo 'start 7' >&$ORDERS\"; n=0; until [ -e alive ]; do sleep 0.02; "
		  "n=$((n+1));"
		  "[ $n -lt 250 ] || exit 8; done; if [ -e twice ]; then exit 5; fi; touch twice; "
		  "kill -9 $$");
	agent(f, "touch alive; exec sleep 60");
	ends_with(f, 5);
}

/* A controller that ended with an error is restarted too, until a controller writes "end". */
FIXTURE_TEST(a_failed_controller_is_resumed_until_the_run_is_over)
{
	struct fixture *f = *state;

	part(f, &f->processes.controller, "controller", "exit 1");
	resume_as(f,
		  "[ ! -e more ] || touch too_often; [ ! -e second ] || touch more; touch second;"
		  "[ ! -e more ] || { eval \"echo end >&$ORDERS\"; exit 6; }; exit 7");
	agent(f, "exec sleep 60");
	ends_with(f, 6);
	assert_true(exists(f, "more"));
	assert_false(exists(f, "too_often"));
	assert_int_equal(alive(f), 0);
}

/* A controller that fails before the run has a record is not restarted, because it would fail
 * again. */
FIXTURE_TEST(a_failed_start_is_the_end)
{
	struct fixture *f = *state;

	part(f, &f->processes.controller, "controller",
	     "[ ! -e once ] || touch twice; touch once; exit 1");
	resume_as(f, "touch twice; exit 1");
	f->processes.record = "/nowhere/run.db";
	agent(f, "exec sleep 60");
	ends_with(f, 1);
	assert_false(exists(f, "twice"));
}

/* A log is rotated when it is too large, so that logs never fill the disk. */
FIXTURE_TEST(logs_are_bounded)
{
	struct fixture *f = *state;
	char path[128];
	struct stat st;

	part(f, &f->processes.controller, "controller",
	     "until [ -e agent0.log.1 ]; do sleep 0.02; done");
	agent(f, "while :; do echo the same line over and over, to fill the log of the agent fast; "
		 "sleep 0.001; done");
	f->processes.log_most = 2000;
	ends_with(f, 0);
	snprintf(path, sizeof(path), "%s/agent0.log.1", f->folder);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 2000);
}

FIXTURE_TEST(one_that_keeps_crashing_is_let_go)
{
	struct fixture *f = *state;

	part(f, &f->processes.controller, "controller", "kill -9 $$");
	resume_as(f, "kill -9 $$");
	agent(f, "exec sleep 60");
	ends_with(f, 128 + SIGKILL);
}

/* If the supervisor gets SIGTERM, it sends SIGTERM to the controller, which then ends in order. */
FIXTURE_TEST(a_signal_ends_all_in_order)
{
	struct fixture *f = *state;
	sigset_t was;

	part(f, &f->processes.controller, "controller",
	     "trap 'touch closed; exit 0' TERM; while :; do sleep 0.02; done");
	agent(f, "exec sleep 60");
	sigprocmask(SIG_BLOCK, NULL, &was);
	supervise_hold_signals();
	/* This child sends SIGTERM to the supervisor after a moment. */
	if (fork() == 0) {
		usleep(300000);
		kill(getppid(), SIGTERM);
		_exit(0);
	}
	ends_with(f, 0);
	sigprocmask(SIG_SETMASK, &was, NULL);
	assert_true(exists(f, "closed"));
}

FIXTURE_TEST(agents_that_all_give_up_end_it)
{
	struct fixture *f = *state;
	struct error err = { "" };
	int status = -1;

	part(f, &f->processes.controller, "controller", "exec sleep 60");
	agent(f, "echo 2026-11-28T12:34:56.789Z error agent: no such device >&2; exit 1");
	agent(f, "exit 1");
	assert_int_equal(supervise(&f->processes, &f->log, &status, &err), -ECHILD);
	assert_non_null(strstr(err.text, "exit status 1"));
	assert_non_null(strstr(err.text, ": no such device"));
	assert_null(strstr(err.text, "12:34"));
	assert_int_equal(alive(f), 0);
}

FIXTURE_TEST(a_missing_program_is_reported)
{
	struct fixture *f = *state;
	char words[256];

	args_add(&f->processes.controller.args, "/nonexistent/controller");
	assert_true(asprintf(&f->processes.controller.log, "%s/controller.log", f->folder) > 0);
	agent(f, "exec sleep 60");
	ends_with(f, 127);
	child_last_line(&f->processes.controller, words, sizeof(words));
	assert_non_null(strstr(words, "/nonexistent/controller"));
	assert_int_equal(alive(f), 0);
}

/* When the supervisor is killed, the kernel signals its children. */
FIXTURE_TEST(nothing_outlives_the_supervisor)
{
	struct fixture *f = *state;
	pid_t supervisor;
	int n = 0;

	part(f, &f->processes.controller, "controller", "while :; do sleep 0.05; done");
	agent(f, "trap '' TERM; touch ready0; while :; do sleep 0.05; done");
	agent(f, "touch ready1; kill -STOP $$");
	supervisor = fork();
	if (supervisor == 0) {
		int status;

		supervise(&f->processes, &f->log, &status, NULL);
		_exit(0);
	}
	while (!exists(f, "ready0") || !exists(f, "ready1") || alive(f) < 3)
		usleep(10000);
	kill(supervisor, SIGKILL);
	waitpid(supervisor, NULL, 0);
	while (alive(f) > 0 && n++ < 500)
		usleep(10000);
	assert_int_equal(alive(f), 0);
}

/* A GPU's driver may hang while a program lists the devices. */
TEST(a_program_that_does_not_end_is_killed)
{
	struct args args = { 0 };
	struct error err = { "" };
	char out[8];

	args_add(&args, "/bin/sh");
	args_add(&args, "-c");
	args_add(&args, "trap '' TERM; while :; do sleep 1; done");
	assert_int_equal(child_output(&args, out, sizeof(out), 100000, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "/bin/sh has not ended"));
	args_free(&args);
	args_add(&args, "/bin/sh");
	args_add(&args, "-c");
	args_add(&args, "exec >&- 2>&-; while :; do sleep 1; done");
	assert_int_equal(child_output(&args, out, sizeof(out), 100000, &err), -ETIMEDOUT);
	args_free(&args);
}

TEST(output_is_returned_and_failures_are_reported)
{
	struct args args = { 0 };
	struct error err = { "" };
	char out[8];

	args_add(&args, "/bin/sh");
	args_add(&args, "-c");
	args_add(&args, "echo 0123456789; echo");
	assert_int_equal(child_output(&args, out, sizeof(out), CHILD_WAIT_US, &err), 0);
	assert_string_equal(out, "0123456");
	args_free(&args);
	args_add(&args, "/bin/sh");
	args_add(&args, "-c");
	args_add(&args, "echo no >&2; exit 1");
	assert_int_equal(child_output(&args, out, sizeof(out), CHILD_WAIT_US, &err), -EIO);
	assert_non_null(strstr(err.text, "no"));
	args_free(&args);
}
