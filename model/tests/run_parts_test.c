/* Tests the parts of a run: positions in the data, and the list in the record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/files/run_parts.h"

static void two_parts(struct run_parts *parts)
{
	struct run_part first = {
		.position = 7, .n_shards = 2, .per_shard = 6, .model = "{\"a\":1}",
		.cluster = "{\"b\":2}", .state = "{\"c\":3}"
	};
	struct run_part second = { .after = 10,
				   .skipped = 1,
				   .position = 140,
				   .writer = 3,
				   .n_shards = 3,
				   .per_shard = 4,
				   .n_restores = 2,
				   .model = "{}" };

	*parts = (struct run_parts){ NULL, 0 };
	run_parts_add(parts, &first);
	run_parts_add(parts, &second);
}

TEST(a_list_is_read_as_it_was_written)
{
	struct run_parts parts, read;
	struct error err;
	char *text;

	two_parts(&parts);
	text = run_parts_print(&parts);
	assert_non_null(text);
	assert_int_equal(run_parts_parse(&read, text, &err), 0);
	assert_int_equal(read.n, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct run_part *a = &parts.list[i], *b = &read.list[i];

		assert_int_equal(a->after, b->after);
		assert_int_equal(a->skipped, b->skipped);
		assert_int_equal(a->position, b->position);
		assert_int_equal(a->writer, b->writer);
		assert_int_equal(a->n_shards, b->n_shards);
		assert_int_equal(a->per_shard, b->per_shard);
		assert_int_equal(a->n_restores, b->n_restores);
		assert_string_equal(a->model, b->model);
	}
	assert_string_equal(read.list[0].cluster, parts.list[0].cluster);
	assert_string_equal(read.list[0].state, parts.list[0].state);
	assert_null(read.list[1].cluster); /* the list omits the texts of the newest part */
	assert_null(read.list[1].state);
	free(text);
	run_parts_free(&parts);
	run_parts_free(&read);
	assert_int_equal(read.n, 0);
}

/* No microbatch is read twice: in a new part, every data shard begins after the microbatches that
 * were read in earlier parts. */
TEST(positions_go_on_in_the_next_part)
{
	struct run_parts parts;
	const struct run_part *p;

	two_parts(&parts);
	p = parts.list;
	assert_int_equal(run_part_position(&p[0], 0, 0), 4);
	assert_int_equal(run_part_position(&p[0], 10, 1), 4 + 11 * 6);
	assert_true(2 * run_part_position(&p[0], 10, 1) >= p[1].position);
	assert_int_equal(run_part_position(&p[1], 10, 1), 47);
	assert_int_equal(run_part_position(&p[1], 12, 2), 47 + 3 * 4);
	run_parts_free(&parts);
}

TEST(a_damaged_list_is_refused)
{
	static const char *const wrong[] = {
		"", "{}", "[]", "[1]",
		/* the first part does not begin the run */
		"[{\"after\":1,\"skipped\":0,\"position\":0,\"writer\":0,\"n_shards\":1,"
		"\"per_shard\":1,\"n_restores\":0,\"model\":\"\"}]",
		/* no shards */
		"[{\"after\":0,\"skipped\":0,\"position\":0,\"writer\":0,\"n_shards\":0,"
		"\"per_shard\":1,\"n_restores\":0,\"model\":\"\"}]",
		/* a negative position */
		"[{\"after\":0,\"skipped\":0,\"position\":-1,\"writer\":0,\"n_shards\":1,"
		"\"per_shard\":1,\"n_restores\":0,\"model\":\"\"}]",
	};
	struct run_parts parts, read = { NULL, 0 };
	struct error err;
	char *text;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(run_parts_parse(&read, wrong[i], &err), -EINVAL);

	/* the parts are not in their order */
	two_parts(&parts);
	run_parts_add(&parts, &(struct run_part){ .after = 9, .skipped = 1, .n_shards = 1,
						  .per_shard = 1, .n_restores = 2, .model = "" });
	text = run_parts_print(&parts);
	assert_int_equal(run_parts_parse(&read, text, &err), -EINVAL);
	assert_int_equal(read.n, 0);
	free(text);
	run_parts_free(&parts);
}
