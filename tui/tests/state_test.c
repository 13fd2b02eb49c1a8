/* Invents runs, applies their events to a console's state, and checks that this state is the one
 * that the run had. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/run/state.h"
#include "tui/tests/golden.h"
#include "tui/input/why.h"

static struct msg_task_event event(uint8_t type, uint8_t kind, uint16_t node, uint32_t m,
				   int64_t at)
{
	return (struct msg_task_event){ .type = type,
					.kind = kind,
					.node = node,
					.microbatch = m,
					.blocker = UINT32_MAX,
					.at_us = at };
}

static void apply_events(struct state *s, uint64_t iteration, struct msg_task_event *e, uint32_t n)
{
	struct msg m = { .type = MSG_SEE_TASKS, .sequence = s->stream.sequence + 1 };

	m.u.see_tasks = (struct msg_see_tasks){ iteration, 0, n, e };
	state_apply(s, &m);
}

/* Returns a run with two microbatches on nodes 0 and 1. Node 0 has stage 0, node 1 has stage 1. */
static struct state *two(void)
{
	struct route routes[2] = {
		{ .n_hops = 2, .nodes = { 0, 1 }, .stages = { 0, 1 } },
		{ .microbatch = 1, .wave = 1, .n_hops = 2, .nodes = { 0, 1 }, .stages = { 0, 1 } },
	};
	struct msg m = { .type = MSG_SEE_RUN, .sequence = 1 };
	struct state *s;

	s = state_new();
	m.u.see_run = (struct msg_see_run){ .n_nodes = 3, .n_stages = 2, .run = 5 };
	state_apply(s, &m);
	for (uint16_t i = 0; i < 3; i++) {
		m = (struct msg){ .type = MSG_SEE_NODE, .sequence = s->stream.sequence + 1 };
		m.u.see_node = (struct msg_see_node){
			.node = i, .stage = i > 0, .state = NODE_LIVE, .memory = 2
		};
		state_apply(s, &m);
	}
	m = (struct msg){ .type = MSG_SEE_PLAN, .sequence = s->stream.sequence + 1 };
	m.u.see_plan = (struct msg_see_plan){ .epoch = 1, .n_routes = 2, .routes = routes };
	state_apply(s, &m);
	return s;
}

TEST(positions)
{
	struct state *s = two();
	const struct state_flight *f = state_flight(s, 0);
	struct msg_task_event e[] = {
		event(WORK_STARTS, TASK_FORWARD, 0, 0, 100),
		event(WORK_ENDS, TASK_FORWARD, 0, 0, 150),
		event(WORK_STARTS, TASK_FORWARD, 1, 0, 200),
		event(WORK_ENDS, TASK_FORWARD, 1, 0, 260),
		event(WORK_STARTS, TASK_LOSS, 0, 0, 300),
		event(WORK_ENDS, TASK_LOSS, 0, 0, 310),
		event(WORK_STARTS, TASK_BACKWARD, 1, 0, 400),
		event(WORK_ENDS, TASK_BACKWARD, 1, 0, 460),
		event(WORK_STARTS, TASK_BACKWARD, 0, 0, 500),
		event(WORK_ENDS, TASK_BACKWARD, 0, 0, 560),
	};
	static const uint8_t phases[] = { FLIGHT_RUNNING, FLIGHT_TRAVELLING,
					  FLIGHT_RUNNING, FLIGHT_TRAVELLING,
					  FLIGHT_RUNNING, FLIGHT_TRAVELLING,
					  FLIGHT_RUNNING, FLIGHT_TRAVELLING,
					  FLIGHT_RUNNING, FLIGHT_DONE };

	for (uint32_t i = 0; i < 10; i++) {
		apply_events(s, 1, &e[i], 1);
		assert_int_equal(f->position, i / 2);
		assert_int_equal(f->phase, phases[i]);
		assert_int_equal(f->since_us, e[i].at_us);
		assert_int_equal(s->nodes[e[i].node].running, e[i].type == WORK_STARTS);
	}
	assert_int_equal(s->nodes[0].n_segments, 3);
	assert_int_equal(state_newest(&s->nodes[0])->end_us, 560);
	assert_int_equal(state_chain_node(f, 3), 1);
	assert_int_equal(state_chain_kind(f, 2), TASK_LOSS);
	state_free(s);
}

/* The events of node 1 arrive before the last event of node 0. The microbatch must not move
 * back. */
TEST(late_events)
{
	struct state *s = two();
	const struct state_flight *f = state_flight(s, 0);
	struct msg_task_event e[] = {
		event(WORK_STARTS, TASK_FORWARD, 0, 0, 100),
		event(WORK_STARTS, TASK_FORWARD, 1, 0, 200),
		event(WORK_ENDS, TASK_FORWARD, 0, 0, 150),
	};

	apply_events(s, 1, e, 3);
	assert_int_equal(f->position, 1);
	assert_int_equal(f->phase, FLIGHT_RUNNING);
	assert_int_equal(f->chain[0].ended_us, 150);
	assert_false(s->nodes[0].running);
	state_free(s);
}

/* A console that reattaches receives the events of the current iteration again, from the start. No
 * task may be counted twice. */
TEST(whole_iteration_replaces_its_parts)
{
	struct state *s = two();
	struct msg_task_event before[] = {
		event(WORK_STARTS, TASK_FORWARD, 0, 0, 10),
		event(WORK_ENDS, TASK_FORWARD, 0, 0, 20),
	};
	struct msg_task_event e[] = {
		event(WORK_WAITS, TASK_FORWARD, 0, 0, 90),
		event(WORK_STARTS, TASK_FORWARD, 0, 0, 100),
		event(WORK_ENDS, TASK_FORWARD, 0, 0, 150),
		event(WORK_WAITS, TASK_FORWARD, 1, 0, 180),
		event(WORK_STARTS, TASK_FORWARD, 1, 0, 200),
		event(WORK_ENDS, TASK_FORWARD, 1, 0, 260),
		event(WORK_STARTS, TASK_LOSS, 0, 0, 300),
	};
	struct msg m = { .type = MSG_SEE_TASKS };

	apply_events(s, 1, before, 2);
	apply_events(s, 2, e, 5);
	assert_int_equal(s->n_collisions, 1);
	m.sequence = s->stream.sequence + 1;
	m.u.see_tasks = (struct msg_see_tasks){ 2, 1, 7, e };
	state_apply(s, &m);
	assert_int_equal(s->nodes[0].n_segments, 3);
	assert_int_equal(s->nodes[0].n_waits, 1);
	assert_int_equal(s->nodes[1].n_segments, 1);
	assert_int_equal(s->nodes[1].n_waits, 1);
	assert_int_equal(state_newest(&s->nodes[1])->end_us, 260);
	assert_false(s->nodes[1].running);
	assert_true(s->nodes[0].running);
	assert_int_equal(s->n_collisions, 1);
	assert_int_equal(s->current.collisions, 1);
	assert_int_equal(s->current.start_us, 100);
	assert_int_equal(state_flight(s, 0)->position, 2);
	assert_int_equal(s->current.previous_start_us, 10);
	state_free(s);
}

TEST(collisions)
{
	struct state *s = two();
	struct msg_task_event e[] = {
		event(WORK_STARTS, TASK_FORWARD, 1, 0, 200),
		event(WORK_WAITS, TASK_FORWARD, 1, 1, 220),
		event(WORK_WAITS, TASK_FORWARD, 0, 1, 90),
		event(WORK_ENDS, TASK_FORWARD, 1, 0, 260),
		event(WORK_STARTS, TASK_FORWARD, 1, 1, 270),
	};

	e[1].blocker = 0;
	apply_events(s, 1, e, 3);
	assert_int_equal(state_waiting(s),
			 1); /* the wait at node 0 is for a first task, which is no collision */
	assert_int_equal(s->nodes[1].queue[0].blocker, 0);
	assert_int_equal(s->current.collisions, 1);
	apply_events(s, 1, e + 3, 2);
	assert_int_equal(state_waiting(s), 0);
	assert_int_equal(s->current.wait_us, 50);
	assert_int_equal(state_collision_back(s, 0)->microbatch, 1);
	assert_null(state_collision_back(s, 1));
	/* Events of the next iteration clear queues and collisions. */
	apply_events(s, 2, e, 1);
	assert_int_equal(s->current.collisions, 0);
	assert_int_equal(s->nodes[0].n_queue, 0);
	assert_int_equal(state_flight(s, 1)->phase, FLIGHT_UNBORN);
	state_free(s);
}

TEST(reruns)
{
	struct state *s = two();
	struct msg_task_event e[] = {
		event(WORK_STARTS, TASK_FORWARD, 0, 0, 100),
		event(WORK_ENDS, TASK_FORWARD, 0, 0, 150),
		event(WORK_STARTS, TASK_FORWARD, 1, 0, 200),
		event(WORK_STARTS, TASK_FORWARD, 2, 0, 300),
		event(WORK_ENDS, TASK_FORWARD, 1, 0, 310),
	};

	e[3].attempt = 1;
	apply_events(s, 1, e, 5);
	assert_int_equal(state_flight(s, 0)->reruns, 1);
	/* Node 2 has replaced node 1, which has the same stage. */
	assert_int_equal(state_flight(s, 0)->route.nodes[1], 2);
	assert_int_equal(state_flight(s, 0)->position, 1);
	assert_int_equal(state_flight(s, 0)->phase, FLIGHT_RUNNING);
	state_free(s);
}

/* A route with a higher attempt arrives during the iteration. The microbatch continues on the new
 * node, or starts again. */
TEST(rerouted)
{
	struct state *s = two();
	struct msg_task_event e[] = {
		event(WORK_STARTS, TASK_FORWARD, 0, 0, 100),
		event(WORK_ENDS, TASK_FORWARD, 0, 0, 150),
		event(WORK_STARTS, TASK_FORWARD, 1, 0, 200),
	};
	struct route r = { .attempt = 1, .n_hops = 2, .nodes = { 0, 2 }, .stages = { 0, 1 } };
	const struct state_flight *f;

	apply_events(s, 1, e, 3);
	state_take_routes(s, &r, 1);
	f = state_flight(s, 0);
	assert_int_equal(f->reruns, 1);
	assert_int_equal(f->route.nodes[1], 2);
	assert_int_equal(f->phase, FLIGHT_TRAVELLING);
	assert_int_equal(f->position, 0);
	assert_int_equal(f->chain[0].ended_us, 150);
	assert_int_equal(f->chain[1].started_us, 0);
	e[2].type = WORK_ENDS; /* an event of node 1, which is not in the path any more */
	apply_events(s, 1, &e[2], 1);
	assert_int_equal(f->position, 0);
	e[2] = event(WORK_STARTS, TASK_FORWARD, 2, 0, 400);
	e[2].attempt = 1;
	apply_events(s, 1, &e[2], 1);
	assert_int_equal(f->position, 1);
	assert_int_equal(f->phase, FLIGHT_RUNNING);
	assert_int_equal(f->reruns, 1);
	r.nodes[0] = 3;
	r.attempt = r.since = 2;
	state_take_routes(s, &r, 1);
	assert_int_equal(f->reruns, 2);
	assert_int_equal(f->phase, FLIGHT_UNBORN);
	e[2].type = WORK_ENDS; /* an event of attempt 1, but the microbatch is in attempt 2 */
	apply_events(s, 1, &e[2], 1);
	assert_int_equal(f->phase, FLIGHT_UNBORN);
	e[0] = event(WORK_STARTS, TASK_FORWARD, 3, 0, 500);
	e[0].attempt = 2;
	apply_events(s, 1, e, 1);
	assert_int_equal(f->phase, FLIGHT_RUNNING);
	assert_int_equal(f->reruns, 2);
	state_free(s);
}

/* Attempts are counted from 0 in each iteration. */
TEST(attempts_start_at_0_in_each_iteration)
{
	struct state *s = two();
	const struct state_flight *f = state_flight(s, 0);
	struct msg_task_event again = event(WORK_STARTS, TASK_FORWARD, 0, 0, 100);
	struct msg_task_event next = event(WORK_STARTS, TASK_FORWARD, 0, 0, 900);

	again.attempt = 3;
	apply_events(s, 4, &again, 1);
	assert_true(f->begun);
	apply_events(s, 5, &next, 1);
	assert_true(f->begun);
	assert_int_equal(s->current.iteration, 5);
	state_free(s);
}

/* Microbatch 1 waits at node 1 for microbatch 0. Node 2 has the same stage and is idle. */
TEST(why_it_waits)
{
	struct state *s = two();
	struct msg_task_event e[] = {
		event(WORK_STARTS, TASK_FORWARD, 0, 0, 1000000),
		event(WORK_ENDS, TASK_FORWARD, 0, 0, 1500000),
		event(WORK_STARTS, TASK_FORWARD, 0, 1, 1500000),
		event(WORK_ENDS, TASK_FORWARD, 0, 1, 2000000),
		event(WORK_STARTS, TASK_FORWARD, 1, 0, 2000000),
		event(WORK_WAITS, TASK_FORWARD, 1, 1, 2500000),
	};
	struct msg_link links[] = { { .from = 0, .to = 1, .planned_delay_s = 1 },
				    { .from = 0, .to = 2, .measured_delay_s = 1.5f } };
	struct msg m = { .type = MSG_SEE_LINKS, .u.see_links = { 2, links } };
	const struct state_flight *f = state_flight(s, 1);
	char text[160];
	struct why w;

	for (int i = 0; i < 3; i++)
		s->nodes[i].see.forward_s = 2;
	apply_events(s, 1, e, 6);
	why_make(&w, s, f, 3000000);
	assert_true(w.waits && w.busy && w.choice && !w.full);
	assert_int_equal(w.node, 1);
	assert_int_equal(w.runs, 0);
	assert_float_equal(w.waited_s, 0.5, 1e-6);
	/* The running task takes 2 s, and 1 s of them has passed. */
	assert_float_equal(w.left_s, 1, 1e-6);
	assert_false(w.alternative); /* no link to another node is known yet */
	m.sequence = s->stream.sequence + 1;
	state_apply(s, &m);
	why_make(&w, s, f, 3000000);
	assert_true(w.alternative);
	assert_int_equal(w.other, 2);
	assert_float_equal(w.link_s, 0.5, 1e-6);
	/* Via node 2, the transfer takes 0.5 s longer, and the wait is 1.5 s shorter. */
	assert_float_equal(w.change_s, -1, 1e-6);
	why_text(&w, text);
	assert_string_equal(text, "waits 0.5s at n01: the node runs m00 F, ~1.0s more; via "
				  "n02: link +0.5s, in all -1.0s");
	s->nodes[2].see.state = NODE_DEAD;
	why_make(&w, s, f, 3000000);
	assert_false(w.alternative);
	e[5].type = WORK_STARTS;
	apply_events(s, 1, &e[5], 1);
	why_make(&w, s, f, 3000000);
	assert_false(w.waits);
	state_free(s);
}

TEST(gaps)
{
	struct state *s = two();
	struct msg m = { .type = MSG_SEE_STATUS, .sequence = s->stream.sequence + 3 };

	state_apply(s, &m);
	assert_int_equal(s->stream.gaps, 2);
	assert_true(s->stream.needs_snapshot);
	m = (struct msg){ .type = MSG_SEE_SYNCED,
			  .sequence = 1 }; /* a new controller numbers its messages from 1 */
	state_apply(s, &m);
	assert_int_equal(s->stream.gaps, 2);
	assert_false(s->stream.needs_snapshot);
	state_free(s);
}

TEST(dead_nodes)
{
	struct state *s = two();
	struct msg_task_event e = event(WORK_STARTS, TASK_FORWARD, 1, 0, 200);
	struct msg m = { .type = MSG_SEE_NODE };

	apply_events(s, 1, &e, 1);
	m.sequence = s->stream.sequence + 1;
	m.u.see_node = (struct msg_see_node){
		.node = 1, .stage = 1, .state = NODE_DEAD, .since_us = 230
	};
	state_apply(s, &m);
	assert_false(s->nodes[1].running);
	assert_int_equal(state_newest(&s->nodes[1])->end_us, 230);
	state_free(s);
}

TEST(histories)
{
	struct state *s = two();
	static const uint64_t order[] = { 3, 1, 2, 3, 5, 4 };
	uint32_t n;

	for (size_t i = 0; i < 6; i++) {
		struct msg m = { .type = MSG_SEE_ITERATION, .sequence = s->stream.sequence + 1 };

		m.u.see_iteration = (struct msg_see_iteration){ .iteration = order[i],
								.iteration_s = 11,
								.predicted_s = 10,
								.loss = (float)i };
		state_apply(s, &m);
	}
	assert_int_equal(s->history.n_iterations, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(s->history.iterations[i].iteration, i + 1);
	/* The second message about iteration 3 replaces the first one. */
	assert_true(s->history.iterations[2].loss == 3);
	assert_true(state_prediction_error(s, 100, &n) > 0.0999f);
	assert_int_equal(n, 5);
	for (uint64_t id = 1; id < STATE_NOTES + 10; id++) {
		struct msg m = { .type = MSG_SEE_NOTE, .sequence = s->stream.sequence + 1 };

		m.u.see_note = (struct msg_see_note){ .id = id, .kind = NOTE_WARNING };
		state_apply(s, &m);
	}
	assert_int_equal(s->history.n_notes, STATE_NOTES);
	assert_int_equal(s->history.notes[STATE_NOTES - 1].id, STATE_NOTES + 9);
	assert_int_equal(state_alerts(s), STATE_NOTES);
	state_free(s);
}

/* Candidates do not change the plan in force. */
TEST(candidates)
{
	struct state *s = two();
	struct msg m = { .type = MSG_SEE_PLAN };

	for (int i = 0; i < STATE_CANDIDATES + 3; i++) {
		m.sequence = s->stream.sequence + 1;
		m.u.see_plan = (struct msg_see_plan){ .epoch = 1,
						      .candidate = 1,
						      .iteration_s = (float)i };
		snprintf(m.u.see_plan.name, sizeof(m.u.see_plan.name), "c%d", i / 2 * 2);
		state_apply(s, &m);
	}
	assert_int_equal(s->n_candidates, (STATE_CANDIDATES + 3 + 1) / 2);
	/* Two messages had this name; the newer one counts. */
	assert_true(state_candidate(s, "c4")->see.iteration_s == 5);
	assert_null(state_candidate(s, "c5"));
	assert_int_equal(s->plan.n_routes, 2);
	for (int i = 0; i < 40; i++) {
		m.sequence = s->stream.sequence + 1;
		snprintf(m.u.see_plan.name, sizeof(m.u.see_plan.name), "d%d", i);
		state_apply(s, &m);
	}
	assert_int_equal(s->n_candidates, STATE_CANDIDATES);
	assert_non_null(state_candidate(s, "d39"));
	state_free(s);
}

/* At the end of the invented run, all microbatches are done, no task runs, and none waits. */
TEST(whole_run)
{
	struct stream_options o;
	struct state *s;
	uint32_t busy = 0;

	stream_defaults(&o);
	s = golden_state(&o, INT64_MAX / 4);
	assert_int_equal(s->stream.gaps, 0);
	assert_int_equal(s->current.iteration, o.past + o.live);
	assert_int_equal(s->n_flights, 30);
	for (uint32_t i = 0; i < s->n_flights; i++)
		assert_int_equal(s->flights[i].phase, FLIGHT_DONE);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		busy += s->nodes[i].running;
	assert_int_equal(busy, 0);
	assert_int_equal(state_waiting(s), 0);
	/* The console counts no more collisions than the controller has counted. */
	assert_true(s->current.collisions <=
		    s->history.iterations[s->history.n_iterations - 1].collisions);
	assert_int_equal(s->plan.n_tasks, 30 * 9);
	for (uint32_t i = 0; i < MSG_NODES; i++)
		for (uint32_t t = s->plan.first[i]; t + 1 < s->plan.first[i + 1]; t++)
			assert_true(s->plan.tasks[t].end_us <= s->plan.tasks[t + 1].start_us);
	state_free(s);
}
