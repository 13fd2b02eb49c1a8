/* Tests the Loss view with the console's run and other runs. The records of the other runs are
 * read in parts and kept in limited memory. All losses are compared at one x of the axis. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tests/test.h"
#include "store/store.h"
#include "tui/run_reader.h"
#include "tui/screen/curve.h"
#include "tui/tests/golden.h"

static const struct store_run a_run = {
	.name = "test",
	.version = "0",
	.model = "{}",
	.cluster = "{}",
	.optimizer = "{}",
	.hash = "sum",
	.batch = 4,
	.sequence = 64,
	.n_shards = 5,
	.per_shard = 6,
	.threads = 1,
};

static int make_folder(void **state)
{
	/* In /dev/shm a sync takes no time; on a disk, each commit would wait for one. */
	char *path = strdup("/dev/shm/skippipe-runs-XXXXXX");

	if (!path || !mkdtemp(path)) {
		free(path);
		path = strdup("/tmp/skippipe-runs-XXXXXX");
		assert_non_null(path);
		assert_non_null(mkdtemp(path));
	}
	*state = path;
	return 0;
}

static int remove_folder(void **state)
{
	file_remove_folder(*state);
	free(*state);
	return 0;
}

/* Records a run of n iterations, each of 2 s. Iteration i has the loss 1000 / i. Every hundredth
 * iteration has the validation loss 2000 / i. */
static void record(const char *folder, uint64_t n)
{
	struct store *s;

	assert_int_equal(store_create(&s, folder, &a_run, NULL), 0);
	for (uint64_t i = 1; i <= n; i++) {
		const struct store_commit c = { .iteration = i,
						.epoch = 1,
						.attempt = 1,
						.loss = 1000 / (float)i,
						.real_s = 2,
						.wall_us = 7000000000 + 2000000 * (int64_t)i };
		const struct store_validation v = { i, 2000 / (double)i, c.wall_us };

		assert_int_equal(store_commit(s, &c, NULL), 0);
		if (i % 100 == 0)
			assert_int_equal(store_validation(s, &v, NULL), 0);
	}
	store_close(s);
}

static void check_points(const struct other_curve *c, double times, uint64_t last)
{
	for (size_t i = 0; i < c->points.n; i++) {
		const struct other_point *p = &c->points.list[i];

		if (i > 0 && i + 1 < c->points.n)
			assert_int_equal(p->iteration - p[-1].iteration,
					 c->points.list[1].iteration - c->points.list[0].iteration);
		assert_int_equal(p->elapsed_us, 2000000 * p->iteration);
		assert_true(fabs((double)p->loss * (double)p->iteration / times - 1) < 1e-6);
	}
	assert_int_equal(c->points.list[c->points.n - 1].iteration, last);
}

TEST_WITH(a_long_run_is_read_in_parts, make_folder, remove_folder)
{
	struct other_runs o = { .n = 1 };
	struct run_reader *r;
	char folder[96];
	int turns = 1, rc;

	record(*state, 9001);
	snprintf(folder, sizeof(folder), "%s//", (char *)*state);
	assert_int_equal(run_reader_open(&r, folder, &o.list[0], NULL), 0);
	assert_string_equal(o.list[0].name, *state);
	assert_int_equal(o.list[0].tokens_per_iteration, 5 * 6 * 4 * 64);
	while ((rc = run_reader_turn(r, &o.list[0], NULL)) == 1)
		turns++;
	assert_int_equal(rc, 0);
	assert_int_equal(turns, 3);
	assert_int_equal(o.list[0].n_read, 9001);
	assert_in_range(o.list[0].train.points.n, OTHER_POINTS / 2, OTHER_POINTS);
	check_points(&o.list[0].train, 1000, 9001);
	assert_int_equal(o.list[0].validation.points.n, 90);
	check_points(&o.list[0].validation, 2000, 9000);
	run_reader_close(r);
	other_runs_clear(&o);
}

/* Each error names the folder, and says what is wrong with it. */
TEST_WITH(folders_without_a_run_are_named, make_folder, remove_folder)
{
	struct other_run to = { .name = "" };
	struct run_reader *r;
	struct error err;
	char path[96];
	FILE *f;

	assert_int_equal(run_reader_open(&r, "/nowhere/run", &to, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/run"));
	assert_int_equal(run_reader_open(&r, *state, &to, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no run in this folder"));
	snprintf(path, sizeof(path), "%s/run.db", (char *)*state);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "these are the notes of somebody else, and no database of SQLite at all\n");
	fclose(f);
	assert_int_equal(run_reader_open(&r, *state, &to, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is not a run of skippipe"));
	unlink(path);
	record(*state, 3);
	f = fopen(path, "r+");
	assert_non_null(f);
	/* Changes the version of the schema: byte 63 is the last one of SQLite's user_version. */
	assert_int_equal(fseek(f, 63, SEEK_SET), 0);
	assert_int_equal(fputc(3, f), 3);
	fclose(f);
	assert_int_equal(run_reader_open(&r, *state, &to, &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "schema version 3"));
}

/* The record of another run may contain any times and losses. */
TEST_WITH(strange_times_do_no_harm, make_folder, remove_folder)
{
	static const struct store_commit strange[] = {
		{ .iteration = 1, .loss = 3, .real_s = 1e300, .wall_us = INT64_MIN },
		{ .iteration = 2, .loss = 3, .wall_us = INT64_MAX },
		{ .iteration = 3, .loss = NAN, .wall_us = 5 },
		{ .iteration = 4, .loss = INFINITY, .real_s = -1e300, .wall_us = -5 },
		{ .iteration = 5, .loss = -1e30f, .real_s = 2, .wall_us = INT64_MAX },
		{ .iteration = 6, .loss = 1, .wall_us = 0 },
	};
	struct other_runs o = { .n = 1 };
	struct store *store;
	struct run_reader *r;

	assert_int_equal(store_create(&store, *state, &a_run, NULL), 0);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(store_commit(store, &strange[i], NULL), 0);
	store_close(store);
	assert_int_equal(run_reader_open(&r, *state, &o.list[0], NULL), 0);
	assert_int_equal(run_reader_turn(r, &o.list[0], NULL), 0);
	assert_int_equal(o.list[0].train.points.n, 6);
	assert_int_equal(o.list[0].train.points.list[1].elapsed_us, INT64_MAX / 4);
	for (size_t i = 1; i < 6; i++)
		assert_true(o.list[0].train.points.list[i].elapsed_us >=
			    o.list[0].train.points.list[i - 1].elapsed_us);
	run_reader_close(r);
	other_runs_clear(&o);
}

/* Adds two runs, of 30 and of 80 iterations of 2 s each, with losses above and below those of this
 * run. The second run has half as many tokens in an iteration. */
static void add_runs(struct ui *u, const struct state *s)
{
	static const struct {
		const char *name;
		float plus;
		uint64_t n;
	} runs[] = {
		{ "runs/base", 0.2f, 30 },
		{ "/data/experiments/2026-11/skip-three-of-six", -0.1f, 80 },
	};

	for (uint32_t k = 0; k < 2; k++) {
		struct other_run *o = &u->others.list[u->others.n++];

		snprintf(o->name, sizeof(o->name), "%s", runs[k].name);
		o->tokens_per_iteration = s->run.tokens_per_iteration / (k + 1);
		o->n_read = o->n_expected = runs[k].n;
		for (uint64_t i = 1; i <= runs[k].n; i++) {
			struct other_point p = { i, (int64_t)i * 2000000,
						 2.1f + 2.4f * expf(-(float)i / 18) +
							 runs[k].plus };

			other_curve_add(&o->train, p);
			if (i % 10 == 0)
				other_curve_add(&o->validation, p);
		}
	}
}

TEST(losses_are_compared)
{
	static const int sizes[][2] = { { 80, 24 }, { 120, 36 }, { 160, 48 } };
	struct state *s;
	struct ui u;

	s = golden_default(&u);
	u.display.view = VIEW_LOSS;
	add_runs(&u, s);
	for (int i = 0; i < 10; i++)
		ui_key(&u, s, 'h');
	for (int i = 0; i < 3; i++)
		golden_check(s, &u, "loss-runs", sizes[i][0], sizes[i][1]);
	u.display.graph = GRAPH_ASCII;
	golden_check(s, &u, "loss-runs-ascii", 80, 24);
	ui_fini(&u);
	state_free(s);
}

/* The cursor is at the newest value of this run until a key moves it. Then it keeps its x while
 * this run continues. */
TEST(the_cursor_reads_each_run)
{
	struct screen *screen = screen_new(160, 48, false);
	struct rect at = { 0, 0, 160, 30 };
	struct curve_reading r;
	struct curve_view view;
	uint64_t from, last, cursor;
	struct state *s;
	struct ui u;

	s = golden_default(&u);
	s->run.tokens_per_iteration = 1000;
	u.display.view = VIEW_LOSS;
	add_runs(&u, s);
	view = ui_losses(s, &u);
	assert_true(curve_ends(s, &view, &from, &last, &cursor));
	assert_int_equal(from, 1);
	assert_int_equal(last, 80); /* the x axis ends where the longest run ends */
	assert_int_equal(cursor, s->history.iterations[s->history.n_iterations - 1].iteration);
	u.display.loss_cursor = 30;
	view = ui_losses(s, &u);
	curve_draw(screen, at, s, &view, &r);
	assert_string_equal(r.place, "it 30");
	assert_true(isfinite(r.values[0].loss));
	assert_true(fabs(r.values[1].loss - (2.1 + 2.4 * exp(-30.0 / 18) + 0.2)) < 0.2);
	assert_true(fabs(r.values[1].validation - (2.1 + 2.4 * exp(-30.0 / 18) + 0.2)) < 1e-5);
	u.display.loss_cursor = 31; /* the first of the other runs ends at 30 */
	view = ui_losses(s, &u);
	curve_draw(screen, at, s, &view, &r);
	assert_true(isnan(r.values[1].loss) && isnan(r.values[1].validation));
	assert_true(isfinite(r.values[2].loss));
	/* 80 iterations of the second run have as many tokens as 40 iterations of this run. */
	u.display.loss_axis = LOSS_BY_TOKENS;
	view = ui_losses(s, &u);
	assert_true(curve_ends(s, &view, &from, &last, &cursor));
	assert_int_equal(from, 0);
	u.display.loss_cursor = 20;
	view = ui_losses(s, &u);
	curve_draw(screen, at, s, &view, &r);
	assert_string_equal(r.place, "20.0k tokens");
	assert_true(fabs(r.values[2].validation - (2.1 + 2.4 * exp(-40.0 / 18) - 0.1)) < 1e-5);
	ui_fini(&u);
	screen_free(screen);
	state_free(s);
}

TEST(the_cursor_keeps_to_the_axis)
{
	struct state *s;
	struct ui u;

	s = golden_default(&u);
	u.display.view = VIEW_LOSS;
	ui_key(&u, s, 'h'); /* without other runs, the key does not move the cursor */
	assert_int_equal(u.display.loss_cursor, 0);
	add_runs(&u, s);
	ui_key(&u, s, 'h');
	assert_int_equal(u.display.loss_cursor, 38);
	ui_key(&u, s, 'l');
	ui_key(&u, s, 'l');
	assert_int_equal(u.display.loss_cursor, 42);
	ui_key(&u, s, 'g');
	ui_key(&u, s, 'h');
	assert_int_equal(u.display.loss_cursor, 1);
	for (int i = 0; i < 70; i++)
		ui_key(&u, s, 'l');
	assert_int_equal(u.display.loss_cursor, 80);
	ui_key(&u, s, 'G');
	assert_int_equal(u.display.loss_cursor, 0);
	ui_key(&u, s, 'h');
	ui_key(&u, s, 'T'); /* the cursor's x has no meaning on another axis */
	assert_int_equal(u.display.loss_cursor, 0);
	ui_fini(&u);
	state_free(s);
}

TEST(runs_are_named_in_a_command)
{
	struct state *s;
	struct ui u;

	s = golden_default(&u);
	ui_command(&u, s, "compare a /b  ~/c");
	assert_true(u.requests.compare.is_requested);
	assert_string_equal(u.requests.compare.folders, "a /b ~/c ");
	assert_int_equal(u.display.view, VIEW_LOSS);
	u.requests.compare.is_requested = false;
	ui_command(&u, s, "compare 1 2 3 4 5");
	assert_false(u.requests.compare.is_requested);
	assert_non_null(strstr(u.message.text, "at most 4"));
	ui_command(&u, s, "compare");
	assert_true(u.requests.compare.is_requested);
	assert_string_equal(u.requests.compare.folders, "");
	assert_int_equal(u.outbox.n, 0);
	ui_fini(&u);
	state_free(s);
}
