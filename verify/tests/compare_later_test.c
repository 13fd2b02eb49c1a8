/* Tests a replay that begins with a checkpoint, because the weights with which the run began are
 * gone. The record of the run names a folder of first weights that does not exist. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "model/files/checkpoint.h"
#include "model/files/origin.h"
#include "verify/tests/play.h"

enum { SAVED = 2 }; /* the iteration after which the checkpoint is saved */

static int begin(void **state)
{
	struct origin o = { .folder = "/no-such-folder", .n_stages = STAGES };
	struct cluster *c;
	char *text = origin_print(&o);

	play_set_up(state);
	c = *state;
	assert_int_equal(store_set(c->store, "origin", text, NULL), 0);
	free(text);
	return 0;
}

static int end(void **state)
{
	struct cluster *c = *state;
	char folder[128];

	snprintf(folder, sizeof(folder), "%s/checkpoints", c->folder);
	file_remove_folder(folder);
	return play_tear_down(state);
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, end)

/* Saves a checkpoint of all stages. If `wrong` is true, changes a weight of the last stage. */
static void save(struct cluster *c, bool wrong)
{
	for (uint8_t s = 0; s < STAGES; s++) {
		struct stage *from = c->nodes[play_node_of(s)];
		size_t n = stage_parameters(from);
		float *state = malloc(3 * n * sizeof(*state)), *arrays[3];
		struct store_shard row = { .iteration = SAVED, .stage = s, .host = "h" };

		play_arrays_of(from, arrays);
		for (size_t k = 0; k < 3; k++)
			memcpy(state + k * n, arrays[k], n * sizeof(*state));
		if (wrong && s == STAGES - 1)
			state[7] += 1e-3f;
		assert_int_equal(checkpoint_save_stage(c->folder, stage_config(from), s, SAVED,
						       state, true, &row.hash, &row.bytes, NULL),
				 0);
		assert_int_equal(store_shard(c->store, &row, NULL), 0);
		free(state);
	}
}

static void play(struct cluster *c, void (*tamper)(struct played *r), bool wrong)
{
	for (uint64_t i = 1; i <= ITERATIONS; i++) {
		play_iteration(c, i, false, i == 1 ? tamper : NULL);
		if (i == SAVED)
			save(c, wrong);
	}
}

static int compare(struct cluster *c, uint64_t from, struct compare_result *out,
		   struct error *err)
{
	struct compare_options o = { .from = from, .workers = 2, .run = c->folder };

	*err = (struct error){ "" };
	return compare_run(c->store, &o, out, err);
}

FIXTURE_TEST(the_replay_begins_with_a_checkpoint_and_says_so)
{
	struct compare_result r;
	struct error err;

	play(*state, NULL, false);
	assert_int_equal(compare(*state, 1, &r, &err), 0);
	assert_string_equal(r.broken_rule.text, "");
	assert_true(compare_equal(&r));
	assert_int_equal(r.began_after, SAVED);
	assert_int_equal(r.unproved, SAVED);
	assert_non_null(strstr(r.began_late_why.text, "no-such-folder"));
	assert_int_equal(r.replayed, ITERATIONS - SAVED);
	/* The weights of the checkpoint are compared too. */
	assert_int_equal(r.weights.compared, (ITERATIONS - SAVED + 1) * NODES);
	assert_int_equal(r.losses.compared, ITERATIONS - SAVED);
	assert_int_equal(compare(*state, SAVED + 1, &r, &err), 0);
	assert_int_equal(r.unproved, 0);
}

FIXTURE_TEST(a_checkpoint_with_other_weights_is_found)
{
	struct compare_result r;
	struct error err;

	play(*state, NULL, true);
	assert_int_equal(compare(*state, 1, &r, &err), 0);
	assert_false(compare_equal(&r));
	assert_int_equal(r.weights.first_differing.iteration, SAVED);
	assert_int_equal(r.weights.first_differing.stage, STAGES - 1);
}

/* Plays and compares a run in which stage 2 is replaced by 3/4 of stage 1 between the commit
 * SAVED and its checkpoint. If `averages` is 2, stage 1 is replaced by 3/4 of the new stage 2
 * afterwards. */
static struct compare_result averaged(struct cluster *c, int averages)
{
	struct compare_result r;
	struct error err;

	for (uint64_t i = 1; i <= ITERATIONS; i++) {
		play_iteration(c, i, false, NULL);
		if (i != SAVED)
			continue;
		play_average(c, SAVED, 2, 1, 0.75f);
		if (averages > 1)
			play_average(c, SAVED, 1, 2, 0.75f);
		save(c, false);
	}
	assert_int_equal(compare(c, 1, &r, &err), 0);
	return r;
}

/* After a commit a stage is lost, replaced by an average of other stages, and saved. The
 * checkpoint therefore has other weights of this stage than the nodes announced with the commit.
 * Both the checkpoint and the announced weights are correct. */
FIXTURE_TEST(a_checkpoint_after_an_average_is_equal)
{
	struct compare_result r = averaged(*state, 1);

	assert_true(compare_equal(&r));
	assert_int_equal(r.began_after, SAVED);
	assert_int_equal(r.weights.averaged, 1);
}

/* Stage 2 is replaced by an average of stage 1. Then stage 1 is replaced by an average of the new
 * stage 2. If the replay repeated both averages on the weights of the checkpoint, stage 2 would
 * be wrong. */
FIXTURE_TEST(averages_in_a_checkpoint_are_not_repeated)
{
	struct compare_result r = averaged(*state, 2);

	assert_true(compare_equal(&r));
	assert_int_equal(r.weights.averaged, 2);
}

static void read_data_twice(struct played *r)
{
	r->routes[1].wave = r->routes[3].wave;
	r->routes[1].shard = r->routes[3].shard;
}

FIXTURE_TEST(the_record_before_the_checkpoint_is_audited)
{
	struct compare_result r;
	struct error err;

	play(*state, read_data_twice, false);
	assert_int_equal(compare(*state, 1, &r, &err), 0);
	assert_false(compare_equal(&r));
	assert_non_null(strstr(r.broken_rule.text, "iteration 1:"));
}

/* A changed file is not used, and no other checkpoint exists. */
FIXTURE_TEST(without_a_complete_checkpoint_nothing_is_compared)
{
	struct cluster *c = *state;
	struct compare_result r;
	struct error err;
	char path[256];

	play(c, NULL, false);
	assert_int_equal(checkpoint_stage_path(path, sizeof(path), c->folder, 1, SAVED), 0);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(compare(c, 1, &r, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no-such-folder"));
}

/* The number of steps that made the first weights is not known, so no replay can be correct. */
FIXTURE_TEST(a_damaged_record_of_the_first_weights_ends_the_replay)
{
	struct cluster *c = *state;
	struct compare_result r;
	struct error err;

	play(c, NULL, false);
	assert_int_equal(store_set(c->store, "origin", "{}", NULL), 0);
	assert_true(compare(c, 1, &r, &err) < 0);
	assert_non_null(strstr(err.text, "damaged"));
}

/* Verify cannot divide the first weights again, because it cannot make a temporary folder. Verify
 * reports this error. The replay must not begin with a checkpoint in this case, because the first
 * weights may still exist. */
FIXTURE_TEST(a_missing_temporary_folder_ends_the_replay)
{
	struct compare_result r;
	struct error err;

	play(*state, NULL, false);
	setenv("TMPDIR", "/no-such-folder", 1);
	assert_int_equal(compare(*state, 1, &r, &err), -EIO);
	unsetenv("TMPDIR");
	assert_non_null(strstr(err.text, "cannot make a folder"));
}
