/* Tests that a restore to a checkpoint deletes the rows of later iterations, and that the record
 * names the restore. */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "store/store.h"
#include "store/tests/sample.h"

static int count_shard(void *context, const struct store_shard *k)
{
	uint64_t *newest = context;

	if (newest[0]++ == 0)
		newest[1] = k->iteration;
	assert_string_equal(k->host, "here");
	assert_true(k->hash == UINT64_MAX - k->stage);
	return 0;
}

static void save(struct store *s, uint64_t iteration)
{
	struct error err = { "" };

	for (uint8_t stage = 0; stage < 3; stage++) {
		struct store_shard k = { iteration,          stage, stage, "here",
					 UINT64_MAX - stage, 9,     1 };

		if (store_shard(s, &k, &err) != 0)
			fail_msg("%s", err.text);
	}
}

static void put_by_iteration(struct store *s, uint64_t iteration)
{
	struct store_task t = { iteration, 0, 0, 2, 'F', true, -1, 10, 20, 30 };
	struct store_hash h = { iteration, iteration, 1, 0 };
	struct store_validation v = { iteration, 2.5, 1 };

	commit_one(s, iteration);
	assert_int_equal(store_tasks(s, &t, 1, NULL), 0);
	assert_int_equal(store_hashes(s, &h, 1, NULL), 0);
	assert_int_equal(store_validation(s, &v, NULL), 0);
}

static int count(void *context)
{
	++*(int *)context;
	return 0;
}

static int see_hash(void *context, const struct store_hash *h)
{
	(void)h;
	return count(context);
}

static int see_task(void *context, const struct store_task *t)
{
	(void)t;
	return count(context);
}

static int see_validation(void *context, const struct store_validation *v)
{
	assert_true(v->iteration <= 4);
	return count(context);
}

static int see_restore(void *context, const struct store_restore *r)
{
	int n = (*(int *)context)++;

	assert_int_equal(r->iteration, 4);
	assert_int_equal(r->last, 6);
	assert_int_equal(r->stage, n < 2 ? n : 1);
	assert_int_equal(r->node, 7);
	assert_true(r->hash == UINT64_MAX);
	assert_int_equal(r->n_from, n < 2 ? 0 : 2);
	if (n == 2) {
		assert_int_equal(r->from[1], 2);
		assert_true(r->weight[0] == 0.1f && r->weight[1] == 0.9f);
	}
	return 0;
}

TEST_WITH(a_restore_deletes_later_rows, make_folder, remove_folder)
{
	struct store_restore rows[] = {
		{ .iteration = 4, .last = 6, .stage = 0, .node = 7, .hash = UINT64_MAX },
		{ .iteration = 4, .last = 6, .stage = 1, .node = 7, .hash = UINT64_MAX },
	};
	struct store_restore mixed = { .iteration = 4,
				       .last = 4,
				       .stage = 1,
				       .node = 7,
				       .hash = UINT64_MAX,
				       .n_from = 2,
				       .from = { 0, 2 },
				       .weight = { 0.1f, 0.9f } };
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct error err = { "" };
	uint64_t shards[2] = { 0 }, last;
	int n = 0;

	for (uint64_t i = 1; i <= 6; i++)
		put_by_iteration(s, i);
	save(s, 2);
	save(s, 4);
	save(s, 6);
	rows[1].iteration = 3;
	assert_int_equal(store_restore(s, rows, 2, &err), -EINVAL);
	assert_int_equal(store_restore(s, rows, 0, &err), -EINVAL);
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, 6);
	rows[1].iteration = 4;
	assert_int_equal(store_restore(s, rows, 2, &err), 0);
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, 4);
	assert_int_equal(store_each_hash(s, 5, see_hash, &n, &err), 0);
	assert_int_equal(store_each_task(s, 5, see_task, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(store_each_hash(s, 4, see_hash, &n, &err), 0);
	assert_int_equal(store_each_task(s, 4, see_task, &n, &err), 0);
	assert_int_equal(store_each_validation(s, see_validation, &n, &err), 0);
	assert_int_equal(n, 6);
	assert_int_equal(store_each_shard(s, count_shard, shards, &err), 0);
	assert_int_equal(shards[0], 6);
	assert_int_equal(shards[1], 4);
	/* A stage is averaged at iteration 4. The files of the checkpoint of iteration 4 do not
	 * hold the averaged weights. */
	assert_int_equal(store_restore(s, &mixed, 1, &err), 0);
	shards[0] = 0;
	assert_int_equal(store_each_shard(s, count_shard, shards, &err), 0);
	assert_int_equal(shards[0], 3);
	assert_int_equal(shards[1], 2);
	put_by_iteration(s, 5); /* the run goes on after the restored iteration */
	store_close(s);

	assert_int_equal(store_open(&s, f->path, &err), 0);
	n = 0;
	assert_int_equal(store_each_restore(s, see_restore, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_int_equal(store_restore(s, rows, 2, &err), -EROFS);
	store_close(s);
}

static int take_only_restore(void *context, const struct store_restore *r)
{
	struct store_restore *only = context;

	assert_int_equal(only->iteration, 0);
	*only = *r;
	return 0;
}

/* A second restore deletes the row of the first, whose checkpoint may still be on the disk. */
TEST_WITH(a_second_restore_knows_the_highest_iteration, make_folder, remove_folder)
{
	struct store_restore first = { .iteration = 4, .last = 6 }, second = { .iteration = 2,
									       .last = 5 };
	struct store_restore only = { .iteration = 0 };
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct error err = { "" };

	for (uint64_t i = 1; i <= 6; i++)
		put_by_iteration(s, i);
	assert_int_equal(store_restore(s, &first, 1, &err), 0);
	put_by_iteration(s, 5);
	assert_int_equal(store_restore(s, &second, 1, &err), 0);
	assert_int_equal(store_each_restore(s, take_only_restore, &only, &err), 0);
	assert_int_equal(only.iteration, 2);
	assert_int_equal(only.last, 6);
	store_close(s);
}

static void give_other_stages(struct store *s, const char *model)
{
	static const struct store_shard files[] = { { 2, 0, 0, "here", UINT64_MAX, 9, 1 },
						    { 2, 1, 1, "here", UINT64_MAX - 1, 9, 1 } };
	static const struct store_value values[] = { { "parts", "[1]" }, { "recut", NULL } };
	const struct store_recut r = { .id = 77,
				       .model = model,
				       .cluster = "{\"c\":2}",
				       .n_shards = 3,
				       .per_shard = 10,
				       .n_files = 2,
				       .files = files,
				       .n_values = 2,
				       .values = values };
	struct error err = { "" };

	if (store_recut(s, &r, &err) != 0)
		fail_msg("%s", err.text);
}

FOLDER_TEST(other_stages_replace_the_files_of_all_checkpoints)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct error err = { "" };
	uint64_t last, shards[2] = { 0 };
	char *text = NULL;

	put_by_iteration(s, 1);
	put_by_iteration(s, 2);
	save(s, 1);
	save(s, 2);
	assert_int_equal(store_set(s, "recut", "{}", &err), 0);
	give_other_stages(s, "{\"m\":2}");
	assert_int_equal(store_run_of(s)->n_shards, 3);
	assert_string_equal(store_run_of(s)->model, "{\"m\":2}");
	store_close(s);

	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_run_of(s)->id, 77);
	assert_int_equal(store_run_of(s)->per_shard, 10);
	assert_string_equal(store_run_of(s)->cluster, "{\"c\":2}");
	assert_string_equal(store_run_of(s)->model, "{\"m\":2}");
	assert_int_equal(store_each_shard(s, count_shard, shards, &err), 0);
	assert_int_equal(shards[0], 2);
	assert_int_equal(shards[1], 2);
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, 2); /* the commits stay */
	assert_int_equal(store_get(s, "recut", &text, &err), -ENOENT);
	assert_int_equal(store_get(s, "parts", &text, &err), 0);
	assert_string_equal(text, "[1]");
	free(text);
	store_close(s);
}
