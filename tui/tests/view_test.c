/* Compares every cell of the screen at fixed times of an invented run with golden files. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/record.h"
#include "tui/tests/golden.h"
#include "tui/tests/start.h"
#include "tui/views/view.h"

static const int sizes[][2] = { { 80, 24 }, { 120, 36 }, { 160, 48 } };
enum { SIZES = 3 };

static void every_size(struct state *s, struct ui *u, const char *name, enum view view)
{
	u->display.view = view;
	for (int i = 0; i < SIZES; i++)
		golden_check(s, u, name, sizes[i][0], sizes[i][1]);
}

TEST(overview)
{
	struct state *s;
	struct ui u;

	s = golden_default(&u);
	u.selection.node = 6;
	every_size(s, &u, "overview", VIEW_OVERVIEW);
	u.display.graph = GRAPH_ASCII;
	golden_check(s, &u, "overview-ascii", 80, 24);
	golden_check(s, &u, "overview-ascii", 160, 48);
	state_free(s);
}

/* Two events of one iteration have their marks at the same place of the Loss view. The mark R of a
 * return must not cover the other mark. */
TEST(the_return_of_a_stage_covers_no_other_mark)
{
	struct ui u;
	struct state *s = golden_default(&u);
	struct state_history *h = &s->history;
	uint64_t last = h->iterations[h->n_iterations - 1].iteration;
	struct screen *screen = screen_new(80, 24, false);
	char *text;

	h->n_notes = 2;
	h->notes[0] = (struct msg_see_note){ .id = 1, .iteration = last, .mark = '@', .node = -1 };
	h->notes[1] = (struct msg_see_note){ .id = 2, .iteration = last, .mark = 'R', .node = -1 };
	u.display.view = VIEW_LOSS;
	view_draw(screen, s, &u);
	text = screen_dump(screen);
	assert_non_null(strchr(text, '@'));
	free(text);
	screen_free(screen);
	state_free(s);
}

/* If a published baseline makes the plan, even a screen of 80x24 names it in its header. */
TEST(a_baseline_is_named_on_top)
{
	struct screen *screen;
	struct state *s;
	struct ui u;
	char *text;

	s = golden_default(&u);
	for (int baseline = 0; baseline < 2; baseline++) {
		if (baseline)
			snprintf(s->plan.see.algorithm, sizeof(s->plan.see.algorithm), "dtfm-skip");
		screen = screen_new(80, 24, false);
		view_draw(screen, s, &u);
		text = screen_dump(screen);
		assert_int_equal(strstr(text, "plan 7 dtfm-skip") != NULL, baseline);
		free(text);
		screen_free(screen);
	}
	state_free(s);
}

/* If other programs use the processors of a node, iterations take longer than predicted. The screen
 * must explain this. */
TEST(a_shared_machine_explains_predictions)
{
	struct screen *screen = screen_new(160, 48, false);
	struct state *s;
	struct ui u;
	char *text;

	s = golden_default(&u);
	s->nodes[2].see.waits_percent = 20;
	s->nodes[7].see.waits_percent = 45;
	view_draw(screen, s, &u);
	text = screen_dump(screen);
	assert_non_null(strstr(text, "Predicted too short: n07 waits 45% for a processor"));
	free(text);
	u.display.view = VIEW_NODES;
	u.selection.node = 2;
	view_draw(screen, s, &u);
	text = screen_dump(screen);
	assert_non_null(strstr(text, "waits 20% for a processor"));
	free(text);
	screen_free(screen);
	state_free(s);
}

/* Even the smallest screen says that a run is a rehearsal. No view shows a loss. */
TEST(a_rehearsal_is_named_on_top)
{
	struct screen *screen;
	struct state *s;
	struct ui u;
	char *text;

	s = golden_default(&u);
	s->run.rehearsal = 1000;
	for (size_t i = 0; i < s->history.n_iterations; i++)
		s->history.iterations[i].loss = NAN;
	for (int i = -1; i < SIZES; i++) {
		screen = i < 0 ? screen_new(40, 12, false)
			       : screen_new(sizes[i][0], sizes[i][1], false);
		view_draw(screen, s, &u);
		text = screen_dump(screen);
		assert_non_null(strstr(text, " REHEARSAL "));
		assert_null(strstr(text, "nan"));
		assert_null(strstr(text, "tok/s"));
		assert_null(strstr(text, "no iteration has ended"));
		assert_int_equal(strstr(text, "loss -") != NULL, i >= 0);
		free(text);
		screen_free(screen);
	}
	state_free(s);
}

/* A replay refuses commands, so no view of a replay may show their keys. */
TEST(a_replay_shows_no_keys_of_commands)
{
	static const char *const keys[] = { "change the skip ratio", "F R I act", "F fail" };
	struct ui u;
	struct state *s = golden_default(&u);

	s->current.start_us = 0; /* no task has run yet */
	for (int replay = 0; replay < 2; replay++) {
		bool found[3] = { false };

		s->run.replay = (uint8_t)replay;
		for (int view = 0; view < 2; view++) {
			struct screen *screen = screen_new(160, 48, false);
			char *text;

			u.display.view = view == 0 ? VIEW_TIMELINE : VIEW_NODES;
			view_draw(screen, s, &u);
			text = screen_dump(screen);
			for (int i = 0; i < 3; i++)
				found[i] = found[i] || strstr(text, keys[i]);
			free(text);
			screen_free(screen);
		}
		for (int i = 0; i < 3; i++)
			assert_int_equal(found[i], replay == 0);
	}
	state_free(s);
}

/* Draws the steps before the first iteration, while links are measured. */
TEST(starts)
{
	struct state *s;
	struct ui u;

	s = start_state(20, 4, false, GATHER_COMING, 7, 20, 0);
	golden_ui(&u, s, 9000000);
	every_size(s, &u, "gathering", VIEW_OVERVIEW);
	state_free(s);
	s = start_state(20, 4, false, GATHER_LINKS, 7, 20, 15);
	golden_ui(&u, s, 9000000);
	every_size(s, &u, "measuring", VIEW_OVERVIEW);
	every_size(s, &u, "measuring-links", VIEW_LINKS);
	every_size(s, &u, "measuring-nodes", VIEW_NODES);
	golden_check(s, &u, "measuring-tiny", 60, 12);
	state_free(s);
	s = start_state(6, 3, false, GATHER_LINKS, 5, 6, 0.4f);
	golden_ui(&u, s, 9000000);
	every_size(s, &u, "measuring-links-6", VIEW_LINKS);
	state_free(s);
	s = start_state(60, 4, false, GATHER_LINKS, 40, 60, 20);
	golden_ui(&u, s, 9000000);
	golden_check(s, &u, "measuring-60", 80, 24);
	u.display.view = VIEW_LINKS;
	golden_check(s, &u, "measuring-links-60", 160, 48);
	state_free(s);
	s = start_state(6, 3, false, GATHER_PLAN, 0, 0, 0);
	golden_ui(&u, s, 9000000);
	golden_check(s, &u, "planning", 80, 24);
	state_free(s);
	s = start_state(20, 4, true, GATHER_BUILD, 12, 20, 0);
	golden_ui(&u, s, 9000000);
	golden_check(s, &u, "building", 80, 24);
	state_free(s);
}

/* In a large run, a node can be found by "n07" and by "n007". */
TEST(a_node_is_found_by_either_name)
{
	static const char *const filters[] = { "n07", "n007", "7" };
	struct state *s = start_state(60, 4, false, GATHER_COMPUTE, 1, 2, 0);
	struct roster r;

	for (int k = 0; k < 3; k++) {
		roster_make(&r, s, filters[k]);
		assert_int_equal(r.n, 1);
		assert_int_equal(r.nodes[0], 7);
	}
	state_free(s);
}

/* A click selects a node that has no stage yet in exactly the cell where it is drawn. */
TEST(unplaced_nodes_are_hit)
{
	/* 20 nodes are drawn with their numbers, 60 as single characters. */
	static const uint32_t counts[] = { 20, 60 };
	struct rect at = { 3, 2, 80, 8 };

	for (int k = 0; k < 2; k++) {
		struct state *s = start_state(counts[k], 4, false, GATHER_COMPUTE, 1, 2, 0);
		uint32_t cells[60] = { 0 }, found = 0;
		struct screen *screen;
		struct roster r;
		struct ui u;

		golden_ui(&u, s, 9000000);
		u.selection.node = 17;
		roster_make(&r, s, "");
		screen = screen_new(90, 12, false);
		panel_pipeline(screen, at, s, &u, &r);
		for (int y = 0; y < 12; y++)
			for (int x = 0; x < 90; x++) {
				int node = panel_pipeline_hit(at, &r, &u, x, y);
				const struct cell *c = &screen_cells(screen)[y * 90 + x];

				if (node >= 0)
					found += !cells[node]++;
				if (c->style & STYLE_REVERSE)
					assert_int_equal(node, 17);
			}
		assert_int_equal(found, counts[k]);
		for (uint32_t i = 0; i < counts[k]; i++)
			assert_int_equal(cells[i], k ? 1 : 20);
		screen_free(screen);
		state_free(s);
	}
}

/* Without an emulated network, the screen shows the time of the sums and of the whole iteration.
 * The word EMULATED is absent. */
TEST(measured)
{
	struct stream_options o;
	struct state *s;
	struct ui u;

	stream_defaults(&o);
	o.time_scale = 1;
	s = golden_state(&o, 24300000);
	start_measured(s);
	golden_ui(&u, s, 24300000);
	every_size(s, &u, "measured", VIEW_OVERVIEW);
	every_size(s, &u, "measured-links", VIEW_LINKS);
	state_free(s);
}

/* Invented answers of a planner, for the Compare view. */
static const struct planned {
	const char *name;
	float iteration_s, wait_s, idle, sync_s;
	uint32_t collisions, visits;
} planned[] = {
	{ "best 0/6", 59.5f, 13.9f, 0.66f, 4.4f, 71, 30 },
	{ "best 1/6", 45.2f, 8.1f, 0.68f, 4.4f, 55, 24 },
	{ "best 2/6", 35.8f, 2.1f, 0.70f, 4.4f, 18, 18 },
	{ "best 3/6", 27.9f, 1.2f, 0.72f, 4.4f, 11, 12 },
	{ "best 4/6", 0, 0, 0, 0, 0, 6 },
	{ "dtfm 0/6", 81.4f, 46.0f, 0.74f, 4.4f, 103, 30 },
	{ "wire bf16", 27.2f, 1.9f, 0.65f, 4.4f, 17, 18 },
	{ "wire q8", 22.9f, 1.6f, 0.6f, 4.4f, 14, 18 },
	{ "wire q6", 0, 0, 0, 0, 0, 18 }, /* no answer has arrived */
	{ "sums q8", 35.8f, 2.1f, 0.7f, 1.2f, 18, 18 },
	{ "sums q6", 35.8f, 2.1f, 0.7f, 0.9f, 18, 18 },
	{ "sums q4", 0, 0, 0, 0, 0, 18 }, /* the controller has found no plan */
};
enum { COMPARED = sizeof(planned) / sizeof(planned[0]), COMPARED_PLANS = 6 };

/* Answers a request of the Compare view. The answer is the plan in force, but has the name of `a`,
 * and its times are stretched to the duration of `a`. */
static void answer(struct state *s, struct ui *u, const struct planned *a)
{
	uint32_t visits[6] = { 30, a->visits, a->visits, a->visits, a->visits, a->visits };
	float longer = a->iteration_s / 35.8f;
	struct msg m = { .type = MSG_SEE_PLAN, .sequence = s->stream.sequence + 1 };
	struct msg_task_event events[512];
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		for (uint32_t t = s->plan.first[i]; t < s->plan.first[i + 1] && n + 2 < 512;
		     t++) {
			struct msg_task_event e = {
				.type = WORK_STARTS,
				.kind = s->plan.tasks[t].kind,
				.node = (uint16_t)i,
				.at_us = (int64_t)((float)s->plan.tasks[t].start_us * longer)
			};

			events[n++] = e;
			e.type = WORK_ENDS;
			e.at_us = (int64_t)((float)s->plan.tasks[t].end_us * longer);
			events[n++] = e;
		}
	}
	m.u.see_plan = (struct msg_see_plan){ .epoch = s->plan.see.epoch,
					      .candidate = 1,
					      .n_stages = 6,
					      .iteration_s = a->iteration_s,
					      .wait_s = a->wait_s,
					      .sync_s = a->sync_s,
					      .collisions = a->collisions,
					      .idle_fraction = a->idle,
					      .elapsed_s = 0.9f,
					      .n_visits = 6,
					      .visits = visits,
					      .n_planned = n,
					      .planned = events };
	snprintf(m.u.see_plan.name, sizeof(m.u.see_plan.name), "%s", a->name);
	state_apply(s, &m);
	ui_take_message(u, s, &m);
}

/* Gives an answer to each request of the Compare view. */
static void compare_with(struct state *s, struct ui *u)
{
	u->compare.n = COMPARED;
	u->compare.n_plans = COMPARED_PLANS;
	u->compare.epoch = s->plan.see.epoch;
	u->compare.shown = 1;
	for (uint32_t k = 0; k < COMPARED; k++) {
		bool is_late = planned[k].iteration_s <= 0;

		snprintf(u->compare.candidates[k].name, sizeof(u->compare.candidates[k].name), "%s",
			 planned[k].name);
		u->compare.candidates[k].id = 100 + k;
		u->compare.candidates[k].asked = is_late && k != 8 ? 2 : 1;
		if (!is_late)
			answer(s, u, &planned[k]);
	}
}

/* Draws views 2 to 9 of the same state, on screens of every size. */
TEST(other_views)
{
	static const char *const names[] = { NULL,    NULL,       "nodes",
					     "links", "timeline", "microbatches",
					     "loss",  "compare",  "journal",
					     "map" };
	struct stream_options o;
	struct state *s;
	struct ui u;

	stream_defaults(&o);
	o.dead = 9;
	s = golden_state(&o, 4600000);
	golden_ui(&u, s, 4600000);
	u.selection.node = 12;
	u.selection.microbatch = 3;
	compare_with(s, &u);
	for (int v = VIEW_NODES; v < VIEWS; v++)
		every_size(s, &u, names[v], (enum view)v);
	u.display.view = VIEW_COMPARE;
	u.compare.shown = 10; /* selects the candidate "sums q6" */
	golden_check(s, &u, "compare-format", 80, 24);
	golden_check(s, &u, "compare-format", 160, 48);
	state_free(s);
}

/* The selected entry shows its whole text, even if it is the last one of a page. */
TEST(a_long_entry_of_the_journal)
{
	struct ui u;
	struct state *s = golden_default(&u);
	struct state_history *h = &s->history;

	for (h->n_notes = 0; h->n_notes < 30; h->n_notes++) {
		struct msg_see_note *n = &h->notes[h->n_notes];

		*n = (struct msg_see_note){ .id = 100 + h->n_notes, .kind = NOTE_LOG, .node = -1 };
		snprintf(n->text, sizeof(n->text),
			 "line %zu: link n06>n12 takes 7.9s where the plan has 1.9s, and the "
			 "measured bandwidth is a quarter of the planned one", h->n_notes);
	}
	u.display.view = VIEW_JOURNAL;
	u.selection.note = 100 + 29 - 2;
	golden_check(s, &u, "journal-entry", 80, 24);
	u.selection.note = 100 + 29 - 18; /* the last line of the first page */
	golden_check(s, &u, "journal-end", 80, 24);
	state_free(s);
}

/* Draws Timeline and Microbatches with a colour for each microbatch, for few and many nodes, and
 * then with a colour for each data node. */
TEST(colours)
{
	static const struct {
		uint32_t nodes, waves;
		const char *timeline, *microbatches;
	} cases[] = { { 20, 6, "colours-timeline-20", "colours-microbatches-20" },
		      { 100, 3, "colours-timeline-100", "colours-microbatches-100" },
		      { 1000, 3, "colours-timeline-1000", "colours-microbatches-1000" } };
	struct state *s;
	struct ui u;

	for (int k = 0; k < 3; k++) {
		s = golden_waves(&u, cases[k].nodes, cases[k].waves, 1300000);
		u.selection.microbatch = 7;
		ui_key(&u, s, 'C');
		u.message.text[0] = '\0';
		for (int v = VIEW_TIMELINE; v <= VIEW_MICROBATCHES; v++) {
			const char *name = v == VIEW_TIMELINE ? cases[k].timeline
							      : cases[k].microbatches;

			u.display.view = (enum view)v;
			golden_check(s, &u, name, 80, 24);
			golden_check(s, &u, name, 160, 48);
		}
		u.display.colouring = COLOUR_DATA_NODE;
		if (k == 0)
			golden_check(s, &u, "colours-data-nodes-20", 160, 48);
		state_free(s);
	}
}

/* Draws the Loss view of a long run with a given number of iterations: first the whole loss over
 * iterations, then its last quarter over tokens and over time. The y axis must fit the part that is
 * shown. */
TEST(long_loss)
{
	struct stream_options o;
	struct state *s;
	struct ui u;

	stream_defaults(&o);
	o.past = 1000;
	o.live = 1;
	s = golden_state(&o, 1300000);
	golden_ui(&u, s, 1300000);
	s->run.iterations = 5000;
	s->run.tokens_per_iteration = 16384;
	u.display.view = VIEW_LOSS;
	golden_check(s, &u, "loss-long", 160, 48);
	ui_key(&u, s, '+');
	ui_key(&u, s, '+');
	ui_key(&u, s, 'T');
	golden_check(s, &u, "loss-tokens", 160, 48);
	ui_key(&u, s, 'T');
	golden_check(s, &u, "loss-time", 160, 48);
	golden_check(s, &u, "loss-time", 80, 24);
	ui_key(&u, s, '1'); /* the zoom of the Loss view changes no other view */
	assert_int_equal(u.display.zoom, 0);
	state_free(s);
}

/* Draws the current iteration, with the what-if below it. */
TEST(what_if)
{
	struct state *s;
	struct ui u;

	s = golden_default(&u);
	ui_key(&u, s, 'B');
	ui_key(&u, s, PRESS_ARROW_RIGHT);
	golden_check(s, &u, "dialog-branch", 80, 24);
	ui_key(&u, s, PRESS_ENTER);
	golden_check(s, &u, "branch-asked", 80, 24);
	answer(s, &u, &(struct planned){ "branch 3/6", 27.9f, 1.2f, 0.72f, 4.4f, 11, 12 });
	for (int i = 0; i < SIZES; i++)
		golden_check(s, &u, "branch", sizes[i][0], sizes[i][1]);
	golden_check(s, &u, "branch-tiny", 60, 12);
	ui_fini(&u);
	state_free(s);
}

TEST(many_nodes)
{
	static const uint32_t counts[] = { 200, 1000 };
	static const char *const names[] = { "overview-200", "overview-1000" };
	struct state *s;
	struct ui u;

	for (int k = 0; k < 2; k++) {
		s = golden_waves(&u, counts[k], 3, 1300000);
		u.selection.node = 150;
		golden_check(s, &u, names[k], 80, 24);
		golden_check(s, &u, names[k], 160, 48);
		u.display.view = VIEW_LINKS;
		golden_check(s, &u, k ? "links-1000" : "links-200", 160, 48);
		state_free(s);
	}
}

/* Draws the map of links with every measure and grouping. One link was never measured. */
TEST(links)
{
	static const struct {
		const char *name;
		uint32_t nodes;
		enum link_measure measure;
		enum link_grouping grouping;
	} pictures[] = {
		{ "links-latency", 20, LINK_BY_LATENCY, LINKS_BY_NODE },
		{ "links-bandwidth-region", 20, LINK_BY_BANDWIDTH, LINKS_BY_REGION },
		{ "links-stage", 20, LINK_BY_PLAN, LINKS_BY_STAGE },
		{ "links-latency-100", 100, LINK_BY_LATENCY, LINKS_BY_NODE },
		{ "links-bandwidth-1000", 1000, LINK_BY_BANDWIDTH, LINKS_BY_REGION },
	};

	for (size_t k = 0; k < sizeof(pictures) / sizeof(pictures[0]); k++) {
		struct stream_options o;
		struct state *s;
		struct ui u;

		stream_defaults(&o);
		o.nodes = pictures[k].nodes;
		o.waves = o.nodes > 20 ? 3 : o.waves;
		s = golden_state(&o, 1300000);
		s->links[0].latency_s = s->links[0].bandwidth_bytes_per_s = 0;
		s->links[0].measured_delay_s = s->links[0].spread_s = 0;
		golden_ui(&u, s, 1300000);
		u.display.view = VIEW_LINKS;
		u.display.link_measure = pictures[k].measure;
		u.display.link_grouping = pictures[k].grouping;
		golden_check(s, &u, pictures[k].name, 80, 24);
		golden_check(s, &u, pictures[k].name, 160, 48);
		state_free(s);
	}
}

/* Draws each kind of dialog. State and ui are not reset between dialogs. */
static void dialogs(struct state *s, struct ui *u)
{
	static const char *const names[] = { "dialog-skip", "dialog-fail",   "dialog-kill",
					     "dialog-quit", "dialog-fault",  "dialog-undo",
					     "dialog-wire", "dialog-finish", "dialog-cut" };
	struct msg m = { .type = MSG_SEE_PREVIEW };

	for (int k = 0; k < 9; k++) {
		golden_ui(u, s, 1700000);
		u->selection.node = 9;
		if (k == 0)
			ui_key(u, s, 's');
		else if (k == 1)
			ui_key(u, s, 'F');
		else if (k == 2)
			ui_command(u, s, "inject kill 9");
		else if (k == 6)
			ui_command(u, s, "sum-wire q6");
		else if (k == 7)
			ui_command(u, s, "finish 500");
		else if (k == 8)
			ui_command(u, s, "cut 0,7,5");
		else
			ui_key(u, s, (uint32_t) "   qIu"[k]);
		if (k == 0)
			ui_key(u, s, '+');
		m.u.see_preview = (struct msg_see_preview){ .command = u->dialog.preview_id,
							    .feasible = 1,
							    .iteration = 43,
							    .before_iteration_s = 33.3f,
							    .after_iteration_s = 28.9f,
							    .before_sync_s = k == 6 ? 9.5f : 0,
							    .after_sync_s = k == 6 ? 2.25f : 0,
							    .before_wait_s = 2.1f,
							    .after_wait_s = 0.6f,
							    .before_peak_slots = 3,
							    .after_peak_slots = 3,
							    .memory = 3,
							    .least_stage = 5,
							    .before_least_visits = 9,
							    .after_least_visits = 5,
							    .paths_changed = 30,
							    .median_error = 0.02f,
							    .n_predictions = 31 };
		if (k == 7)
			snprintf(m.u.see_preview.text, sizeof(m.u.see_preview.text),
				 "the rate falls from it43 to it542; the run ends in 4.6 h; "
				 "training loss 1.24 to 1.33 expected");
		if (k == 8) {
			m.u.see_preview.verb = COMMAND_CUT;
			m.u.see_preview.n_predictions = 0; /* only plans have predictions */
			snprintf(m.u.see_preview.text, sizeof(m.u.see_preview.text),
				 "layers 4,4,4 -> 0,7,5; 2 of 6 nodes get other layers: n02 n04; "
				 "files: 1.9 MB to the controller, 3.8 MB from it");
		}
		ui_take_message(u, s, &m);
		golden_check(s, u, names[k], 80, 24);
	}
}

/* Draws the Nodes view with agents on GPUs and agents on CPUs. One agent has died. */
TEST(gpus_are_shown)
{
	struct stream_options o;
	struct state *s;
	struct ui u;

	stream_defaults(&o);
	o.gpus = 17;
	o.dead = 9;
	s = golden_state(&o, 4600000);
	golden_ui(&u, s, 4600000);
	u.selection.node = 1;
	every_size(s, &u, "nodes-gpu", VIEW_NODES);
	state_free(s);
}

/* With prices, the header, the selected node and the dialogs show costs. */
TEST(costs_are_shown)
{
	static const char prices[] = "{\"n09\": 2.5, \"Oregon\": 1.25, \"others\": 0.75}";
	struct msg m = { .type = MSG_SEE_PREVIEW };
	struct state *s;
	struct ui u;

	s = golden_default(&u);
	s->run.tokens_per_iteration = 16384;
	assert_int_equal(prices_parse(&u.prices, "prices", prices, NULL), 0);
	u.selection.node = 9;
	u.display.view = VIEW_NODES;
	golden_check(s, &u, "nodes-price", 80, 24);
	golden_check(s, &u, "nodes-price", 160, 48);
	ui_key(&u, s, 'F');
	m.u.see_preview = (struct msg_see_preview){ .command = u.dialog.preview_id,
						    .feasible = 1,
						    .iteration = 43,
						    .before_iteration_s = 33.3f,
						    .after_iteration_s = 36.9f,
						    .memory = 3,
						    .paths_changed = 12 };
	ui_take_message(&u, s, &m);
	golden_check(s, &u, "dialog-fail-price", 80, 24);
	state_free(s);
}

/* Draws windows over a view, and messages about problems. */
TEST(overlays)
{
	struct stream_options o;
	struct state *s;
	struct ui u;

	stream_defaults(&o);
	s = golden_state(&o, 1700000);
	s->n_faults = 1;
	s->faults[0] = (struct msg_see_fault){
		31, FAULT_SLOW_LINK, 1, 6, 12, 4, s->status.now_us + 41000000
	};
	dialogs(s, &u);
	golden_ui(&u, s, 1700000);
	ui_key(&u, s, '?');
	golden_check(s, &u, "help", 80, 24);
	golden_check(s, &u, "help", 160, 48);
	ui_key(&u, s, 'q');
	assert_false(u.display.help_page || u.requests.quit);
	ui_key(&u, s, ':');
	ui_key(&u, s, 'h');
	golden_check(s, &u, "palette", 80, 24);
	ui_key(&u, s, PRESS_ESCAPE);
	ui_key(&u, s, ':');
	for (int i = 0; i < 3; i++)
		ui_key(&u, s, PRESS_ARROW_DOWN);
	golden_check(s, &u, "palette", 160, 48);
	ui_key(&u, s, PRESS_ESCAPE);
	ui_key(&u, s, 'f');
	golden_check(s, &u, "follow", 80, 24);
	golden_check(s, &u, "follow", 120, 36);
	golden_check(s, &u, "follow", 160, 48);
	golden_check(s, &u, "tiny", 60, 12);
	golden_check(s, &u, "tiny", 20, 5);
	golden_check(s, &u, "tiny", 1, 1);
	ui_set_connection(&u, UI_LOST, "the controller is silent; trying to reconnect");
	ui_tick(&u, s, u.clock.local_us + 9000000, u.clock.wall_us + 9000000);
	golden_check(s, &u, "lost", 80, 24);
	state_free(s);
	s = state_new();
	golden_ui(&u, s, 1700000);
	ui_set_connection(
		&u, UI_REFUSED,
		"not admitted; where the controller is: skippipe admit LIST 0123456789abcdef"
		"0123456789abcdef0123456789abcdef0123456789abcdef --role console --name NAME");
	golden_check(s, &u, "refused", 80, 24);
	state_free(s);
}

static void keep(void *context, int64_t at_us, const struct msg *m)
{
	size_t size = msg_size(m);
	void *data = malloc(size);

	assert_int_equal(msg_encode(m, data, size), (long)size);
	assert_int_equal(record_write(context, at_us, data, size), 0);
	free(data);
}

/* A picture made from a recording equals the picture of the run itself. If STREAM_KEEP=FILE is set,
 * the test checks nothing, and writes a recording of STREAM_NODES nodes to FILE, for
 * `skippipe-console --play FILE`. */
TEST(recorded)
{
	const char *path = getenv("STREAM_KEEP"), *nodes = getenv("STREAM_NODES");
	struct record_reader *r;
	struct stream_options o;
	struct state *s;
	struct ui u;
	struct msg m;
	FILE *f;
	char *data;
	const void *bytes;
	size_t size, n;
	int64_t at;

	stream_defaults(&o);
	if (path) {
		o.live = 60;
		o.nodes = nodes ? (uint32_t)atoi(nodes) : o.nodes;
		o.dead = 9;
		f = fopen(path, "w");
		assert_non_null(f);
		stream_run(&o, keep, f);
		fclose(f);
		return;
	}
	f = open_memstream(&data, &size);
	assert_true(stream_run(&o, keep, f) > 0);
	fclose(f);
	r = record_open_memory(data, size);
	s = state_new();
	while (record_next_at(r, &at) == 0 && at <= STREAM_START_US + 1700000) {
		assert_int_equal(record_next(r, &at, &bytes, &n), 0);
		assert_int_equal(msg_decode(&m, bytes, n), 0);
		state_apply(s, &m);
		msg_clear(&m);
	}
	golden_ui(&u, s, 1700000);
	u.selection.node = 6;
	golden_check(s, &u, "overview", 80, 24);
	state_free(s);
	record_close(r);
	free(data);
}
