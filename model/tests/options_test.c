/* options_test.c - tests the command lines of skippipe-model's verbs: which model a line asks for,
 * and which options a verb refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "model/program/options.h"

/* Reads a line whose first word is the verb. `said` receives what options_parse prints to standard
 * error. */
static int parse(struct options *o, const char *line, char said[512])
{
	static char copy[400]; /* static, because o points into this copy */
	char *argv[32];
	int argc = 0, rc, old = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	size_t n;

	assert_non_null(file);
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word && argc < 31; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	rc = options_parse(o, argc, argv, "usage: x\n");
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	close(old);
	rewind(file);
	n = fread(said, 1, 511, file);
	said[n] = '\0';
	fclose(file);
	return rc;
}

TEST(defaults_and_values_reach_their_fields)
{
	struct options o;
	char said[512];

	assert_int_equal(parse(&o, "train", said), 0);
	assert_true(o.iterations == 40 && o.microbatches == 30 && o.train.validate_every == 10);
	assert_true(o.batches == 16 && o.threads == 1 && o.seed == 1 && !o.jsonl && !o.force);
	assert_string_equal(o.device, "cpu");
	assert_false(options_given(&o, "seed"));
	options_fini(&o);
	assert_int_equal(
		parse(&o,
		      "train --seed 9223372036854775807 --iterations=7 --swap 0.5 --format "
		      "jsonl --grad-norm visits --corpus a b --out c --sum-wire q4",
		      said),
		0);
	assert_true(o.seed == INT64_MAX && o.iterations == 7 && o.visits.swap == 0.5f && o.jsonl);
	assert_true(o.grad_norm == GRAD_NORM_VISITS && o.train.sum_wire == FORMAT_Q4);
	assert_int_equal(o.n_corpus, 2);
	assert_string_equal(o.corpus[1], "b");
	assert_string_equal(o.out, "c");
	assert_true(options_given(&o, "seed") && !options_given(&o, "threads"));
	options_fini(&o);
}

/* --set and --skip change the model of --preset, wherever --preset is on the line. If the line
 * gives two numbers of stages, the later number counts. */
TEST(changes_apply_to_the_model_that_is_named)
{
	struct options o;
	char said[512];

	assert_int_equal(parse(&o, "train --set dim=96 --set n_stages=3 --preset tiny", said), 0);
	assert_true(o.config.dim == 96 && o.config.n_stages == 3 && o.set.shape && o.set.stages);
	options_fini(&o);
	assert_int_equal(parse(&o, "train --set n_stages=3 --skip 2/4", said), 0);
	assert_true(o.config.n_stages == 4 && o.visits.skip == 2 && o.set.n_stages == 4);
	options_fini(&o);
	assert_int_equal(parse(&o, "train --skip 2/4 --set n_stages=3 --set lr=0.5", said), 0);
	assert_true(o.config.n_stages == 3 && o.visits.skip == 2 && o.set.hyper);
	options_fini(&o);
}

TEST(words_are_the_model_and_not_the_corpus)
{
	struct options o;
	char said[512];

	assert_int_equal(parse(&o, "eval folder --corpus a b --batches 2", said), 0);
	assert_int_equal(o.files.n, 1);
	assert_string_equal(o.files.at[0], "folder");
	assert_int_equal(o.n_corpus, 2);
	options_fini(&o);
	assert_int_equal(parse(&o, "eval --batches 2 folder", said), 0);
	assert_int_equal(o.files.n, 1);
	options_fini(&o);
}

TEST(wrong_lines_are_refused_with_the_option)
{
	static const char *const lines[][2] = {
		{ "eval x --skip-schedule 3,0",
		  "--skip-schedule is no option of eval (skippipe help eval)" },
		{ "tokenize --seed=1", "--seed is no option of tokenize" },
		{ "train --iter 1", "--iter: no such option; is --iterations meant?" },
		{ "train --iter=1", "--iter: no such option; is --iterations meant?" },
		{ "train --nothing", "--nothing: unknown option" },
		{ "train --seed", "--seed: needs a value" },
		{ "train --seed 9223372036854775808",
		  "--seed: expected a whole number from 0 to 9223372036854775807, got" },
		{ "train --seed -1", "--seed: expected a whole number" },
		{ "train --swap 2", "--swap: expected a number from 0 to 1, got \"2\"" },
		{ "train --skip x", "--skip: expected the number of stages left out, as 2 or 2/6" },
		{ "train --set dim", "--set: expected FIELD=VALUE, got \"dim\"" },
		{ "train --set dim=x", "--set: dim: expected a whole number" },
		{ "train --set stage_layers=3", "--set stage_layers: give it as --cut" },
		{ "train --always 64", "--always: expected stages below 64" },
		{ "train --break all", "--break: expected order or exposure" },
		{ "train --grad-norm all", "--grad-norm: expected microbatches or visits" },
		{ "train --wire q4", "--wire: expected fp32, bf16, q8 or q6" },
		{ "train --recompute all", "--recompute: expected none, norms, block or auto" },
		{ "train --plan a --plan b", "--plan b: expected one plan" },
		{ "train --cut 6,6 --set n_stages=3",
		  "--cut has 2 stages, --set n_stages or --skip 3" },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct options o;
		char said[512];

		assert_int_equal(parse(&o, lines[i][0], said), EXIT_USAGE);
		options_fini(&o);
		if (!strstr(said, lines[i][1]))
			fail_msg("%s gave: %s", lines[i][0], said);
	}
}
