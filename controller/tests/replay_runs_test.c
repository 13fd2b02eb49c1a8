/* replay_runs_test.c - replays of runs that grow, lack rows, changed their stages, or ran on two
 * machines. Damaged records are refused. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "controller/tests/replayed.h"

TEST(a_controller_on_another_machine_is_placed_in_time)
{
	static const struct recorded_options o = { .other_machine = true };
	struct replayed g, plain;

	replayed_begin(&g, &o);
	replayed_begin(&plain, NULL);
	assert_int_equal(g.recorded->last_us, plain.recorded->last_us);
	for (int64_t ms = 4550; ms <= REPLAYED_LAST_MS; ms += 50) {
		struct seen *s = replayed_at(g.replay, ms), *same = replayed_at(plain.replay, ms);

		assert_int_equal(s->n_events, same->n_events);
		for (uint32_t i = 0; i < s->n_events; i++)
			assert_true(replayed_same_event(&s->events[i], &same->events[i]));
		for (uint32_t i = 0; i < s->n_iterations; i++)
			assert_int_equal(s->iterations[i].at_us, same->iterations[i].at_us);
		assert_int_equal(s->nodes[0].state, NODE_LIVE);
		/* The restarted controller has not seen this node */
		assert_int_equal(s->nodes[2].state, NODE_ABSENT);
		assert_int_equal(same->nodes[2].state, NODE_DEAD);
		free(s);
		free(same);
	}
	replayed_end(&g);
	replayed_end(&plain);
}

static void expect_former_stages(const struct seen *s, const struct seen *same)
{
	replayed_assert_same(s, same);
	assert_int_equal(s->run.n_stages, 2);
	assert_int_equal(s->nodes[1].stage, 1);
	assert_int_equal(s->nodes[1].layers, 6);
}

static void expect_new_stages(const struct seen *s, int64_t ms, const struct seen *same)
{
	static const int stages[] = { 0, 0, 1, 2 };

	assert_int_equal(s->run.n_stages, 3);
	assert_int_equal(s->run.per_data_node, 1);
	assert_int_equal(s->status.n_stages, 3);
	for (int i = 0; i < RECORDED_NODES; i++) {
		assert_int_equal(s->nodes[i].stage, stages[i]);
		assert_int_equal(s->nodes[i].layers, 4);
		/* a node has hashes of its new stage only after the next commit */
		assert_int_equal(s->nodes[i].hash != 0, ms >= 5500 && i == 0);
	}
	assert_int_equal(s->nodes[2].state, ms < 4430 ? NODE_ABSENT : NODE_LIVE);
	assert_int_equal(s->plan_epoch, ms < 4500 ? 0 : 2);
	assert_int_equal(s->n_iterations, same->n_iterations);
	for (uint32_t i = 0; i < s->n_iterations; i++)
		assert_int_equal(s->iterations[i].n_stages, i < 2 ? 2 : 3);
	assert_int_equal(s->n_events, ms < 4500 ? 0 : same->n_events);
}

/* The cursor jumps over the change of stages in both directions. */
TEST(a_run_that_changed_its_stages_is_replayed)
{
	static const struct recorded_options o = { .recut = true };
	struct replayed g, plain;
	struct rng rng;

	replayed_begin(&g, &o);
	replayed_begin(&plain, NULL);
	rng_init_stream(&rng, 3, 4);
	for (int turn = 0; turn < 300; turn++) {
		int64_t ms = REPLAYED_FIRST_MS +
			     (int64_t)rng_below(&rng, REPLAYED_LAST_MS - REPLAYED_FIRST_MS + 1);
		struct seen *s = replayed_at(g.replay, ms), *same = replayed_at(plain.replay, ms);

		if (ms < 4420)
			expect_former_stages(s, same);
		else
			expect_new_stages(s, ms, same);
		free(s);
		free(same);
	}
	replayed_end(&g);
	replayed_end(&plain);
}

/* A console that sees the change of stages happen gets a snapshot. */
TEST(a_replay_runs_through_a_change_of_stages)
{
	static const struct recorded_options o = { .recut = true };
	struct replayed g;
	struct replay *other;

	replayed_begin(&g, &o);
	assert_int_equal(replay_new(&other, g.recorded, NULL), 0);
	for (int64_t step = 10; step <= 3000; step *= 3) {
		struct seen *s = replayed_at(g.replay, 4000);

		for (int64_t ms = 4000; ms < REPLAYED_LAST_MS; ms += step) {
			struct seen *expected = replayed_at(other, ms);

			assert_int_equal(replay_next(g.replay, ms * 1000, replayed_see, s, NULL),
					 0);
			assert_int_equal(replay_nodes(g.replay, replayed_see, s, NULL), 0);
			replay_status(g.replay, replayed_see, s);
			replayed_assert_same(s, expected);
			assert_int_equal(s->snapshots, ms < 4420 ? 1 : 2);
			free(expected);
		}
		free(s);
	}
	replay_free(other);
	replayed_end(&g);
}

/* The record lacks the phases of old iterations. The replay must nevertheless notice that a
 * second controller replaced the first, and show all nodes that joined the second controller. */
TEST(another_controller_is_noticed_without_its_phases)
{
	static const struct recorded_options o = { .recut = true };
	struct recorded_run *less;
	struct replay *thin;
	struct replayed g;
	struct seen *s;

	replayed_begin(&g, &o);
	assert_int_equal(store_thin(g.writer, 3, NULL), 0);
	assert_int_equal(recorded_run_read(&less, g.store, NULL), 0);
	assert_int_equal(replay_new(&thin, less, NULL), 0);
	s = replayed_at(thin, REPLAYED_LAST_MS);
	assert_int_equal(s->run.n_stages, 3);
	assert_int_equal(s->status.alive, RECORDED_NODES);
	free(s);
	replay_free(thin);
	recorded_run_free(less);
	replayed_end(&g);
}

TEST(a_record_without_moments_is_refused)
{
	static const struct recorded_options o = { .without_moments = true };
	struct replayed g = { .folder = "/tmp/skippipe-replay-XXXXXX" };
	struct error err = { "" };

	recorded_make(g.folder, &o, &g.writer);
	assert_int_equal(store_open(&g.store, g.folder, NULL), 0);
	assert_int_equal(recorded_run_read(&g.recorded, g.store, &err), -ENODATA);
	assert_null(g.recorded);
	assert_non_null(strstr(err.text, "no moments"));
	store_close(g.store);
	store_close(g.writer);
	recorded_remove(g.folder);
}

/* The record lacks the tasks of old iterations. The replay nevertheless sends the commits,
 * losses, nodes and journal of these iterations. The third iteration is complete. */
TEST(a_run_without_its_old_tasks_is_replayed)
{
	struct recorded_run *less;
	struct replay *thin;
	struct replayed g;

	replayed_begin(&g, NULL);
	assert_int_equal(store_thin(g.writer, 2, NULL), 0);
	assert_int_equal(recorded_run_read(&less, g.store, NULL), 0);
	assert_int_equal(replay_new(&thin, less, NULL), 0);
	for (int64_t ms = 1000; ms <= REPLAYED_LAST_MS; ms += 50) {
		struct seen *s = replayed_at(thin, ms), *whole = replayed_at(g.replay, ms);

		assert_int_equal(s->n_iterations, whole->n_iterations);
		for (uint32_t i = 0; i < s->n_iterations; i++) {
			assert_int_equal(s->iterations[i].at_us, whole->iterations[i].at_us);
			assert_true(s->iterations[i].loss == whole->iterations[i].loss);
		}
		for (int i = 0; i < RECORDED_NODES; i++)
			assert_int_equal(s->nodes[i].state, whole->nodes[i].state);
		assert_int_equal(s->n_notes, whole->n_notes);
		assert_int_equal(s->n_events, ms < 4500 ? 0 : whole->n_events);
		free(s);
		free(whole);
	}
	replay_free(thin);
	recorded_run_free(less);
	replayed_end(&g);
}

TEST(a_running_run_is_replayed)
{
	static const struct recorded_options o = { .until = 1 };
	static const struct store_validation late = { 0, 5, INT64_C(1700000000000000) + 3050000 };
	struct replayed g;
	struct recorded_run *more;
	struct seen *s;

	replayed_begin(&g, &o);
	free(replayed_at(g.replay, 3100));
	assert_int_equal(recorded_run_grew(g.recorded, NULL), 0);
	recorded_iteration(g.writer, 2, &o);
	assert_int_equal(recorded_run_grew(g.recorded, NULL), 1);
	assert_int_equal(recorded_run_read(&more, g.store, NULL), 0);
	/* The rows before the cursor have not changed, so the console needs no snapshot */
	assert_int_equal(replay_renew(g.replay, more, NULL), 0);
	recorded_run_free(g.recorded);
	g.recorded = more;
	assert_int_equal(recorded_run_grew(g.recorded, NULL), 0);

	assert_int_equal(store_validation(g.writer, &late, NULL), 0);
	recorded_iteration(g.writer, 3, &o);
	assert_int_equal(recorded_run_read(&more, g.store, NULL), 0);
	assert_int_equal(replay_renew(g.replay, more, NULL), 1);
	recorded_run_free(g.recorded);
	g.recorded = more;
	assert_int_equal(replay_cursor(g.replay), 3100000);
	s = replayed_at(g.replay, REPLAYED_LAST_MS);
	assert_int_equal(s->n_iterations, 3);
	assert_int_equal(s->n_validations, 2);
	free(s);
	replayed_end(&g);
}

TEST(damaged_records_are_refused)
{
	static const struct recorded_options o = { .until = 2 };
	static const struct store_task stranger = {
		.iteration = 1, .node = 99, .kind = 'F', .waited_for = -1
	};
	struct replayed g;
	struct error err;
	struct recorded_run *r;
	struct seen *s;

	replayed_begin(&g, &o);
	assert_int_equal(store_tasks(g.writer, &stranger, 1, NULL), 0);
	assert_int_equal(replay_seek(g.replay, 2500000, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "iteration 1"));
	s = replayed_at(g.replay, 3300); /* the rows after the cursor are shown */
	assert_int_equal(s->n_iterations, 1);
	free(s);
	assert_int_equal(store_set(g.writer, "controller", "{}", NULL), 0);
	assert_int_equal(recorded_run_read(&r, g.store, &err), -EINVAL);
	assert_non_null(strstr(err.text, "damaged"));
	assert_int_equal(store_set(g.writer, "controller", NULL, NULL), 0);
	assert_int_equal(recorded_run_read(&r, g.store, &err), -ENODATA);
	assert_non_null(strstr(err.text, "nothing to replay"));
	replayed_end(&g);
}

TEST(every_snapshot_has_its_own_run_number)
{
	struct replayed g;
	struct seen *a, *b;
	uint64_t number;

	replayed_begin(&g, NULL);
	a = replayed_at(g.replay, 4650);
	b = replayed_at(g.replay, 4650);
	assert_int_not_equal(a->number, b->number);
	number = b->number;
	/* The console gets the description of the run, and then the active faults, which it has
	 * forgotten */
	replay_run(g.replay, replayed_see, b);
	assert_int_equal(b->number, number);
	assert_int_equal(b->n_active, 1);
	free(a);
	free(b);
	replayed_end(&g);
}
