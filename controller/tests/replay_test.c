/* replay_test.c - a cursor over a handmade run sends what the rows say, by whichever jumps it
 * reached its position. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/skip_schedule.h"
#include "base/tests/test.h"
#include "controller/replay/replay.h"
#include "controller/operator/console_messages.h"
#include "controller/tests/recorded.h"

enum { EVENTS = 3 * RECORDED_TASKS, FIRST_MS = 1000, LAST_MS = 5600 };

/* Everything that a console would know. */
struct seen {
	struct msg_see_run run; /* without its number */
	uint64_t number;
	struct msg_see_status status;
	struct msg_see_node nodes[RECORDED_NODES];
	uint64_t plan_epoch;
	uint32_t plan_routes, plan_tasks;
	int64_t plan_end_us;
	uint32_t n_iterations, n_validations, n_notes, n_active, n_events;
	struct msg_see_iteration iterations[8];
	struct msg_see_validation validations[8];
	struct msg_see_note notes[8];
	uint64_t events_of;
	struct msg_task_event events[EVENTS];
	uint32_t snapshots;
};

static void see(void *context, struct msg *m)
{
	struct seen *s = context;

	assert_true(msg_size(m) > 0); /* the message can be sent */
	switch (m->type) {
	case MSG_SEE_RUN:
		s->number = m->u.see_run.run;
		s->run = m->u.see_run;
		s->run.run = 0;
		s->n_iterations = s->n_validations = s->n_notes = s->n_active = s->n_events = 0;
		memset(s->events, 0, sizeof(s->events));
		s->events_of = 0;
		break;
	case MSG_SEE_STATUS: s->status = m->u.see_status; break;
	case MSG_SEE_NODE: s->nodes[m->u.see_node.node] = m->u.see_node; break;
	case MSG_SEE_PLAN:
		s->plan_epoch = m->u.see_plan.epoch;
		s->plan_routes = m->u.see_plan.n_routes;
		s->plan_tasks = m->u.see_plan.n_planned;
		s->plan_end_us = 0;
		for (uint32_t i = 0; i < s->plan_tasks; i++)
			if (m->u.see_plan.planned[i].at_us > s->plan_end_us)
				s->plan_end_us = m->u.see_plan.planned[i].at_us;
		break;
	case MSG_SEE_ITERATION: s->iterations[s->n_iterations++] = m->u.see_iteration; break;
	case MSG_SEE_VALIDATION: s->validations[s->n_validations++] = m->u.see_validation; break;
	case MSG_SEE_NOTE: s->notes[s->n_notes++] = m->u.see_note; break;
	case MSG_SEE_FAULT: s->n_active += m->u.see_fault.active ? 1u : UINT32_MAX; break;
	case MSG_SEE_TASKS:
		if (s->events_of != m->u.see_tasks.iteration) {
			memset(s->events, 0, sizeof(s->events));
			s->n_events = 0;
		}
		s->events_of = m->u.see_tasks.iteration;
		for (uint32_t i = 0; i < m->u.see_tasks.n_events; i++)
			s->events[s->n_events++] = m->u.see_tasks.events[i];
		break;
	case MSG_SEE_SYNCED: s->snapshots++; break;
	default: fail_msg("unexpected %s", msg_name(m->type));
	}
}

static size_t put(const struct msg *m, unsigned char *out)
{
	long n = msg_encode(m, out, msg_size(m));

	assert_true(n > 0);
	return (size_t)n;
}

/* Serializes everything. Structs cannot be compared directly because of their padding. */
static size_t written(const struct seen *s, unsigned char *out)
{
	struct msg m = { .type = MSG_SEE_RUN, .u.see_run = s->run };
	size_t n = put(&m, out);

	m = (struct msg){ .type = MSG_SEE_STATUS, .u.see_status = s->status };
	n += put(&m, out + n);
	for (int i = 0; i < RECORDED_NODES; i++) {
		m = (struct msg){ .type = MSG_SEE_NODE, .u.see_node = s->nodes[i] };
		n += put(&m, out + n);
	}
	for (uint32_t i = 0; i < s->n_iterations; i++) {
		m = (struct msg){ .type = MSG_SEE_ITERATION, .u.see_iteration = s->iterations[i] };
		n += put(&m, out + n);
	}
	for (uint32_t i = 0; i < s->n_validations; i++) {
		m = (struct msg){ .type = MSG_SEE_VALIDATION,
				  .u.see_validation = s->validations[i] };
		n += put(&m, out + n);
	}
	for (uint32_t i = 0; i < s->n_notes; i++) {
		m = (struct msg){ .type = MSG_SEE_NOTE, .u.see_note = s->notes[i] };
		n += put(&m, out + n);
	}
	m = (struct msg){ .type = MSG_SEE_TASKS,
			  .u.see_tasks = { s->events_of, 0, s->n_events, s->events } };
	n += put(&m, out + n);
	out[n++] = (unsigned char)s->plan_epoch;
	out[n++] = (unsigned char)s->plan_routes;
	out[n++] = (unsigned char)s->n_active;
	return n;
}

static void assert_same(const struct seen *a, const struct seen *b)
{
	static unsigned char x[1 << 16], y[1 << 16];
	size_t n = written(a, x);

	assert_int_equal(written(b, y), n);
	assert_memory_equal(x, y, n);
}

struct stage {
	char folder[64];
	struct store *writer, *store;
	struct recording *recording;
	struct replay *replay;
};

static void set(struct stage *s, const struct recorded_options *o)
{
	static const struct recorded_options whole = { 0 };

	memset(s, 0, sizeof(*s));
	strcpy(s->folder, "/tmp/skippipe-replay-XXXXXX");
	recorded_make(s->folder, o ? o : &whole, &s->writer);
	assert_int_equal(store_open(&s->store, s->folder, NULL), 0);
	assert_int_equal(recording_read(&s->recording, s->store, NULL), 0);
	assert_int_equal(replay_new(&s->replay, s->recording, NULL), 0);
}

static void strike(struct stage *s)
{
	replay_free(s->replay);
	recording_free(s->recording);
	store_close(s->store);
	store_close(s->writer);
	recorded_remove(s->folder);
}

/* Returns the state at a time, from whatever position the cursor had. */
static struct seen *shown(struct replay *r, int64_t ms)
{
	struct seen *s = calloc(1, sizeof(*s));

	assert_int_equal(replay_seek(r, ms * 1000, NULL), 0);
	assert_int_equal(replay_snapshot(r, see, s, NULL), 0);
	assert_int_equal(s->snapshots, 1);
	return s;
}

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
	struct stage g;

	set(&g, NULL);
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		struct seen *s = shown(g.replay, moments[i].ms);

		assert_int_equal(s->run.replay, 1);
		assert_int_equal(s->run.first_us, FIRST_MS * 1000);
		assert_int_equal(s->run.last_us, LAST_MS * 1000);
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
	strike(&g);
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
	struct stage g;

	set(&g, NULL);
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		struct seen *s = shown(g.replay, moments[i].ms);

		assert_string_equal(s->status.doing, moments[i].doing);
		free(s);
	}
	strike(&g);
}

TEST(numbers_come_from_the_rows)
{
	struct stage g;
	struct seen *s;

	set(&g, NULL);
	s = shown(g.replay, 3460);
	assert_int_equal(s->iterations[0].at_us, 3000000);
	assert_true(s->iterations[0].loss == 4);
	/* Two microbatches of one sequence of 64, from 2000 to 3000. */
	assert_true(s->iterations[0].tokens_per_s == 128);
	/* 0.9 s of work in 0.75 s on 3 nodes. */
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
	/* Computed by hand: F 0.1 .. 0.2, F 0.25 .. 0.35, L 0.4 .. 0.42, B 0.47 .. 0.57, B 0.62
	 * .. 0.72. */
	assert_in_range(s->plan_end_us, 719999, 720001);
	free(s);
	/* With corrected times, both on n01: F 0.1 .. 0.2, F 0.45 .. 0.75, L 1.25 .. 1.27, B
	 * 1.32 .. 1.42, B 1.92 .. 2.02. */
	s = shown(g.replay, 4500);
	assert_true(s->nodes[1].forward_s == 0.3f);
	assert_in_range(s->plan_end_us, 2019999, 2020001);
	free(s);
	strike(&g);
}

/* The last recorded figures are shown, until the node is lost. */
TEST(figures_of_gpus_are_replayed)
{
	static const int64_t times_ms[] = { 3240, 3260, 3460, 5000, 3300, 3000 };
	struct stage g;

	set(&g, NULL);
	for (int i = 0; i < 6; i++) { /* forwards and backwards */
		struct seen *s = shown(g.replay, times_ms[i]);
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
	strike(&g);
}

/* The figures of its process before are not those of the new one. */
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
	struct recording *more;
	struct replay *r;
	struct stage g;
	struct seen *s;

	set(&g, NULL);
	assert_int_equal(store_moment(g.writer, &back, NULL), 0);
	recorded_gpu(g.writer, 5620, 2, "{\"utilisation\":70}");
	assert_int_equal(recording_read(&more, g.store, NULL), 0);
	assert_int_equal(replay_new(&r, more, NULL), 0);
	s = shown(r, 5615);
	assert_int_equal(s->nodes[2].state, NODE_LIVE);
	assert_int_equal(s->nodes[2].gpu.known, 0);
	free(s);
	s = shown(r, 5620);
	assert_int_equal(s->nodes[2].gpu.utilisation, 70);
	free(s);
	replay_free(r);
	recording_free(more);
	strike(&g);
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
		struct stage g;
		struct recording *r = NULL;
		struct error err;

		set(&g, NULL);
		recorded_gpu(g.writer, 5610, 1, wrong[i]);
		assert_int_equal(recording_read(&r, g.store, &err), -EINVAL);
		assert_non_null(strstr(err.text, "no figures of a GPU"));
		strike(&g);
	}
	for (int node = -1; node <= RECORDED_NODES; node += RECORDED_NODES + 1) {
		struct stage g;
		struct recording *r = NULL;
		struct error err;

		set(&g, NULL);
		recorded_gpu(g.writer, 5610, node, "{}");
		assert_int_equal(recording_read(&r, g.store, &err), -EINVAL);
		assert_non_null(strstr(err.text, "there is no node"));
		strike(&g);
	}
}

/* Reads the events until that time straight from the rows, in no order. */
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

static bool same_event(const struct msg_task_event *a, const struct msg_task_event *b)
{
	return a->type == b->type && a->kind == b->kind && a->node == b->node &&
	       a->at_us == b->at_us && a->microbatch == b->microbatch && a->blocker == b->blocker;
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
	struct stage g;

	set(&g, NULL);
	for (int64_t ms = 2000; ms <= LAST_MS; ms += 10) {
		uint64_t iteration = ms < 3200 ? 1 : ms < 4500 ? 2 : 3;
		struct seen *s = shown(g.replay, ms);
		struct msg_task_event expected[EVENTS];
		uint32_t n = expect_events(ms, iteration, expected);

		assert_int_equal(s->n_events, n);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t k = 0;

			while (k < n && !same_event(&s->events[i], &expected[k]))
				k++;
			assert_true(k < n);
			assert_true(i == 0 || s->events[i - 1].at_us <= s->events[i].at_us);
		}
		expect_node(s, ms, iteration, 0);
		expect_node(s, ms, iteration, 1);
		free(s);
	}
	strike(&g);
}

/* ---- the same state by every path ---- */

TEST(moving_back_and_forth_changes_nothing)
{
	struct seen *fresh[(LAST_MS - FIRST_MS) / 50 + 1];
	struct stage g;
	struct rng rng;

	set(&g, NULL);
	rng_init_stream(&rng, 3, 1);
	for (int i = 0; i <= (LAST_MS - FIRST_MS) / 50; i++) {
		struct replay *r;

		assert_int_equal(replay_new(&r, g.recording, NULL), 0);
		fresh[i] = shown(r, FIRST_MS + 50 * i);
		replay_free(r);
	}
	for (int turn = 0; turn < 500; turn++) {
		int i = (int)(rng_next(&rng) % ((LAST_MS - FIRST_MS) / 50 + 1));
		struct seen *s = shown(g.replay, FIRST_MS + 50 * i);

		assert_same(s, fresh[i]);
		free(s);
	}
	for (int i = 0; i <= (LAST_MS - FIRST_MS) / 50; i++)
		free(fresh[i]);
	strike(&g);
}

TEST(a_stream_and_a_snapshot_agree)
{
	struct stage g;
	struct replay *other;
	struct rng rng;

	set(&g, NULL);
	assert_int_equal(replay_new(&other, g.recording, NULL), 0);
	rng_init_stream(&rng, 3, 2);
	for (int turn = 0; turn < 100; turn++) {
		int64_t ms = FIRST_MS + (int64_t)(rng_next(&rng) % 3000);
		struct seen *s = shown(g.replay, ms), *expected;

		while (ms < LAST_MS) {
			ms += (int64_t)(rng_next(&rng) % 700);
			assert_int_equal(replay_next(g.replay, ms * 1000, see, s, NULL), 0);
			assert_int_equal(replay_nodes(g.replay, see, s, NULL), 0);
			replay_status(g.replay, see, s);
			expected = shown(other, ms);
			assert_same(s, expected);
			free(expected);
		}
		free(s);
	}
	replay_free(other);
	strike(&g);
}

TEST(seeks_stay_within_the_record)
{
	struct stage g;
	struct seen *s, before;

	set(&g, NULL);
	s = shown(g.replay, -5);
	assert_int_equal(s->status.now_us, FIRST_MS * 1000);
	free(s);
	s = shown(g.replay, INT64_MAX / 1000);
	assert_int_equal(s->status.now_us, LAST_MS * 1000);
	before = *s;
	assert_int_equal(replay_next(g.replay, 2000000, see, s, NULL), 0); /* not backwards */
	assert_int_equal(replay_next(g.replay, INT64_MAX, see, s, NULL), 0);
	assert_same(s, &before);
	assert_int_equal(replay_cursor(g.replay), LAST_MS * 1000);
	assert_int_equal(replay_next_commit(g.replay), LAST_MS * 1000);
	free(s);
	free(shown(g.replay, 1000));
	assert_int_equal(replay_next_commit(g.replay), 3000000);
	free(shown(g.replay, 3000));
	assert_int_equal(replay_next_commit(g.replay), 4400000);
	strike(&g);
}

TEST(the_cursor_follows_its_speed)
{
	struct replay_pace p = { .speed = 0.25 };
	int64_t gone = 0;

	for (int i = 0; i < 1000; i++)
		gone += replay_pace_step(&p, 3); /* three quarters of a microsecond each */
	assert_int_equal(gone, 750);
	p.stopped = true;
	assert_int_equal(replay_pace_step(&p, 1000000), 0);
	p = (struct replay_pace){ .speed = 8 };
	assert_int_equal(replay_pace_step(&p, 50000), 400000);
}

/* ---- other runs ---- */

TEST(a_controller_on_another_machine_is_placed_in_time)
{
	static const struct recorded_options o = { .other_machine = true };
	struct stage g, plain;

	set(&g, &o);
	set(&plain, NULL);
	assert_int_equal(g.recording->last_us, plain.recording->last_us);
	for (int64_t ms = 4550; ms <= LAST_MS; ms += 50) {
		struct seen *s = shown(g.replay, ms), *same = shown(plain.replay, ms);

		assert_int_equal(s->n_events, same->n_events);
		for (uint32_t i = 0; i < s->n_events; i++)
			assert_true(same_event(&s->events[i], &same->events[i]));
		for (uint32_t i = 0; i < s->n_iterations; i++)
			assert_int_equal(s->iterations[i].at_us, same->iterations[i].at_us);
		assert_int_equal(s->nodes[0].state, NODE_LIVE);
		/* The new controller has not seen it */
		assert_int_equal(s->nodes[2].state, NODE_ABSENT);
		assert_int_equal(same->nodes[2].state, NODE_DEAD);
		free(s);
		free(same);
	}
	strike(&g);
	strike(&plain);
}

TEST(a_record_without_moments_is_refused)
{
	static const struct recorded_options o = { .without_moments = true };
	struct stage g = { .folder = "/tmp/skippipe-replay-XXXXXX" };
	struct error err = { "" };

	recorded_make(g.folder, &o, &g.writer);
	assert_int_equal(store_open(&g.store, g.folder, NULL), 0);
	assert_int_equal(recording_read(&g.recording, g.store, &err), -ENODATA);
	assert_null(g.recording);
	assert_non_null(strstr(err.text, "no moments"));
	store_close(g.store);
	store_close(g.writer);
	recorded_remove(g.folder);
}

/* Old iterations were thinned: the replay still sends their commits, losses, nodes and journal,
 * but no tasks. The third iteration is complete. */
TEST(a_run_without_its_old_tasks_is_replayed)
{
	struct recording *less;
	struct replay *thin;
	struct stage g;

	set(&g, NULL);
	assert_int_equal(store_thin(g.writer, 2, NULL), 0);
	assert_int_equal(recording_read(&less, g.store, NULL), 0);
	assert_int_equal(replay_new(&thin, less, NULL), 0);
	for (int64_t ms = 1000; ms <= LAST_MS; ms += 50) {
		struct seen *s = shown(thin, ms), *whole = shown(g.replay, ms);

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
	recording_free(less);
	strike(&g);
}

TEST(a_running_run_is_replayed)
{
	static const struct recorded_options o = { .until = 1 };
	static const struct store_validation late = { 0, 5, INT64_C(1700000000000000) + 3050000 };
	struct stage g;
	struct recording *more;
	struct seen *s;

	set(&g, &o);
	free(shown(g.replay, 3100));
	assert_int_equal(recording_grew(g.recording, NULL), 0);
	recorded_iteration(g.writer, 2, &o);
	assert_int_equal(recording_grew(g.recording, NULL), 1);
	assert_int_equal(recording_read(&more, g.store, NULL), 0);
	assert_int_equal(replay_renew(g.replay, more, NULL), 0); /* nothing behind the cursor */
	recording_free(g.recording);
	g.recording = more;
	assert_int_equal(recording_grew(g.recording, NULL), 0);

	assert_int_equal(store_validation(g.writer, &late, NULL), 0);
	recorded_iteration(g.writer, 3, &o);
	assert_int_equal(recording_read(&more, g.store, NULL), 0);
	assert_int_equal(replay_renew(g.replay, more, NULL), 1);
	recording_free(g.recording);
	g.recording = more;
	assert_int_equal(replay_cursor(g.replay), 3100000);
	s = shown(g.replay, LAST_MS);
	assert_int_equal(s->n_iterations, 3);
	assert_int_equal(s->n_validations, 2);
	free(s);
	strike(&g);
}

TEST(damaged_records_are_refused)
{
	static const struct recorded_options o = { .until = 2 };
	static const struct store_task stranger = {
		.iteration = 1, .node = 99, .kind = 'F', .waited_for = -1
	};
	struct stage g;
	struct error err;
	struct recording *r;
	struct seen *s;

	set(&g, &o);
	assert_int_equal(store_tasks(g.writer, &stranger, 1, NULL), 0);
	assert_int_equal(replay_seek(g.replay, 2500000, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "iteration 1"));
	s = shown(g.replay, 3300); /* the rest is shown */
	assert_int_equal(s->n_iterations, 1);
	free(s);
	assert_int_equal(store_set(g.writer, "controller", "{}", NULL), 0);
	assert_int_equal(recording_read(&r, g.store, &err), -EINVAL);
	assert_non_null(strstr(err.text, "damaged"));
	assert_int_equal(store_set(g.writer, "controller", NULL, NULL), 0);
	assert_int_equal(recording_read(&r, g.store, &err), -ENODATA);
	assert_non_null(strstr(err.text, "nothing to replay"));
	strike(&g);
}

TEST(every_snapshot_has_its_own_run_number)
{
	struct stage g;
	struct seen *a, *b;
	uint64_t number;

	set(&g, NULL);
	a = shown(g.replay, 4650);
	b = shown(g.replay, 4650);
	assert_int_not_equal(a->number, b->number);
	number = b->number;
	replay_run(g.replay, see, b); /* the run is unchanged, and its faults are sent again */
	assert_int_equal(b->number, number);
	assert_int_equal(b->n_active, 1);
	free(a);
	free(b);
	strike(&g);
}

/* ---- commands ---- */

TEST(alerts_are_acknowledged)
{
	struct stage g;
	struct seen *s, said = { 0 };

	set(&g, NULL);
	free(shown(g.replay, 3440));
	/* The fault has not happened yet at this moment */
	assert_int_equal(replay_acknowledge(g.replay, 0, see, &said), 0);
	free(shown(g.replay, 3460));
	assert_int_equal(replay_acknowledge(g.replay, 77, see, &said), 0);
	assert_int_equal(replay_acknowledge(g.replay, 2, see, &said), 1);
	assert_int_equal(said.n_notes, 1);
	assert_int_equal(said.notes[0].id, 2);
	assert_int_equal(said.notes[0].acknowledged, 1);
	assert_int_equal(replay_acknowledge(g.replay, 0, see, &said), 0);
	s = shown(g.replay, LAST_MS);
	assert_int_equal(s->notes[1].acknowledged, 1);
	free(s);
	strike(&g);
}

TEST(the_present_can_be_planned_from)
{
	bool excluded[RECORDED_NODES];
	struct planner_request q = { .excluded = excluded };
	struct msg_command m = { .verb = COMMAND_COMPARE, .node = 1, .value = 1, .text = "best" };
	const struct plan *plan;
	struct cluster *c;
	char name[32];
	struct error err;
	struct stage g;

	set(&g, NULL);
	free(shown(g.replay, 1500));
	assert_int_equal(replay_present(g.replay, &plan, excluded, &c, &err), -EAGAIN);
	free(shown(g.replay, 4800));
	assert_int_equal(replay_present(g.replay, &plan, excluded, &c, &err), 0);
	assert_false(excluded[0] || excluded[1] || excluded[3]);
	assert_true(excluded[2]);
	assert_int_equal(cluster_validate(c, &err), 0);
	assert_int_equal(c->nodes[0].stage, 0);
	assert_int_equal(c->nodes[3].stage, 1);
	assert_true(c->nodes[1].forward_s == 0.3 && c->delay_s[1 * RECORDED_NODES] == 0.5);
	q.from = plan;
	assert_int_equal(
		compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name,
				sizeof(name), &err), 0);
	assert_true(excluded[1]);
	assert_int_equal(q.path_length, 1);
	assert_ptr_equal(q.from, plan);
	assert_string_equal(name, "best 1/2 -n01");
	m.value = skip_share_pack(40, 1);
	assert_int_equal(
		compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name, sizeof(name), &err),
		0);
	assert_int_equal(q.skip_share, 40);
	assert_string_equal(name, "best 1/2 in 40% -n01");
	strcpy(m.text, "cbs");
	assert_int_equal(
		compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name, sizeof(name), &err),
		-EINVAL);
	assert_non_null(strstr(err.text, "cbs gives all microbatches paths of one length"));
	strcpy(m.text, "best");
	m.value = 2;
	assert_int_equal(
		compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name, sizeof(name), &err),
		-EINVAL);
	m.value = 0;
	m.node = RECORDED_NODES;
	assert_int_equal(
		compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name, sizeof(name), &err),
		-EINVAL);
	m.node = -1;
	strcpy(m.text, "magic");
	assert_int_equal(
		compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name, sizeof(name), &err),
		-EINVAL);
	cluster_free(c);
	strike(&g);
}

/* Another format keeps the method and the path length of the plan in force. */
TEST(a_format_can_be_compared)
{
	static const char *const wrong[] = { "wire",    "wire ",   "wire q4",  "wire q6 ",
					     "wireq6",  "sums q6", "sum-wire", "sum-wire bf16",
					     "wire 2",  "q6" };
	bool excluded[RECORDED_NODES] = { true };
	struct plan *plan = plan_alloc(2, RECORDED_NODES, 1, 1);
	struct planner_request q = { .excluded = excluded, .from = plan };
	struct msg_command m = {
		.verb = COMMAND_COMPARE, .node = -1, .value = 0, .text = "wire q6"
	};
	char name[32];
	struct error err;

	assert_non_null(plan);
	q.formats = (struct tensor_formats){ FORMAT_Q8, FORMAT_Q6 };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		strcpy(m.text, wrong[i]);
		assert_int_equal(compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name,
						 sizeof(name), &err),
				 -EINVAL);
		assert_true(q.formats.wire == FORMAT_Q8 && q.formats.sum_wire == FORMAT_Q6);
	}
	strcpy(m.text, "wire q6");
	assert_int_equal(compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name,
					 sizeof(name), &err), 0);
	assert_string_equal(name, "wire q6");
	assert_true(q.formats.wire == FORMAT_Q6 && q.formats.sum_wire == FORMAT_Q6);
	assert_int_equal(q.path_length, 1);
	assert_true(q.kind == PLANNER_COMPARE && q.algorithm == PLAN_BEST && q.from == plan);
	strcpy(m.text, "sum-wire q4");
	assert_int_equal(compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name,
					 sizeof(name), &err), 0);
	assert_string_equal(name, "sums q4");
	assert_true(q.formats.wire == FORMAT_Q6 && q.formats.sum_wire == FORMAT_Q4);
	plan->search.algorithm = strdup("dtfm");
	assert_int_equal(compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name,
					 sizeof(name), &err), 0);
	assert_true(q.algorithm == PLAN_DTFM && !q.from);
	plan_free(plan);
}

/* "branch" may name other excluded nodes. */
TEST(the_excluded_nodes_can_be_chosen)
{
	static const char *const wrong[] = { "branch ",   "branch 1,", "branch x", "branch 1 2",
					     "branch 1,,2", "branch 99", "branch --", "branchy 1" };
	bool excluded[RECORDED_NODES] = { true };
	struct planner_request q = { .excluded = excluded };
	struct msg_command m = {
		.verb = COMMAND_COMPARE, .node = -1, .value = 1, .text = "branch"
	};
	char name[32];
	struct error err;

	assert_int_equal(
		compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name,
				sizeof(name), &err), 0);
	assert_true(excluded[0]);
	assert_int_equal(q.algorithm, PLAN_BEST);
	assert_string_equal(name, "branch 1/2");
	strcpy(m.text, "branch 1,2");
	m.node = 3;
	assert_int_equal(
		compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name,
				sizeof(name), &err), 0);
	assert_true(!excluded[0] && excluded[1] && excluded[2] && excluded[3]);
	assert_string_equal(name, "branch 1/2 -n03");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		strcpy(m.text, wrong[i]);
		assert_int_equal(compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name,
						 sizeof(name), &err),
				 -EINVAL);
	}
	m.node = -1;
	strcpy(m.text, "branch -");
	assert_int_equal(
		compare_request(&m, 2, 1, RECORDED_NODES, excluded, &q, name,
				sizeof(name), &err), 0);
	assert_true(!excluded[1] && !excluded[2] && !excluded[3]);
}
