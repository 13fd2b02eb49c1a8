/* Tests the command lines of a fleet's programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "cli/fleet/launch.h"

static void expect_words(struct args *a, const char *want)
{
	char got[1024] = "";

	for (size_t i = 0; i < a->n; i++) {
		size_t n = strlen(got);

		snprintf(got + n, sizeof(got) - n, "%s%s", i ? " " : "", a->list[i]);
	}
	assert_string_equal(got, want);
	args_free(a);
}

static void expect_controller(char *const *words, size_t agents, bool has_record, const char *want)
{
	const struct fleet_options o = { .controller_words = words };
	struct args a = { 0 };

	launch_controller(&a, &o, "/runs/a", agents, has_record);
	expect_words(&a, want);
}

TEST(an_agent_knows_what_the_file_says)
{
	struct host bare = { .name = "m1", .target = "m1" };
	struct host full = { .name = "m2",
			     .place = "eu",
			     .device = "cuda:0,cuda:1",
			     .listen = "tcp://0.0.0.0:7702",
			     .advertise = "tcp://h:9" };
	struct args a = { 0 };

	launch_agent(&a, &bare, "/home/me/run");
	expect_words(&a, "agent --run-dir=run --key=run/agent-m1.key --name=m1");
	launch_agent(&a, &full, "run");
	expect_words(&a, "agent --run-dir=run --key=run/agent-m2.key --name=m2 --place=eu "
			 "--device=cuda:0,cuda:1 --listen=tcp://0.0.0.0:7702 "
			 "--advertise=tcp://h:9");
	assert_int_equal(launch_count(&bare, 8), 1);
	assert_int_equal(launch_count(&full, 8), 2);
	strcpy(full.device, "cpu,cuda:all:bf16");
	assert_int_equal(launch_count(&full, 8), 9);
	strcpy(full.device, "cuda:all");
	assert_int_equal(launch_count(&full, 0), 1);
}

TEST(the_controller_expects_the_agents_that_run)
{
	char *none[] = { NULL };
	char *stages[] = { (char *)"--stages", (char *)"3,2", (char *)"--skip=1", NULL };
	char *size[] = { (char *)"--agents=9", (char *)"--listen", (char *)"tcp://0.0.0.0:1",
			 NULL };

	expect_controller(none, 7, false,
			  "controller --run-dir=/runs/a --listen=tcp://[::]:7700 --agents=7 "
			  "--stages=3,2,2");
	expect_controller(none, 20, false,
			  "controller --run-dir=/runs/a --listen=tcp://[::]:7700 --agents=20 "
			  "--stages=5,3,3,3,3,3");
	expect_controller(none, 2, false,
			  "controller --run-dir=/runs/a --listen=tcp://[::]:7700 --agents=2 "
			  "--stages=1,1");
	expect_controller(stages, 4, false,
			  "controller --run-dir=/runs/a --listen=tcp://[::]:7700 --agents=5 "
			  "--stages 3,2 --skip=1");
	expect_controller(size, 4, false,
			  "controller --run-dir=/runs/a --agents=9 --listen tcp://0.0.0.0:1");
}

/* The operator repeats the same `up` after the controller has died. `up` then resumes the run and
 * drops the options that only a new run accepts. */
TEST(a_resumed_run_keeps_its_options)
{
	char *words[] = { (char *)"--stages",
			  (char *)"2,2",
			  (char *)"--corpus",
			  (char *)"a",
			  (char *)"b",
			  (char *)"--iterations",
			  (char *)"40",
			  (char *)"--metrics=9464",
			  (char *)"--model=tiny",
			  NULL };

	expect_controller(words, 4, true,
			  "controller --resume=/runs/a --listen=tcp://[::]:7700 --iterations 40 "
			  "--metrics=9464");
}

TEST(options_that_fleet_chooses_are_refused)
{
	char *run[] = { (char *)"--run-dir", (char *)"x", NULL };
	char *key[] = { (char *)"--key=x", NULL };
	char *listen[] = { (char *)"--listen", (char *)"tcp://0.0.0.0:9", NULL };
	char *line[] = { (char *)"--name", (char *)"a\nb", NULL };
	char *good[] = { (char *)"--keep-tasks", (char *)"9", NULL };
	struct fleet_options o = { .controller_words = run };
	struct error err = { "" };

	assert_int_not_equal(launch_check(&o, &err), 0);
	assert_non_null(strstr(err.text, "--run-dir"));
	o.controller_words = key;
	assert_int_not_equal(launch_check(&o, &err), 0);
	o.controller_words = line;
	assert_int_not_equal(launch_check(&o, &err), 0);
	o.controller_words = listen;
	assert_int_not_equal(launch_check(&o, &err), 0);
	assert_non_null(strstr(err.text, "--address"));
	o.n_addresses = 1;
	assert_int_equal(launch_check(&o, &err), 0);
	o.controller_words = good;
	assert_int_equal(launch_check(&o, &err), 0);
}
