/* options_test.c - the program reads its command line correctly, and its error messages name the
 * wrong option. */
#include <errno.h>
#include <string.h>

#include "base/skip_schedule.h"
#include "base/tests/test.h"
#include "controller/options.h"

#define NEEDED "controller", "--run-dir", "d", "--key", "k", "--admitted", "a"

static int parse(struct options *o, struct error *err, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	err->text[0] = '\0';
	return options_parse(o, argc, argv, err);
}

TEST(given_options_are_taken)
{
	char *argv[] = { NEEDED,   "--agents",     "9",        "--stages", "3,3,3",
			 "--skip", "1/3",          "--corpus", "x",        "y",
			 "--at",   "10:kill:4",    "--at",     "20:pause", "--format",
			 "jsonl",  "--time-scale", "0",        NULL };
	struct options o;
	struct error err;

	assert_int_equal(parse(&o, &err, argv), 0);
	assert_int_equal(o.cluster.n_stages, 3);
	assert_int_equal(o.skip, 1);
	assert_int_equal(o.training.n_corpus, 2);
	assert_string_equal(o.training.corpus[1], "y");
	assert_int_equal(o.n_acts, 2);
	assert_int_equal(o.acts[0].verb, COMMAND_INJECT);
	assert_int_equal(o.acts[0].node, 4);
	assert_int_equal(o.acts[1].iteration, 20);
	assert_true(o.mode.jsonl && o.cluster.time_scale == 0);
	assert_int_equal(o.training.formats.wire, FORMAT_Q8);
	assert_int_equal(o.training.cut.n, 0);
	assert_int_equal(parse(&o, &err, (char *[]){ NEEDED, "--cut", "0,7,5", NULL }), 0);
	assert_int_equal(o.training.cut.n, 3);
	assert_int_equal(o.training.cut.of[1], 7);
	assert_int_equal(parse(&o, &err, (char *[]){ NEEDED, "--wire", "bf16", NULL }), 0);
	assert_int_equal(o.training.formats.wire, FORMAT_BF16);
	assert_int_equal(o.training.formats.sum_wire, FORMAT_Q6);
	assert_int_equal(parse(&o, &err, (char *[]){ NEEDED, "--sum-wire", "q4", NULL }), 0);
	assert_int_equal(o.training.formats.sum_wire, FORMAT_Q4);
	assert_int_equal(parse(&o, &err, (char *[]){ NEEDED, "--wire", "fp32", NULL }), 0);
	assert_int_equal(o.training.formats.wire, FORMAT_FP32);
}

TEST(a_rehearsal_validates_nothing)
{
	char *argv[] = { NEEDED, "--rehearse", "--scale-bytes", "300", "--cluster", "f",
			 "--eval-every", "0", NULL };
	struct options o;
	struct error err;

	assert_int_equal(parse(&o, &err, argv), 0);
	assert_true(o.training.rehearse);
	assert_int_equal(o.training.scale_bytes, 300);
	assert_int_equal(o.eval_every, 0);
	argv[12] = NULL; /* removes --eval-every from the command line */
	assert_int_equal(parse(&o, &err, argv), 0);
	assert_int_equal(o.eval_every, 0);
}

TEST(a_baseline_is_named)
{
	char *argv[] = { NEEDED, "--algorithm", "dtfm", "--skip", "0", "--at", "5:skip:0", NULL };
	char *skips[] = {
		NEEDED, "--algorithm=dtfm-skip", "--skip", "2/6", "--at", "5:skip:3", NULL
	};
	char *none[] = { NEEDED, NULL };
	struct options o;
	struct error err;

	assert_int_equal(parse(&o, &err, none), 0);
	assert_int_equal(o.planning.algorithm, PLAN_BEST);
	assert_int_equal(parse(&o, &err, argv), 0);
	assert_int_equal(o.planning.algorithm, PLAN_DTFM);
	assert_int_equal(parse(&o, &err, skips), 0);
	assert_int_equal(o.planning.algorithm, PLAN_DTFM_SKIP);
	assert_int_equal(o.skip, 2);
}

static void refuse(char **argv, const char *says)
{
	struct options o;
	struct error err;

	assert_int_equal(parse(&o, &err, argv), -EINVAL);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

TEST(a_share_of_the_microbatches_skips)
{
	char *share[] = { NEEDED,         "--skip-share", "30%:2",    "--at",
			  "5:skip:50%:3", "--at",         "9:skip:1", NULL };
	char *all[] = { NEEDED, "--skip-share", "30%:2", "--skip", "1", NULL };
	char *none[] = { NEEDED, "--skip-share", "2", NULL };
	char *act[] = { NEEDED, "--at", "5:skip:0%:3", NULL };
	struct options o;
	struct error err;

	assert_int_equal(parse(&o, &err, share), 0);
	assert_int_equal(o.skip, 2);
	assert_int_equal(o.skip_share, 30);
	assert_int_equal(o.acts[0].value, skip_share_pack(50, 3));
	assert_int_equal(o.acts[1].value, 1);
	assert_int_equal(parse(&o, &err, all), 0);
	assert_int_equal(o.skip, 1);
	/* If an option is given twice, its last value counts */
	assert_int_equal(o.skip_share, 0);
	refuse(none, "--skip-share 2: expected a share of the microbatches");
	refuse(act, "--at: skip:0%:3");
}

TEST(a_resumed_run_accepts_some_options)
{
	char *argv[] = { "controller", "--resume",
			 "d",          "--key",
			 "k",          "--admitted",
			 "a",          "--iterations",
			 "9",          "--checkpoint-every",
			 "0",          "--silence-ms",
			 "900",        NULL };
	struct options o;
	struct error err;

	assert_int_equal(parse(&o, &err, argv), 0);
	assert_true(o.mode.resume && o.changed[CHANGE_ITERATIONS] &&
		    o.changed[CHANGE_CHECKPOINT_EVERY] && o.changed[CHANGE_SILENCE]);
	assert_false(o.changed[CHANGE_EVAL_EVERY] || o.changed[CHANGE_EVAL_BATCHES] ||
		     o.changed[CHANGE_SKIP_BAD_STEPS] || o.changed[CHANGE_AHEAD]);
}

TEST(stages_are_chosen_if_nothing_needs_to_know_them)
{
	struct options o;
	struct error err;
	static char *const others[][2] = { { "--skip", "1" },	      { "--cut", "2,2,2,2,2,2" },
					   { "--recipe", "speed" },   { "--from", "f" },
					   { "--microbatches", "6" }, { "--at", "5:skip:1" },
					   { "--emulate", "regions" } };

	assert_int_equal(parse(&o, &err, (char *[]){ NEEDED, "--agents", "7", NULL }), 0);
	assert_true(o.cluster.chooses_stages);
	assert_int_equal(o.cluster.stages[0] + o.cluster.stages[1], 7);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		char *argv[] = { NEEDED, others[i][0], others[i][1], NULL };

		assert_int_equal(parse(&o, &err, argv), 0);
		assert_false(o.cluster.chooses_stages);
		assert_int_equal(o.cluster.n_stages, 6);
	}
}

TEST(a_wrong_option_is_named)
{
	static const char *const kept[][2] = {
		{ "--cluster", "f" },	   { "--regions", "f" },    { "--model", "30m" },
		{ "--name", "n" },	   { "--agents", "20" },
		{ "--skip", "1" },	   { "--time-scale", "0" }, { "--seed", "1" },
		{ "--batch", "4" },	   { "--sequence", "64" },  { "--microbatches", "6" },
		{ "--threads", "2" },	   { "--corpus", "f" },	    { "--assignment", "free" },
		{ "--sum-wire", "q6" },	   { "--wire", "fp32" },
		{ "--algorithm", "best" },
	};

	refuse((char *[]){ "controller", "--key", "k", NULL }, "--run-dir");
	refuse((char *[]){ NEEDED, "--agents", "twenty", NULL }, "--agents");
	refuse((char *[]){ NEEDED, "--agents", "8..4", NULL }, "--agents");
	refuse((char *[]){ NEEDED, "--agents", "4..", NULL }, "--agents");
	refuse((char *[]){ NEEDED, "--agents", "..4", NULL }, "--agents");
	refuse((char *[]){ NEEDED, "--agents", "4..5..6", NULL }, "--agents");
	refuse((char *[]){ NEEDED, "--agents", "4..2000000", NULL }, "--agents");
	refuse((char *[]){ NEEDED, "--cluster", "f", "--recipe", "speed", "--stack", NULL },
	       "--recipe speed: not with");
	refuse((char *[]){ NEEDED, "--seed", "1.5", NULL }, "--seed: expected a whole number");
	refuse((char *[]){ NEEDED, "--agents", "21", "--stages", "10,10", NULL }, "adds up to 20");
	refuse((char *[]){ NEEDED, "--agents", "21", "--skip", "1", NULL },
	       "--skip: needs --stages");
	refuse((char *[]){ NEEDED, "--skip", "6", NULL }, "only 5 may be skipped");
	refuse((char *[]){ NEEDED, "--skip", "x", NULL }, "--skip");
	refuse((char *[]){ NEEDED, "--stages", "5,0", NULL }, "--stages");
	refuse((char *[]){ NEEDED, "--cut", "5,-1", NULL }, "--cut 5,-1: expected the number");
	refuse((char *[]){ NEEDED, "--at", "5:explode:1", NULL }, "--at");
	refuse((char *[]){ NEEDED, "--at", "5:kill", NULL }, "--at");
	refuse((char *[]){ NEEDED, "--format", "xml", NULL }, "--format");
	refuse((char *[]){ NEEDED, "--wire", "fp16", NULL }, "--wire");
	refuse((char *[]){ NEEDED, "--wire", "q4", NULL }, "--wire");
	refuse((char *[]){ NEEDED, "--sum-wire", "bf16", NULL }, "--sum-wire");
	refuse((char *[]){ NEEDED, "--algorithm", "fastest", NULL }, "--algorithm");
	refuse((char *[]){ NEEDED, "--algorithm", "dtfm", "--skip", "2", NULL },
	       "dtfm visits every stage");
	refuse((char *[]){ NEEDED, "--skip", "2", "--cluster", "f", "--algorithm", "dtfm", NULL },
	       "dtfm visits every stage");
	refuse((char *[]){ NEEDED, "--algorithm", "dtfm", "--at", "7:skip:1", NULL }, "7:skip:1");
	refuse((char *[]){ NEEDED, "--scale-bytes", "10", NULL }, "--rehearse");
	refuse((char *[]){ NEEDED, "--rehearse", NULL }, "--cluster");
	refuse((char *[]){ NEEDED, "--rehearse", "--emulate", "regions", "--time-scale", "0",
			   NULL }, "--time-scale");
	refuse((char *[]){ NEEDED, "--rehearse", "--cluster", "f", "--from", "x", NULL }, "--from");
	refuse((char *[]){ NEEDED, "--rehearse", "--cluster", "f", "--eval-every", "3", NULL },
	       "--eval-every");
	refuse((char *[]){ NEEDED, "--bogus", NULL }, "--bogus");
	refuse((char *[]){ NEEDED, "stray", NULL }, "stray");
	refuse((char *[]){ NEEDED, "--time-scale", "nan", NULL }, "--time-scale");
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		refuse((char *[]){ "controller", "--resume", "d", "--key", "k", "--admitted", "a",
				   "--iterations", "9", (char *)kept[i][0], (char *)kept[i][1],
				   NULL },
		       kept[i][0]);
	refuse((char *[]){ "controller", "--resume", "d", "--key", "k", "--admitted", "a",
			   "--sums", "late", NULL }, "--sums");
	refuse((char *[]){ NEEDED, "--at", "5:stages:1", NULL }, "--at");
	refuse((char *[]){ NEEDED, "--at", "5:cut", NULL }, "--at");
	refuse((char *[]){ NEEDED, "--at", "5:cut:6;6", NULL }, "--at: cut 6;6");
}

TEST(a_resumed_run_may_have_other_stages)
{
	char *argv[] = { "controller", "--resume", "d",     "--key",    "k",  "--admitted", "a",
			 "--cut",      "0,7,5",    "--stages", "1,2,3", "--at", "9:cut:6,6", NULL };
	struct options o, again;
	struct error err;

	assert_int_equal(parse(&o, &err, argv), 0);
	assert_int_equal(o.training.cut.n, 3);
	assert_int_equal(o.training.cut.of[1], 7);
	assert_int_equal(o.cluster.n_stages, 3);
	assert_int_equal(o.acts[0].verb, COMMAND_CUT);
	assert_string_equal(o.acts[0].argument, "6,6");

	/* A controller that continues the run gets the options that the record lacks, but no new
	 * stages. */
	assert_int_equal(options_again(&again, &o, "tcp://127.0.0.1:7700", &err), 0);
	assert_true(again.mode.resume);
	assert_string_equal(again.run_dir, "d");
	assert_string_equal(again.key, "k");
	assert_string_equal(again.listen, "tcp://127.0.0.1:7700");
	assert_int_equal(again.training.cut.n, 0);
	assert_int_equal(again.cluster.n_stages, 0);
	assert_int_equal(again.n_acts, 1);
}

TEST(fields_of_the_recipe_and_the_end_are_taken)
{
	char *argv[] = { NEEDED,         "--set", "lr=0.1",        "--set",
			 "schedule=wsd", "--at",  "9:finish:5000", NULL };
	char *resumed[] = { "controller", "--resume", "d",     "--key",  "k",
			    "--admitted", "a",        "--set", "lr=0.1", NULL };
	char *wrong[] = { NEEDED, "--at", "9:finish:half", NULL };
	char *many[64] = { NEEDED };
	struct options o;
	struct error err;

	assert_int_equal(parse(&o, &err, argv), 0);
	assert_int_equal(o.training.n_set, 2);
	assert_string_equal(o.training.set[1], "schedule=wsd");
	assert_int_equal(o.acts[0].verb, COMMAND_FINISH);
	assert_int_equal(o.acts[0].value, 5000);
	assert_int_equal(o.acts[0].node, -1);
	assert_int_equal(parse(&o, &err, resumed), -EINVAL);
	assert_int_equal(parse(&o, &err, wrong), -EINVAL);
	assert_non_null(strstr(err.text, "got \"half\""));
	for (int i = 0; i < 17; i++) {
		many[7 + 2 * i] = "--set";
		many[8 + 2 * i] = "lr=1";
	}
	assert_int_equal(parse(&o, &err, many), -EINVAL);
	assert_string_equal(err.text, "--set: more than 16 fields");
}
