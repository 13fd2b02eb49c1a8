/* replay_test.c - a cursor over a handmade run emits what the recorded rows say, however it reached
 * its position. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "controller/tests/replayed.h"

/* ---- messages at a moment ---- */

TEST(a_snapshot_describes_the_moment)
{
	static const struct {
		int64_t ms;
		enum run_phase phase;
		uint64_t iteration, committed, epoch, events_of;
		uint32_t alive, iterations, validations, notes, faults;
	} moments[] = {
		{ 1000, PHASE_GATHERING, 1, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ 1499, PHASE_GATHERING, 1, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ 1500, PHASE_GATHERING, 1, 0, 0, 0, 3, 0, 0, 0, 0 },
		{ 1950, PHASE_GATHERING, 1, 0, 0, 0, 3, 0, 0, 1, 0 },
		{ 2000, PHASE_COMPUTING, 1, 0, 1, 1, 3, 0, 0, 1, 0 },
		{ 2900, PHASE_REDUCING, 1, 0, 1, 1, 3, 0, 0, 1, 0 },
		{ 3000, PHASE_PLANNING, 1, 1, 1, 1, 3, 1, 0, 1, 0 },
		{ 3100, PHASE_PLANNING, 1, 1, 1, 1, 3, 1, 1, 1, 0 },
		{ 3300, PHASE_COMPUTING, 2, 1, 1, 2, 3, 1, 1, 1, 0 },
		{ 3450, PHASE_COMPUTING, 2, 1, 1, 2, 2, 1, 1, 2, 0 },
		{ 4400, PHASE_PLANNING, 2, 2, 1, 2, 2, 2, 1, 2, 0 },
		{ 4600, PHASE_COMPUTING, 3, 2, 2, 3, 2, 2, 1, 2, 1 },
		{ 4700, PHASE_COMPUTING, 3, 2, 2, 3, 3, 2, 1, 2, 1 },
		{ 4800, PHASE_COMPUTING, 3, 2, 2, 3, 3, 2, 1, 2, 0 },
		{ 5600, PHASE_FINISHED, 3, 3, 2, 3, 3, 3, 1, 3, 0 },
	};
	struct replayed g;

	replayed_begin(&g, NULL);
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		struct seen *s = replayed_at(g.replay, moments[i].ms);

		assert_int_equal(s->run.replay, 1);
		assert_int_equal(s->run.first_us, REPLAYED_FIRST_MS * 1000);
		assert_int_equal(s->run.last_us, REPLAYED_LAST_MS * 1000);
		assert_int_equal(s->status.now_us, moments[i].ms * 1000);
		assert_int_equal(s->status.phase, moments[i].phase);
		assert_int_equal(s->status.iteration, moments[i].iteration);
		assert_int_equal(s->status.committed, moments[i].committed);
		assert_int_equal(s->status.epoch, moments[i].epoch);
		assert_int_equal(s->status.alive, moments[i].alive);
		assert_int_equal(s->status.faults, moments[i].faults);
		assert_int_equal(s->n_active, moments[i].faults);
		assert_int_equal(s->n_iterations, moments[i].iterations);
		assert_int_equal(s->n_validations, moments[i].validations);
		assert_int_equal(s->n_notes, moments[i].notes);
		assert_int_equal(s->events_of, moments[i].events_of);
		assert_int_equal(s->plan_epoch, moments[i].epoch);
		assert_int_equal(s->plan_routes, moments[i].epoch ? RECORDED_MICROBATCHES : 0);
		assert_int_equal(s->plan_tasks, moments[i].epoch ? 2 * RECORDED_TASKS : 0);
		free(s);
	}
	replayed_end(&g);
}

TEST(the_status_describes_the_moment)
{
	static const struct {
		int64_t ms;
		const char *doing;
	} moments[] = {
		{ 1000, "recorded, stopped; it1: gathering agents" },
		{ 2000, "recorded, stopped; it1: 0 of 2 microbatches done" },
		{ 2900, "recorded, stopped; it1: replicas sum their gradients" },
		{ 3100, "recorded, stopped; it1: planning" },
		{ 5600, "recorded, stopped; it3: the run ended" },
	};
	struct replayed g;

	replayed_begin(&g, NULL);
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		struct seen *s = replayed_at(g.replay, moments[i].ms);

		assert_string_equal(s->status.doing, moments[i].doing);
		free(s);
	}
	replayed_end(&g);
}

/* The status shows the newest complete checkpoint, and the newest failed checkpoint after it. When
 * the complete checkpoints become void, the failed checkpoint stays. */
TEST(checkpoints_are_replayed)
{
	static const struct {
		int64_t ms;
		uint64_t complete, failed;
	} moments[] = {
		{ 3150, 0, 0 }, { 3210, 1, 0 }, { 4520, 1, 2 }, { 4560, 0, 2 }, { 4505, 1, 0 },
	};
	struct replayed g;

	replayed_begin(&g, NULL);
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		struct seen *s = replayed_at(g.replay, moments[i].ms);

		assert_int_equal(s->status.checkpoint, moments[i].complete);
		assert_int_equal(s->status.checkpoint_failure.iteration, moments[i].failed);
		assert_int_equal(s->status.checkpoint_failure.node, moments[i].failed ? 1 : -1);
		free(s);
	}
	replayed_end(&g);
}

TEST(numbers_come_from_the_rows)
{
	struct replayed g;
	struct seen *s;

	replayed_begin(&g, NULL);
	s = replayed_at(g.replay, 3460);
	assert_int_equal(s->iterations[0].at_us, 3000000);
	assert_true(s->iterations[0].loss == 4);
	/* Within 1 s, from 2000 ms to 3000 ms, two microbatches with one sequence of 64 tokens
	 * each are computed. */
	assert_true(s->iterations[0].tokens_per_s == 128);
	/* The iteration took 0.75 s, and 3 nodes were alive: 2.25 s of node time. Tasks took 0.9 s
	 * of it. */
	assert_float_equal(s->iterations[0].idle_fraction, 0.6, 1e-6);
	assert_string_equal(s->iterations[0].algorithm, "best");
	assert_true(s->validations[0].loss == 4.25f);
	assert_int_equal(s->nodes[2].state, NODE_DEAD);
	assert_int_equal(s->nodes[2].since_us, 3450000);
	assert_int_equal(s->nodes[2].heard_us, 3450000);
	assert_string_equal(s->nodes[2].why, "heartbeat lost");
	assert_int_equal(s->nodes[0].heard_us, 3460000);
	assert_int_equal(s->nodes[0].hash, 10);
	assert_int_equal(s->nodes[1].hash, 11);
	assert_int_equal(s->nodes[0].pid, 4000);
	assert_int_equal(s->nodes[3].state, NODE_ABSENT);
	assert_int_equal(s->notes[1].kind, NOTE_ALERT);
	assert_int_equal(s->notes[1].mark, 'F');
	assert_int_equal(s->notes[1].at_us, 3450000);
	assert_int_equal(s->status.iteration_started_us, 3200000);
	assert_true(s->nodes[1].forward_s == 0.1f);
	/* The times of the plan's forward (F), loss (L) and backward (B) tasks, computed by hand,
	 * in seconds: F 0.1 .. 0.2, F 0.25 .. 0.35, L 0.4 .. 0.42, B 0.47 .. 0.57, B 0.62 ..
	 * 0.72. */
	assert_in_range(s->plan_end_us, 719999, 720001);
	free(s);
	/* The times of the tasks with the corrections, and with both microbatches on n01, in
	 * seconds: F 0.1 .. 0.2, F 0.45 .. 0.75, L 1.25 .. 1.27, B 1.32 .. 1.42, B 1.92 ..
	 * 2.02. */
	s = replayed_at(g.replay, 4500);
	assert_true(s->nodes[1].forward_s == 0.3f);
	assert_in_range(s->plan_end_us, 2019999, 2020001);
	free(s);
	replayed_end(&g);
}

/* The replay shows the last recorded figures of a GPU until its node is lost. */
TEST(figures_of_gpus_are_replayed)
{
	static const int64_t times_ms[] = { 3240, 3260, 3460, 5000, 3300, 3000 };
	struct replayed g;

	replayed_begin(&g, NULL);
	for (int i = 0; i < 6; i++) { /* the cursor moves forwards and backwards */
		struct seen *s = replayed_at(g.replay, times_ms[i]);
		bool recorded = times_ms[i] > 3250;

		assert_int_equal(s->nodes[0].gpu.known, 0);
		assert_int_equal(s->nodes[1].gpu.known,
				 recorded ? GPU_UTILISATION | GPU_TEMPERATURE | GPU_THROTTLING : 0);
		assert_int_equal(s->nodes[1].gpu.utilisation, recorded ? 97 : 0);
		assert_int_equal(s->nodes[1].gpu.temperature_c, recorded ? 88 : 0);
		assert_int_equal(s->nodes[1].gpu.throttling, recorded ? GPU_HEAT : 0);
		assert_int_equal(s->nodes[2].gpu.utilisation,
				 recorded && times_ms[i] < 3450 ? 50 : 0);
		free(s);
	}
	replayed_end(&g);
}

/* The replay shows the device times of the newest iteration, until the node is lost. */
TEST(times_of_devices_are_replayed)
{
	static const int64_t times_ms[] = { 3090, 3110, 5000, 3110, 3000 };
	static const struct device_time spent = { { 1250000, 500000, 1, 2000000 } }, none;
	struct replayed g;

	replayed_begin(&g, NULL);
	for (int i = 0; i < 5; i++) { /* the cursor moves forwards and backwards */
		struct seen *s = replayed_at(g.replay, times_ms[i]);

		assert_memory_equal(&s->nodes[0].spent, &none, sizeof(none));
		assert_memory_equal(&s->nodes[1].spent, times_ms[i] > 3100 ? &spent : &none,
				    sizeof(spent));
		free(s);
	}
	replayed_end(&g);
}

TEST(wrong_times_of_a_device_are_refused)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{\"busy_s\":1,\"host_s\":1,\"network_s\":1}",
		"{\"busy_s\":-1,\"host_s\":1,\"network_s\":1,\"others_s\":1}",
		"{\"busy_s\":\"1\",\"host_s\":1,\"network_s\":1,\"others_s\":1}",
		"{\"busy_s\":1,\"host_s\":1e9,\"network_s\":1,\"others_s\":1}",
	};

	for (size_t i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
		bool is_no_node = i == sizeof(wrong) / sizeof(wrong[0]);
		struct recorded_run *r = NULL;
		struct replayed g;
		struct error err;

		replayed_begin(&g, NULL);
		if (is_no_node)
			recorded_device(g.writer, 5610, RECORDED_NODES, RECORDED_TIMES);
		else
			recorded_device(g.writer, 5610, 1, wrong[i]);
		assert_int_equal(recorded_run_read(&r, g.store, &err), -EINVAL);
		assert_non_null(strstr(err.text, is_no_node ? "there is no node"
							    : "no times of a device"));
		replayed_end(&g);
	}
}

/* A node returns with a new process, which has no figures from the previous process. */
TEST(a_returned_node_has_no_figures_at_first)
{
	struct store_moment back = { .iteration = 3,
				     .at_us = 5610000,
				     .wall_us = 5610000,
				     .kind = "node",
				     .node = 2,
				     .stage = 1,
				     .word = "live",
				     .text = "",
				     .device = "cuda:0",
				     .host = "" };
	struct recorded_run *more;
	struct replay *r;
	struct replayed g;
	struct seen *s;

	replayed_begin(&g, NULL);
	assert_int_equal(store_moment(g.writer, &back, NULL), 0);
	recorded_gpu(g.writer, 5620, 2, "{\"utilisation\":70}");
	assert_int_equal(recorded_run_read(&more, g.store, NULL), 0);
	assert_int_equal(replay_new(&r, more, NULL), 0);
	s = replayed_at(r, 5615);
	assert_int_equal(s->nodes[2].state, NODE_LIVE);
	assert_int_equal(s->nodes[2].gpu.known, 0);
	free(s);
	s = replayed_at(r, 5620);
	assert_int_equal(s->nodes[2].gpu.utilisation, 70);
	free(s);
	replay_free(r);
	recorded_run_free(more);
	replayed_end(&g);
}

TEST(wrong_figures_of_a_gpu_are_refused)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{\"utilisation\":101}",
		"{\"utilisation\":-1}",
		"{\"power_mw\":1.5}",
		"{\"memory_mib\":4294967296}",
		"{\"temperature_c\":201}",
		"{\"throttling\":\"cold\"}",
		"{\"throttling\":1}",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct replayed g;
		struct recorded_run *r = NULL;
		struct error err;

		replayed_begin(&g, NULL);
		recorded_gpu(g.writer, 5610, 1, wrong[i]);
		assert_int_equal(recorded_run_read(&r, g.store, &err), -EINVAL);
		assert_non_null(strstr(err.text, "no figures of a GPU"));
		replayed_end(&g);
	}
	for (int node = -1; node <= RECORDED_NODES; node += RECORDED_NODES + 1) {
		struct replayed g;
		struct recorded_run *r = NULL;
		struct error err;

		replayed_begin(&g, NULL);
		recorded_gpu(g.writer, 5610, node, "{}");
		assert_int_equal(recorded_run_read(&r, g.store, &err), -EINVAL);
		assert_non_null(strstr(err.text, "there is no node"));
		replayed_end(&g);
	}
}

/* Reads the events up to that time directly from the rows, unsorted. */
static uint32_t expect_events(int64_t ms, uint64_t iteration, struct msg_task_event *out)
{
	int64_t start = recorded_start_ms(iteration);
	uint32_t n = 0;

	for (int i = 0; i < RECORDED_TASKS; i++) {
		const struct store_task *t = &recorded_tasks[i];
		struct msg_task_event e = {
			.kind = t->kind == 'F'   ? TASK_FORWARD
				: t->kind == 'L' ? TASK_LOSS
						 : TASK_BACKWARD,
			.node = t->node,
			.microbatch = t->microbatch,
		};

		if (t->waited_for >= 0 && t->arrived_us < t->start_us &&
		    start + t->arrived_us <= ms) {
			e.type = WORK_WAITS;
			e.at_us = (start + t->arrived_us) * 1000;
			e.blocker = (uint32_t)t->waited_for;
			out[n++] = e;
		}
		e.blocker = t->waited_for < 0 ? UINT32_MAX : (uint32_t)t->waited_for;
		if (start + t->start_us <= ms) {
			e.type = WORK_STARTS;
			e.at_us = (start + t->start_us) * 1000;
			out[n++] = e;
		}
		if (start + t->end_us <= ms) {
			e.type = WORK_ENDS;
			e.at_us = (start + t->end_us) * 1000;
			e.blocker = UINT32_MAX;
			out[n++] = e;
		}
	}
	return n;
}

static void expect_node(const struct seen *s, int64_t ms, uint64_t iteration, uint16_t node)
{
	int64_t start = recorded_start_ms(iteration);
	uint32_t slots = 0, running = 0, queued = 0;

	for (int i = 0; i < RECORDED_TASKS; i++) {
		const struct store_task *t = &recorded_tasks[i];

		if (t->node != node)
			continue;
		slots += t->kind == 'F' && start + t->start_us <= ms;
		slots -= t->kind == 'B' && start + t->end_us <= ms;
		running += start + t->start_us <= ms && ms < start + t->end_us;
		queued += t->waited_for >= 0 && start + t->arrived_us <= ms &&
			  ms < start + t->start_us;
	}
	assert_int_equal(s->nodes[node].slots, slots);
	assert_int_equal(s->nodes[node].running, running);
	assert_int_equal(s->nodes[node].queued, queued);
}

TEST(tasks_come_from_the_rows)
{
	struct replayed g;

	replayed_begin(&g, NULL);
	for (int64_t ms = 2000; ms <= REPLAYED_LAST_MS; ms += 10) {
		uint64_t iteration = ms < 3200 ? 1 : ms < 4500 ? 2 : 3;
		struct seen *s = replayed_at(g.replay, ms);
		struct msg_task_event expected[REPLAYED_EVENTS];
		uint32_t n = expect_events(ms, iteration, expected);

		assert_int_equal(s->n_events, n);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t k = 0;

			while (k < n && !replayed_same_event(&s->events[i], &expected[k]))
				k++;
			assert_true(k < n);
			assert_true(i == 0 || s->events[i - 1].at_us <= s->events[i].at_us);
		}
		expect_node(s, ms, iteration, 0);
		expect_node(s, ms, iteration, 1);
		free(s);
	}
	replayed_end(&g);
}

/* ---- each way to a time leads to the same state ---- */

TEST(moving_back_and_forth_changes_nothing)
{
	struct seen *fresh[(REPLAYED_LAST_MS - REPLAYED_FIRST_MS) / 50 + 1];
	struct replayed g;
	struct rng rng;

	replayed_begin(&g, NULL);
	rng_init_stream(&rng, 3, 1);
	for (int i = 0; i <= (REPLAYED_LAST_MS - REPLAYED_FIRST_MS) / 50; i++) {
		struct replay *r;

		assert_int_equal(replay_new(&r, g.recorded, NULL), 0);
		fresh[i] = replayed_at(r, REPLAYED_FIRST_MS + 50 * i);
		replay_free(r);
	}
	for (int turn = 0; turn < 500; turn++) {
		int i = (int)(rng_next(&rng) % ((REPLAYED_LAST_MS - REPLAYED_FIRST_MS) / 50 + 1));
		struct seen *s = replayed_at(g.replay, REPLAYED_FIRST_MS + 50 * i);

		replayed_assert_same(s, fresh[i]);
		free(s);
	}
	for (int i = 0; i <= (REPLAYED_LAST_MS - REPLAYED_FIRST_MS) / 50; i++)
		free(fresh[i]);
	replayed_end(&g);
}

TEST(a_stream_and_a_snapshot_agree)
{
	struct replayed g;
	struct replay *other;
	struct rng rng;

	replayed_begin(&g, NULL);
	assert_int_equal(replay_new(&other, g.recorded, NULL), 0);
	rng_init_stream(&rng, 3, 2);
	for (int turn = 0; turn < 100; turn++) {
		int64_t ms = REPLAYED_FIRST_MS + (int64_t)(rng_next(&rng) % 3000);
		struct seen *s = replayed_at(g.replay, ms), *expected;

		while (ms < REPLAYED_LAST_MS) {
			ms += (int64_t)(rng_next(&rng) % 700);
			assert_int_equal(replay_next(g.replay, ms * 1000, replayed_see, s, NULL),
					 0);
			assert_int_equal(replay_nodes(g.replay, replayed_see, s, NULL), 0);
			replay_status(g.replay, replayed_see, s);
			expected = replayed_at(other, ms);
			replayed_assert_same(s, expected);
			free(expected);
		}
		free(s);
	}
	replay_free(other);
	replayed_end(&g);
}

TEST(seeks_stay_within_the_record)
{
	struct replayed g;
	struct seen *s, before;

	replayed_begin(&g, NULL);
	s = replayed_at(g.replay, -5);
	assert_int_equal(s->status.now_us, REPLAYED_FIRST_MS * 1000);
	free(s);
	s = replayed_at(g.replay, INT64_MAX / 1000);
	assert_int_equal(s->status.now_us, REPLAYED_LAST_MS * 1000);
	before = *s;
	/* replay_next does not move backwards */
	assert_int_equal(replay_next(g.replay, 2000000, replayed_see, s, NULL), 0);
	assert_int_equal(replay_next(g.replay, INT64_MAX, replayed_see, s, NULL), 0);
	replayed_assert_same(s, &before);
	assert_int_equal(replay_cursor(g.replay), REPLAYED_LAST_MS * 1000);
	assert_int_equal(replay_next_commit(g.replay), REPLAYED_LAST_MS * 1000);
	free(s);
	free(replayed_at(g.replay, 1000));
	assert_int_equal(replay_next_commit(g.replay), 3000000);
	free(replayed_at(g.replay, 3000));
	assert_int_equal(replay_next_commit(g.replay), 4400000);
	replayed_end(&g);
}

TEST(the_cursor_follows_its_speed)
{
	struct replay_pace p = { .speed = 0.25 };
	int64_t gone = 0;

	for (int i = 0; i < 1000; i++)
		/* 3 us of real time move the cursor by 0.75 us */
		gone += replay_pace_step(&p, 3);
	assert_int_equal(gone, 750);
	p.stopped = true;
	assert_int_equal(replay_pace_step(&p, 1000000), 0);
	p = (struct replay_pace){ .speed = 8 };
	assert_int_equal(replay_pace_step(&p, 50000), 400000);
}
