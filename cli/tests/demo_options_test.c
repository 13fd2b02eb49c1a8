
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "cli/demo_options.h"

enum { MOST_WORDS = 32 };

/* Splits a line at its spaces and parses the words, which stay in `line`. */
static int parse_as(bool rehearse, struct demo_options *o, char *line, struct error *err)
{
	char *argv[MOST_WORDS + 1] = { "demo" };
	size_t n = 1;

	for (char *word = strtok(line, " "); word && n < MOST_WORDS; word = strtok(NULL, " "))
		argv[n++] = word;
	argv[n] = NULL;
	return demo_options_parse(o, rehearse, argv, err);
}

static int parse(struct demo_options *o, char *line, struct error *err)
{
	return parse_as(false, o, line, err);
}

TEST(without_options_it_is_the_published_shape)
{
	static const uint32_t shape[] = { 5, 3, 3, 3, 3, 3 };
	struct demo_options o;
	char line[] = "";

	assert_int_equal(parse(&o, line, NULL), 0);
	assert_int_equal(o.agents, 20);
	assert_int_equal(o.skip, 2);
	assert_int_equal(o.n_stages, 6);
	assert_memory_equal(o.stages, shape, sizeof(shape));
	assert_false(o.headless);
	assert_int_equal(o.controller.n, 0);
	demo_options_free(&o);
}

TEST(a_third_of_the_given_stages_is_skipped)
{
	struct demo_options o;
	char line[] = "--stages 5,3,3";

	assert_int_equal(parse(&o, line, NULL), 0);
	assert_int_equal(o.skip, 1);
	demo_options_free(&o);
}

TEST(options_reach_the_right_program)
{
	static const char *const passed[] = { "--iterations",
					      "40",
					      "--time-scale",
					      "0",
					      "--at",
					      "20:fail:3",
					      "--serialise",
					      "--corpus",
					      "a.txt",
					      "--corpus",
					      "b.txt",
					      "--seed",
					      "7" };
	struct demo_options o;
	char line[] = "--agents 8 --skip 1/4 --headless --format=jsonl --iterations 40 "
		      "--time-scale=0 --at 20:fail:3 --serialise --corpus a.txt b.txt --seed 7 "
		      "--run-dir /x --device cuda --recompute block";

	assert_int_equal(parse(&o, line, NULL), 0);
	assert_int_equal(o.agents, 8);
	assert_int_equal(o.n_stages, 4);
	assert_int_equal(o.skip, 1);
	assert_int_equal(o.stages[0] + o.stages[1] + o.stages[2] + o.stages[3], 8);
	assert_true(o.headless);
	assert_string_equal(o.format, "jsonl");
	assert_string_equal(o.run_dir, "/x");
	assert_string_equal(o.device, "cuda");
	assert_string_equal(o.recompute, "block");
	assert_int_equal(o.controller.n, sizeof(passed) / sizeof(passed[0]));
	for (size_t i = 0; i < o.controller.n; i++)
		assert_string_equal(o.controller.list[i], passed[i]);
	assert_int_equal(o.again.n, 2);
	assert_string_equal(o.again.list[0], "--at");
	assert_string_equal(o.again.list[1], "20:fail:3");
	demo_options_free(&o);
}

/* The algorithm dtfm visits every stage. Without --skip, its demo therefore skips no stage. */
TEST(a_baseline_that_skips_nothing_needs_no_skip)
{
	struct demo_options o;
	char line[] = "--algorithm dtfm", skips[] = "--algorithm=dtfm-skip",
	     none[] = "--skip 0/4 --algorithm dtfm";

	assert_int_equal(parse(&o, line, NULL), 0);
	assert_string_equal(o.algorithm, "dtfm");
	assert_int_equal(o.skip, 0);
	demo_options_free(&o);
	assert_int_equal(parse(&o, skips, NULL), 0);
	assert_int_equal(o.skip, 2);
	demo_options_free(&o);
	assert_int_equal(parse(&o, none, NULL), 0);
	assert_int_equal(o.n_stages, 4);
	demo_options_free(&o);
}

TEST(contradictions_are_reported)
{
	static const char *const lines[][2] = {
		{ "--agents 3", "--agents 3: 6 stages" },
		{ "--agents 4..8", "--agents 4..8: 6 stages need at least 6" },
		{ "--agents 9..8", "--agents: expected a whole number" },
		{ "--agents 6..", "--agents: expected a whole number" },
		{ "--agents ..6", "--agents: expected a whole number" },
		{ "--agents zwei", "--agents: expected a whole number from 2 to 1000" },
		{ "--agents -5", "--agents: expected a whole number from 2 to 1000" },
		{ "--agents", "--agents: needs a value" },
		{ "--skip 6/6", "stage 0 cannot be skipped" },
		{ "--skip 2/", "--skip" },
		{ "--skip 2/1", "--skip" },
		{ "--stages 5,3,,3", "--stages: expected counts" },
		{ "--stages 5,3,0", "--stages: expected counts" },
		{ "--agents 20 --stages 5,3,3", "adds up to 11" },
		{ "--stages 5,3,3 --skip 2/6", "--stages has 3 stages" },
		{ "--algorithm dtfm --skip 2/6", "dtfm visits every stage" },
		{ "--format xml", "--format: expected text or jsonl" },
		{ "--seed", "--seed: needs a value" },
		{ "--frobnicate", "--frobnicate: unknown option" },
		{ "stray", "stray: unexpected" },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct demo_options o;
		struct error err = { "" };
		char line[128];

		snprintf(line, sizeof(line), "%s", lines[i][0]);
		assert_int_equal(parse(&o, line, &err), -EINVAL);
		if (!strstr(err.text, lines[i][1]))
			fail_msg("%s gave: %s", lines[i][0], err.text);
	}
}

/* Every stage gets a node, every node is used, and all stages but stage 0 differ by at most one
 * node. */
TEST(dealing_leaves_no_stage_empty)
{
	uint32_t stages[DEMO_STAGES_MOST];

	for (uint32_t s = 1; s <= 16; s++) {
		for (uint32_t n = s; n <= 200; n++) {
			uint32_t sum = 0;

			assert_int_equal(demo_deal_stages(n, s, stages, NULL), 0);
			for (uint32_t i = 0; i < s; i++) {
				sum += stages[i];
				assert_true(stages[i] >= 1);
				if (i > 0)
					assert_true(stages[1] - stages[i] <= 1);
			}
			assert_int_equal(sum, n);
		}
		assert_int_equal(demo_deal_stages(s - 1, s, stages, NULL), -EINVAL);
	}
}

TEST(a_rehearsal_has_its_own_options)
{
	static const char *const passed[] = {
		"--rehearse", "--model=1.5b", "--time-scale=1", "--scale-bytes", "100", "--wire",
		"q6"
	};
	struct demo_options o;
	char line[] = "--scale-bytes 100 --wire q6 --agents 8 --skip 1/4";

	assert_int_equal(parse_as(true, &o, line, NULL), 0);
	assert_true(o.rehearse);
	assert_null(o.cluster);
	assert_int_equal(o.agents, 8);
	assert_int_equal(o.controller.n, sizeof(passed) / sizeof(passed[0]));
	for (size_t i = 0; i < o.controller.n; i++)
		assert_string_equal(o.controller.list[i], passed[i]);
	demo_options_free(&o);
}

/* `skippipe plan --fleet` prints options for rehearsing its choice; a rehearsal must accept them
 * all. */
TEST(a_rehearsal_takes_the_options_of_a_chosen_fleet)
{
	struct demo_options o;
	struct error err = { "" };
	char line[] = "--cluster schedule/tests/data/shipped20.json --model 1.5b --cut 4,4,4,4,4,4 "
		      "--batch 8 --assignment given --skip 2 --wire q8 --sum-wire q6";

	if (parse_as(true, &o, line, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(o.skip, 2);
	demo_options_free(&o);
}

TEST(a_verb_names_itself_and_lists_every_option_of_its_controller)
{
	struct error err = { "" };
	struct demo_options o;
	char from[] = "--from x", cluster[] = "--cluster x";
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_int_equal(parse_as(true, &o, from, &err), -EINVAL);
	assert_string_equal(err.text,
			    "--from is no option of rehearse (a rehearsal computes nothing)");
	assert_int_equal(parse(&o, cluster, &err), -EINVAL);
	assert_string_equal(err.text, "--cluster is no option of demo (skippipe help demo)");
	assert_non_null(to);
	demo_options_help(true, to);
	fclose(to);
	assert_non_null(strstr(text, "--cluster FILE"));
	assert_non_null(strstr(text, "--always"));
	assert_null(strstr(text, "--eval-every"));
	free(text);
}

TEST(a_rehearsal_has_the_shape_of_its_cluster_file)
{
	struct demo_options o;
	struct error err = { "" };
	char line[] = "--cluster schedule/tests/data/shipped20.json";
	char shape[] = "--cluster schedule/tests/data/shipped20.json --agents 20";
	char skip[] = "--cluster schedule/tests/data/shipped20.json --skip 1/3";
	char none[] = "--cluster /there/is/none";

	assert_int_equal(parse_as(true, &o, line, &err), 0);
	assert_int_equal(o.agents, 20);
	assert_int_equal(o.n_stages, 6);
	assert_int_equal(o.skip, 2);
	demo_options_free(&o);
	assert_int_equal(parse_as(true, &o, shape, &err), -EINVAL);
	assert_int_equal(parse_as(true, &o, skip, &err), -EINVAL);
	assert_int_equal(parse_as(true, &o, none, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/there/is/none"));
}

TEST(options_of_training_are_refused_in_a_rehearsal_and_the_reverse)
{
	static const char *const wrong[] = { "--from x",     "--new-corpus",     "--eval-every 2",
					     "--device cpu", "--recompute none", "--corpus x" };
	struct demo_options o;
	struct error err = { "" };
	char line[64];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		strcpy(line, wrong[i]);
		assert_int_equal(parse_as(true, &o, line, &err), -EINVAL);
	}
	strcpy(line, "--cluster schedule/tests/data/shipped20.json");
	assert_int_equal(parse(&o, line, &err), -EINVAL);
	strcpy(line, "--scale-bytes 10");
	assert_int_equal(parse(&o, line, &err), -EINVAL);
}
