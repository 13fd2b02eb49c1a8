/* Tests keys and commands: commands need a confirmation, none is sent without the lease, and no
 * event breaks the console. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "tui/input/branch.h"
#include "tui/run/notes.h"
#include "tui/tests/golden.h"
#include "tui/views/view.h"

static void reply(struct ui *u, const struct state *s, uint64_t id, int status,
		  const char *text)
{
	struct msg m = { .type = MSG_SEE_REPLY };

	m.u.see_reply.command = id;
	m.u.see_reply.status = status;
	snprintf(m.u.see_reply.text, sizeof(m.u.see_reply.text), "%s", text);
	ui_take_message(u, s, &m);
}

static void keys(struct ui *u, const struct state *s, const char *text)
{
	for (; *text; text++)
		ui_key(u, s, (uint32_t)(unsigned char)*text);
}

/* The first command waits until the controller grants the lease. Later commands are sent at
 * once. */
TEST(lease)
{
	struct ui u;
	struct state *s = golden_default(&u);
	struct msg m = { .type = MSG_SEE_SYNCED };

	snprintf(m.u.see_synced.name, sizeof(m.u.see_synced.name), "operator");
	ui_take_message(&u, s, &m);
	keys(&u, s, "P");
	assert_int_equal(u.outbox.n, 1);
	assert_int_equal(u.outbox.commands[0].verb, COMMAND_ARM);
	reply(&u, s, u.outbox.commands[0].id, 0, "armed");
	assert_int_equal(u.outbox.n, 2);
	assert_int_equal(u.outbox.commands[1].verb, COMMAND_PAUSE);
	snprintf(s->status.lease, sizeof(s->status.lease), "operator");
	s->status.lease_us = 600000000;
	assert_true(ui_has_lease(&u, s));
	u.outbox.n = 0;
	keys(&u, s, "X");
	assert_int_equal(u.outbox.n, 1);
	assert_int_equal(u.outbox.commands[0].verb, COMMAND_HEAL_ALL);
	state_free(s);
}

/* While a replay is stopped, time passes but the replay's cursor stays. The key [ must therefore
 * seek to a time before the cursor, even 0.8 s after the controller's newest status. */
TEST(a_stopped_replay_stands_still)
{
	struct ui u;
	struct state *s = golden_default(&u);

	s->run.replay = s->status.paused = true;
	ui_tick(&u, s, u.clock.local_us, u.clock.wall_us);
	ui_tick(&u, s, u.clock.local_us + 800000, u.clock.wall_us + 800000);
	keys(&u, s, "[");
	assert_int_equal(u.outbox.n, 1);
	assert_int_equal(u.outbox.commands[0].verb, COMMAND_SEEK);
	assert_true(u.outbox.commands[0].value < s->status.now_us);
	state_free(s);
}

TEST(lease_refused)
{
	struct ui u;
	struct state *s = golden_default(&u);
	struct msg m = { .type = MSG_SEE_SYNCED };

	snprintf(s->status.lease, sizeof(s->status.lease), "other");
	s->status.lease_us = 600000000;
	keys(&u, s, "X");
	assert_int_equal(u.outbox.n, 1);
	assert_int_equal(u.outbox.commands[0].verb, COMMAND_ARM);
	reply(&u, s, u.outbox.commands[0].id, -EBUSY, "other holds the lease for another 600 s");
	assert_int_equal(u.outbox.n, 1); /* the command that waited for the lease is dropped */
	assert_non_null(strstr(u.message.text, "other holds"));
	assert_false(u.authority.has_waiting);
	u.outbox.n = 0;
	/* k = 0: --readonly; k = 1: the console's key may only watch. */
	for (int k = 0; k < 2; k++) {
		u.authority.readonly = k == 0;
		m.u.see_synced.watches = k == 1;
		ui_take_message(&u, s, &m);
		keys(&u, s, "XP.asFRIHu");
		assert_int_equal(u.outbox.n, 0);
		assert_int_equal(u.dialog.kind, DIALOG_NONE);
		assert_non_null(strstr(u.message.text, "watch"));
	}
	m.u.see_synced.watches = 0;
	ui_take_message(&u, s, &m);
	u.authority.readonly = true;
	s->run.replay = 1; /* in a replay, a console that only watches may pause and step */
	keys(&u, s, "P.");
	assert_int_equal(u.outbox.n, 2);
	u.authority.readonly = false;
	s->run.replay = 0;
	ui_set_connection(&u, UI_LOST, "");
	u.outbox.n = 0;
	keys(&u, s, "XP.");
	assert_int_equal(u.outbox.n, 0);
	assert_non_null(strstr(u.message.text, "cannot be reached"));
	/* The message gives --readonly as the reason even if the connection is lost. */
	u.authority.readonly = true;
	keys(&u, s, "X");
	assert_non_null(strstr(u.message.text, "watch"));
	state_free(s);
}

/* The key C goes through all colourings, shows the name of each, and returns to the first. */
TEST(colours_change)
{
	static const char *const says[] = { "microbatches apart", "data nodes", "kinds of tasks" };
	struct ui u;
	struct state *s = golden_default(&u);

	for (int i = 0; i < 3; i++) {
		keys(&u, s, "C");
		assert_int_equal(u.display.colouring, (i + 1) % COLOURINGS);
		assert_non_null(strstr(u.message.text, says[i]));
	}
	assert_int_equal(u.outbox.n, 0);
	state_free(s);
}

/* In the Map view, j and k select microbatches, and Tab selects nodes. */
TEST(the_map_selects)
{
	struct ui u;
	struct state *s = golden_default(&u);

	keys(&u, s, "9jjk");
	assert_int_equal(u.display.view, VIEW_MAP);
	assert_int_equal(u.selection.microbatch, 1);
	assert_int_equal(u.selection.node, 0);
	ui_key(&u, s, PRESS_TAB);
	assert_int_equal(u.selection.microbatch, 1);
	assert_int_equal(u.selection.node, 1);
	ui_command(&u, s, "view loss");
	ui_command(&u, s, "view map");
	assert_int_equal(u.display.view, VIEW_MAP);
	ui_key(&u, s, PRESS_ENTER);
	assert_true(u.selection.following && u.display.view == VIEW_OVERVIEW);
	state_free(s);
}

/* The timeline and the Loss view have separate zooms. Three presses of T go once through the axes
 * of the loss. */
TEST(loss_is_zoomed)
{
	struct ui u;
	struct state *s = golden_default(&u);

	keys(&u, s, "6++-TT4+");
	assert_int_equal(u.display.loss_zoom, 1);
	assert_int_equal(u.display.zoom, 1);
	assert_int_equal(u.display.loss_axis, LOSS_BY_TIME);
	keys(&u, s, "T6-----");
	assert_int_equal(u.display.loss_axis, LOSS_BY_ITERATION);
	assert_int_equal(u.display.loss_zoom, 0);
	state_free(s);
}

/* In the Links view, v goes through the measures and V through the groupings. V skips a grouping
 * that would draw the same map. */
TEST(links_are_measured_and_grouped)
{
	struct ui u;
	struct state *s = golden_default(&u);

	keys(&u, s, "3vV");
	assert_int_equal(u.display.link_measure, LINK_BY_LATENCY);
	assert_int_equal(u.display.link_grouping, LINKS_BY_REGION);
	assert_non_null(strstr(u.message.text, "by region"));
	keys(&u, s, "vVvV");
	assert_int_equal(u.display.link_measure, LINK_BY_PLAN);
	assert_int_equal(u.display.link_grouping, LINKS_BY_NODE);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		s->nodes[i].see.location[0] = '\0';
	keys(&u, s, "V");
	assert_non_null(strstr(u.message.text, "by stage"));
	keys(&u, s, "V");
	assert_non_null(strstr(u.message.text, "by node"));
	assert_int_equal(u.outbox.n, 0);
	state_free(s);
}

/* Enter has no effect right after a dialog was opened, because the focus is on Cancel. */
TEST(cancel_is_first)
{
	struct state *s = golden_default(NULL);
	struct ui u;
	static const char opens[] = "sFu";

	for (const char *k = opens; *k; k++) {
		golden_ui(&u, s, 1700000);
		ui_key(&u, s, (uint32_t)*k);
		assert_int_not_equal(u.dialog.kind, DIALOG_NONE);
		ui_key(&u, s, PRESS_ENTER);
		assert_int_equal(u.dialog.kind, DIALOG_NONE);
		assert_string_equal(u.message.text, "cancelled: nothing was changed");
		for (uint32_t i = 0; i < u.outbox.n; i++)
			assert_string_equal(u.outbox.commands[i].text, "preview");
	}
	golden_ui(&u, s, 1700000);
	ui_command(&u, s, "inject hang 3");
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.outbox.n, 0);
	u.authority.owner = true;
	keys(&u, s, "q");
	ui_key(&u, s, PRESS_ENTER);
	assert_false(u.requests.quit);
	state_free(s);
}

TEST(skip_ratio)
{
	struct ui u;
	struct state *s = golden_default(&u);
	struct msg m = { .type = MSG_SEE_PREVIEW };
	uint64_t first;

	ui_command(&u, s, "skip 4");
	assert_int_equal(u.dialog.fields[0].value, 4);
	first = u.dialog.preview_id;
	ui_key(&u, s, PRESS_ARROW_DOWN);
	assert_int_equal(u.dialog.fields[0].value, 3);
	assert_int_equal(u.outbox.commands[u.outbox.n - 1].value, 3);
	assert_string_equal(u.outbox.commands[u.outbox.n - 1].text, "preview");
	m.u.see_preview.command = first; /* a late answer to an earlier request is ignored */
	ui_take_message(&u, s, &m);
	assert_false(u.dialog.has_preview);
	m.u.see_preview.command = u.dialog.preview_id;
	ui_take_message(&u, s, &m);
	assert_true(u.dialog.has_preview);
	u.outbox.n = 0;
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.outbox.commands[0].verb, COMMAND_ARM);
	assert_int_equal(u.authority.waiting.verb, COMMAND_SKIP);
	assert_int_equal(u.authority.waiting.value, 3);
	assert_string_equal(u.authority.waiting.text, "");
	state_free(s);
}

/* The operator types a format, or moves to one with the arrows. Each new value requests one
 * preview. */
TEST(formats)
{
	struct ui u;
	struct state *s = golden_default(&u);

	ui_command(&u, s, "wire q6");
	assert_int_equal(u.dialog.kind, DIALOG_WIRE);
	assert_int_equal(u.outbox.n, 1);
	assert_int_equal(u.outbox.commands[0].verb, COMMAND_WIRE);
	assert_int_equal(u.outbox.commands[0].value, FORMAT_Q6);
	assert_string_equal(u.outbox.commands[0].text, "preview");
	ui_key(&u, s, PRESS_ARROW_RIGHT); /* no effect: q6 is the last format */
	assert_int_equal(u.outbox.n, 1);
	ui_key(&u, s, PRESS_ARROW_LEFT);
	assert_int_equal(u.outbox.commands[1].value, FORMAT_Q8);
	keys(&u, s, "2"); /* digits do not change a format */
	assert_int_equal(u.outbox.n, 2);
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.authority.waiting.verb, COMMAND_WIRE);
	assert_int_equal(u.authority.waiting.value, FORMAT_Q8);
	ui_command(&u, s, "sum-wire bf16"); /* not a format for sums, so no dialog opens */
	assert_int_equal(u.dialog.kind, DIALOG_NONE);
	ui_command(&u, s, "sum-wire q4");
	assert_int_equal(u.dialog.kind, DIALOG_SUM_WIRE);
	assert_int_equal(u.outbox.commands[u.outbox.n - 1].verb, COMMAND_SUM_WIRE);
	assert_int_equal(u.outbox.commands[u.outbox.n - 1].value, FORMAT_Q4);
	ui_command(&u, s, "wire fp32"); /* the format in force; nothing would change */
	assert_int_equal(u.dialog.preview_id, 0);
	state_free(s);
}

/* Before the operator orders other stages, the dialog shows a preview of them. */
TEST(cut)
{
	struct ui u;
	struct state *s = golden_default(&u);
	char long_text[128] = "cut ";

	ui_command(&u, s, "cut 0,7,5");
	assert_int_equal(u.dialog.kind, DIALOG_CUT);
	assert_int_equal(u.outbox.commands[u.outbox.n - 1].verb, COMMAND_CUT);
	assert_string_equal(u.outbox.commands[u.outbox.n - 1].text, "preview 0,7,5");
	ui_key(&u, s, PRESS_ENTER); /* Cancel has the focus */
	assert_int_equal(u.dialog.kind, DIALOG_NONE);
	assert_false(u.authority.has_waiting);
	ui_command(&u, s, "cut 0,7,5");
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.authority.waiting.verb, COMMAND_CUT);
	assert_string_equal(u.authority.waiting.text, "0,7,5");

	ui_command(&u, s, "cut"); /* no numbers: the stages that the controller proposed */
	assert_string_equal(u.outbox.commands[u.outbox.n - 1].text, "preview");
	ui_key(&u, s, PRESS_ESCAPE);
	for (size_t i = 4; i < sizeof(long_text) - 1; i++)
		long_text[i] = '1';
	ui_command(&u, s, long_text);
	assert_int_equal(u.dialog.kind, DIALOG_NONE);
	state_free(s);
}

/* `finish N` requests a preview for each number of iterations. `finish 0` withdraws the order. */
TEST(finish)
{
	struct ui u;
	struct state *s = golden_default(&u);
	const struct msg_command *last;

	ui_command(&u, s, "finish 500");
	assert_int_equal(u.dialog.kind, DIALOG_FINISH);
	last = &u.outbox.commands[u.outbox.n - 1];
	assert_int_equal(last->verb, COMMAND_FINISH);
	assert_int_equal(last->value, 500);
	assert_string_equal(last->text, "preview");
	ui_key(&u, s, PRESS_BACK_TAB); /* from Cancel to the field */
	keys(&u, s, "1");
	assert_int_equal(u.outbox.commands[u.outbox.n - 1].value, 5001);
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.authority.waiting.verb, COMMAND_FINISH);
	assert_int_equal(u.authority.waiting.value, 5001);
	assert_string_equal(u.authority.waiting.text, "");

	ui_command(&u, s, "finish half");
	assert_int_equal(u.dialog.kind, DIALOG_NONE);
	ui_command(&u, s, "finish 0");
	assert_int_equal(u.dialog.kind, DIALOG_NONE);
	assert_int_equal(u.authority.waiting.value, 0);
	/* Without a number, the dialog proposes a quarter of the committed iterations. */
	ui_command(&u, s, "finish");
	assert_int_equal(u.dialog.kind, DIALOG_FINISH);
	assert_int_equal(u.dialog.fields[0].value, s->status.committed / 4);
	state_free(s);
}

/* The largest skip ratio is what the controller accepts: all stages but stage 0. */
TEST(all_but_one_may_be_skipped)
{
	struct ui u;
	struct state *s = golden_default(&u);
	int most = (int)s->run.n_stages - 1;
	char text[32];

	snprintf(text, sizeof(text), "skip %d", most);
	ui_command(&u, s, text);
	assert_int_equal(u.dialog.fields[0].value, most);
	assert_string_equal(u.outbox.commands[u.outbox.n - 1].text, "preview");
	ui_key(&u, s, PRESS_ARROW_UP);
	assert_int_equal(u.dialog.fields[0].value, most);
	state_free(s);
}

/* The share of microbatches that skip is the dialog's second field. The command sends stages and
 * share as one number. */
TEST(skip_share)
{
	struct ui u;
	struct state *s = golden_default(&u);

	ui_command(&u, s, "skip 30%:2");
	assert_int_equal(u.dialog.fields[0].value, 2);
	assert_int_equal(u.dialog.fields[1].value, 30);
	assert_int_equal(u.outbox.commands[u.outbox.n - 1].value, skip_share_pack(30, 2));
	ui_key(&u, s, PRESS_ESCAPE);
	keys(&u, s, "s");
	ui_key(&u, s, PRESS_BACK_TAB);
	keys(&u, s, "40");
	assert_int_equal(u.outbox.commands[u.outbox.n - 1].value, skip_share_pack(40, 2));
	ui_key(&u, s, PRESS_ESCAPE);
	ui_command(&u, s, "skip 0%:2");
	assert_int_equal(u.dialog.kind, DIALOG_NONE);
	state_free(s);
}

/* The keys of each pair raise and lower the skip ratio. A return to the ratio in force requests no
 * preview. */
TEST(skip_arrows)
{
	static const uint32_t more[] = { PRESS_ARROW_RIGHT, PRESS_ARROW_UP, '+' };
	static const uint32_t less[] = { PRESS_ARROW_LEFT, PRESS_ARROW_DOWN, '-' };
	struct state *s = golden_default(NULL);
	struct ui u;

	for (int i = 0; i < 3; i++) {
		golden_ui(&u, s, 1700000);
		keys(&u, s, "s");
		assert_int_equal(u.outbox.n, 0);
		ui_key(&u, s, more[i]);
		assert_int_equal(u.dialog.fields[0].value, 3);
		assert_int_equal(u.outbox.n, 1);
		ui_key(&u, s, less[i]);
		assert_int_equal(u.dialog.fields[0].value, 2);
	}
	state_free(s);
}

/* The third button of the skip dialog draws a what-if. */
TEST(skip_as_what_if)
{
	struct ui u;
	struct state *s = golden_default(&u);

	keys(&u, s, "s+");
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.dialog.kind, DIALOG_NONE);
	/* One command requests the preview, the other one the what-if. Neither changes the run. */
	assert_int_equal(u.outbox.n, 2);
	assert_int_equal(u.outbox.commands[1].verb, COMMAND_COMPARE);
	assert_int_equal(u.outbox.commands[1].value, 3);
	assert_true(u.branch.open);
	ui_fini(&u);
	state_free(s);
}

static void answer_branch(struct ui *u, const struct state *s, const char *name, float took)
{
	struct msg_task_event e[] = { { .type = WORK_STARTS, .node = 3, .at_us = 5 },
				      { .type = WORK_ENDS, .node = 3, .at_us = 9 } };
	struct msg m = { .type = MSG_SEE_PLAN };

	m.u.see_plan = (struct msg_see_plan){
		.candidate = 1, .n_stages = 6, .iteration_s = took, .n_planned = 2, .planned = e
	};
	snprintf(m.u.see_plan.name, sizeof(m.u.see_plan.name), "%s", name);
	ui_take_message(u, s, &m);
}

/* The Compare view requests a plan for every format that is not in use, after all other plans. When
 * a format in use changes, it requests the plans again. */
TEST(formats_are_compared)
{
	static const char *const asked[] = { "wire fp32", "wire bf16", "wire q6",
					     "sum-wire fp32", "sum-wire q8", "sum-wire q4" };
	struct ui u;
	struct state *s = golden_default(&u);
	uint32_t at;

	s->status.wire = FORMAT_Q8;
	s->status.sum_wire = FORMAT_Q6;
	u.display.view = VIEW_COMPARE;
	for (int k = 0; k < 40; k++) {
		u.clock.local_us += 4000000;
		u.outbox.n = 0;
		ui_ask_candidates(&u, s);
		at = u.compare.n_plans + (uint32_t)k / 2 - 6;
		/* Five skip ratios and a baseline come first, twice each, because no answer
		 * arrives. */
		if (k < 12)
			continue;
		assert_int_equal(u.outbox.n, k < 24);
		if (k >= 24)
			continue;
		assert_string_equal(u.outbox.commands[0].text, asked[k / 2 - 6]);
		assert_int_equal(u.compare.candidates[at].id, u.outbox.commands[0].id);
	}
	assert_string_equal(u.compare.candidates[u.compare.n - 1].name, "sums q4");
	s->status.sum_wire = FORMAT_Q4;
	ui_ask_candidates(&u, s);
	assert_int_equal(u.outbox.n, 1);
	assert_string_equal(u.compare.candidates[u.compare.n - 1].name, "sums q6");
	ui_fini(&u);
	state_free(s);
}

/* Enter opens the dialog of the selected candidate, with the candidate's value and a preview. */
TEST(a_candidate_is_applied)
{
	struct ui u;
	struct state *s = golden_default(&u);

	u.display.view = VIEW_COMPARE;
	ui_act(&u, s, ACTION_DRILL);
	/* No candidate is listed before ui_ask_candidates. */
	assert_int_equal(u.dialog.kind, DIALOG_NONE);
	ui_ask_candidates(&u, s);
	u.compare.shown = 3;
	ui_act(&u, s, ACTION_DRILL);
	assert_int_equal(u.dialog.kind, DIALOG_SKIP);
	assert_int_equal(u.dialog.fields[0].value, 3);
	u.dialog.kind = DIALOG_NONE;
	u.compare.shown = u.compare.n_plans - 1;
	ui_act(&u, s, ACTION_DRILL);
	assert_int_equal(u.dialog.kind, DIALOG_NONE);
	u.compare.shown = u.compare.n - 1;
	ui_act(&u, s, ACTION_DRILL);
	assert_int_equal(u.dialog.kind, DIALOG_SUM_WIRE);
	assert_string_equal(u.compare.candidates[u.compare.shown].text, "sum-wire q4");
	assert_int_equal(dialog_format(DIALOG_SUM_WIRE, u.dialog.fields[0].value), FORMAT_Q4);
	assert_string_equal(u.outbox.commands[u.outbox.n - 1].text, "preview");
	ui_fini(&u);
	state_free(s);
}

/* The plan in force changes often. Candidates that never had an answer come before candidates
 * whose answer is outdated. */
TEST(candidates_without_an_answer_come_first)
{
	struct msg m = { .type = MSG_SEE_PLAN };
	struct ui u;
	struct state *s = golden_default(&u);

	m.sequence = s->stream.sequence + 1;
	m.u.see_plan = (struct msg_see_plan){ .candidate = 1, .n_stages = 6, .name = "best 0/6" };
	state_apply(s, &m);
	assert_int_equal(s->n_candidates, 1);
	ui_ask_candidates(&u, s);
	assert_int_equal(u.outbox.n, 1);
	assert_int_equal(u.outbox.commands[0].value, 1);
	for (uint32_t k = 1; k < u.compare.n; k++)
		u.compare.candidates[k].asked = 2;
	u.clock.local_us += 4000000;
	ui_ask_candidates(&u, s);
	assert_int_equal(u.outbox.n, 2);
	assert_int_equal(u.outbox.commands[1].value, 0);
	assert_string_equal(u.outbox.commands[1].text, "best");
	ui_fini(&u);
	state_free(s);
}

/* A what-if needs no lease, works in the past, and is allowed to a console that only watches. */
TEST(branching)
{
	struct ui u;
	struct state *s = golden_default(&u);
	struct msg m = { .type = MSG_SEE_REPLY };

	u.authority.readonly = true;
	u.display.view = VIEW_LINKS;
	keys(&u, s, "B");
	ui_key(&u, s, PRESS_ARROW_RIGHT);
	ui_key(&u, s, PRESS_TAB);
	keys(&u, s, "9");
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.outbox.n, 1);
	assert_int_equal(u.outbox.commands[0].verb, COMMAND_COMPARE);
	assert_int_equal(u.outbox.commands[0].value, 3);
	assert_int_equal(u.outbox.commands[0].node, 9);
	assert_string_equal(u.outbox.commands[0].text, "branch");
	assert_int_equal(u.display.view, VIEW_TIMELINE);
	answer_branch(&u, s, "branch 3/6", 20);
	assert_null(branch_plan(&u));
	answer_branch(&u, s, "branch 3/6 -n09", 30);
	assert_non_null(branch_plan(&u));
	assert_int_equal(branch_plan(&u)->n_tasks, 1);
	keys(&u, s, "B");
	assert_null(branch_plan(&u));
	assert_int_equal(u.display.view, VIEW_LINKS);

	u.clock.behind_us = 5000000;
	s->nodes[4].see.state = NODE_DEAD;
	ui_command(&u, s, "branch 1");
	assert_int_equal(u.outbox.n, 2);
	assert_string_equal(u.outbox.commands[1].text, "branch 4");
	m.u.see_reply =
		(struct msg_see_reply){ .command = u.outbox.commands[1].id, .status = -EINVAL };
	snprintf(m.u.see_reply.text, sizeof(m.u.see_reply.text), "stage 2 has nobody");
	ui_take_message(&u, s, &m);
	assert_string_equal(u.branch.refused, "stage 2 has nobody");
	ui_key(&u, s, PRESS_ESCAPE);
	assert_false(u.branch.open);
	s->nodes[4].see.state = NODE_LIVE;
	ui_command(&u, s, "branch 1");
	assert_string_equal(u.outbox.commands[2].text, "branch -");
	for (uint32_t i = 0; i < s->n_nodes; i++)
		s->nodes[i].see.state = NODE_DEAD;
	for (uint32_t i = s->n_nodes; i < 60; i++)
		s->nodes[i].known = true;
	s->n_nodes = 60;
	ui_command(&u, s, "branch 1");
	/* The list of absent nodes is too long for a command, so no what-if is sent. */
	assert_int_equal(u.outbox.n, 3);
	ui_fini(&u);
	state_free(s);
}

/* A selected journal entry stays selected while new entries arrive. The key u undoes the command
 * that the selected entry records. */
TEST(journal)
{
	struct ui u;
	struct state *s = golden_default(&u);
	struct msg m = { .type = MSG_SEE_NOTE };
	struct msg_see_note *n = &m.u.see_note;

	for (uint64_t id = 1001; id <= 1004; id++) {
		*n = (struct msg_see_note){ .id = id, .kind = NOTE_EVENT };
		if (id == 1002)
			n->kind = NOTE_COMMAND, n->command = 7;
		snprintf(n->text, sizeof(n->text), "note %d", (int)id);
		state_apply(s, &m);
	}
	keys(&u, s, "8jj");
	assert_int_equal(u.selection.note, 1002);
	n->id = 1005;
	state_apply(s, &m);
	keys(&u, s, "u");
	assert_int_equal(u.dialog.kind, DIALOG_UNDO);
	assert_int_equal(u.outbox.commands[0].value, 7);
	assert_string_equal(u.dialog.undo_text, "note 1002");
	ui_key(&u, s, PRESS_ESCAPE);
	keys(&u, s, "ku");
	assert_int_equal(u.dialog.kind, DIALOG_NONE); /* the entry is an event, not a command */
	keys(&u, s, "1u");
	/* Outside the journal, `u` undoes the last command. */
	assert_int_equal(u.outbox.commands[1].value, 0);
	ui_key(&u, s, PRESS_ESCAPE);
	keys(&u, s, "8g");
	assert_int_equal(u.selection.note, 0);
	snprintf(u.selection.filter, sizeof(u.selection.filter), "command");
	keys(&u, s, "j");
	/* The key j selects only entries that match the filter, and entry 1004 does not. */
	assert_int_not_equal(u.selection.note, 1004);
	state_free(s);
}

/* The journal's filter consists of words: a node, a level or any text. An entry must match all of
 * them. */
TEST(journal_is_filtered_by_node_and_level)
{
	static const struct {
		const char *filter;
		uint64_t id[2]; /* ids of the entries that match, newest first; 0: no further one */
	} cases[] = {
		{ "n07", { 3, 1 } },          { "n07 warning", { 1 } },
		{ "WARNING slow", { 2, 1 } }, { "n07 event slow", { 0 } },
		{ " slow  n07 ", { 1 } },     { "n7", { 0 } },
		{ "agent", { 4 } },           { "n12 warning", { 4, 2 } },
		{ "n007", { 3, 1 } },
	};
	struct state *s = state_new();
	struct msg m = { .type = MSG_SEE_NOTE };

	for (uint64_t i = 0; i < 4; i++) {
		m.sequence = i + 1;
		m.u.see_note = (struct msg_see_note){ .id = i + 1,
						      .kind = i < 2   ? NOTE_WARNING
							      : i < 3 ? NOTE_EVENT
								      : NOTE_AGENT,
						      .node = i % 2 ? 12 : 7 };
		snprintf(m.u.see_note.text, sizeof(m.u.see_note.text), "%sa disk is %s",
			 i < 3 ? "" : "n12 warning: ", i < 2 ? "slow" : "full");
		state_apply(s, &m);
	}
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		const struct msg_see_note *list[STATE_NOTES];
		size_t n = notes_list(s, cases[k].filter, list);

		assert_int_equal(n, (cases[k].id[0] > 0) + (cases[k].id[1] > 0));
		for (size_t i = 0; i < n; i++)
			assert_int_equal(list[i]->id, cases[k].id[i]);
	}
	state_free(s);
}

/* `:find` accepts several words, as / does, and selects a listed node. `:heal` opens the list of
 * faults. */
TEST(typed_commands_do_what_their_keys_do)
{
	struct ui u;
	struct state *s = golden_default(&u);

	ui_command(&u, s, "find n07 warning");
	assert_string_equal(u.selection.filter, "n07 warning");
	ui_command(&u, s, "find n12");
	assert_int_equal(u.selection.node, 12);
	ui_command(&u, s, "find");
	assert_string_equal(u.selection.filter, "");
	s->n_faults = 1;
	ui_command(&u, s, "heal");
	assert_int_equal(u.dialog.kind, DIALOG_HEAL);
	state_free(s);
}

/* Before a kill, the operator must type the node's number. A wrong number has no effect. */
TEST(kill_needs_typing)
{
	struct ui u;
	struct state *s = golden_default(&u);

	ui_command(&u, s, "inject hang 12 90s");
	assert_int_equal(u.dialog.fields[1].value, 90);
	ui_key(&u, s, PRESS_ESCAPE);
	ui_command(&u, s, "inject kill 12");
	assert_int_equal(u.dialog.kind, DIALOG_INJECT);
	/* A kill is permanent, so the dialog has no field for its duration. */
	assert_int_equal(u.dialog.n_fields, 1);
	ui_key(&u, s, PRESS_TAB); /* from the typed number to Inject */
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.outbox.n, 0);
	keys(&u, s, "13");
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.outbox.n, 0);
	ui_key(&u, s, PRESS_DELETE_BACK);
	keys(&u, s, "2");
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.outbox.commands[0].verb, COMMAND_ARM);
	assert_int_equal(u.authority.waiting.verb, COMMAND_INJECT);
	assert_int_equal(u.authority.waiting.fault, FAULT_KILL);
	assert_int_equal(u.authority.waiting.node, 12);

	state_free(s);
}

TEST(last_copy)
{
	struct ui u;
	struct state *s = golden_default(&u);

	s->nodes[5].see.state = s->nodes[6].see.state = NODE_DEAD;
	u.selection.node = 7; /* stage 1 has the nodes 5, 6 and 7 */
	keys(&u, s, "F");
	assert_true(u.dialog.forbidden);
	ui_key(&u, s, PRESS_TAB);
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.outbox.n, 0);
	state_free(s);
}

TEST(typing)
{
	struct ui u;
	struct state *s = golden_default(&u);

	keys(&u, s, ":node 17");
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.selection.node, 17);
	keys(&u, s, ":foll 4");
	ui_key(&u, s, PRESS_ENTER);
	assert_non_null(strstr(u.message.text, "no such command"));
	keys(&u, s, ":fol");
	ui_key(&u, s, PRESS_TAB);
	keys(&u, s, "4");
	ui_key(&u, s, PRESS_ENTER);
	assert_true(u.selection.following && u.selection.microbatch == 4);
	ui_paste(&u, "q\nX"); /* pasted text is ignored if no prompt is open */
	assert_false(u.requests.quit);
	keys(&u, s, "/S3");
	ui_key(&u, s, PRESS_ENTER);
	assert_true(s->nodes[u.selection.node].see.stage == 3);
	keys(&u, s, ":arm 10parsecs");
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.outbox.n, 0);
	keys(&u, s, ":arm 5m");
	ui_key(&u, s, PRESS_ENTER);
	assert_int_equal(u.outbox.commands[0].value, 300);
	state_free(s);
}

/* ---- fuzz ---- */

static uint32_t any_key(struct rng *r)
{
	static const uint32_t special[] = { PRESS_TAB,
					    PRESS_ENTER,
					    PRESS_ESCAPE,
					    PRESS_DELETE_BACK,
					    PRESS_ARROW_UP,
					    PRESS_ARROW_DOWN,
					    PRESS_ARROW_LEFT,
					    PRESS_ARROW_RIGHT,
					    PRESS_PAGE_UP,
					    PRESS_PAGE_DOWN,
					    PRESS_TO_START,
					    PRESS_TO_END,
					    PRESS_BACK_TAB,
					    0,
					    16,
					    0xe9,
					    0x4e2d };

	return rng_below(r, 3) ? ' ' + rng_below(r, 95) : special[rng_below(r, 17)];
}

/* Applies messages with extreme numbers, as far as the codec accepts them. They must not break the
 * console. */
static void any_message(struct rng *r, struct state *s, struct ui *u)
{
	static const enum msg_type types[] = {
		MSG_SEE_RUN,   MSG_SEE_STATUS,    MSG_SEE_NODE,       MSG_SEE_PLAN,
		MSG_SEE_TASKS, MSG_SEE_ITERATION, MSG_SEE_VALIDATION, MSG_SEE_NOTE,
		MSG_SEE_FAULT, MSG_SEE_PREVIEW,   MSG_SEE_REPLY,      MSG_SEE_LINKS
	};
	unsigned char data[2048], *from = data;
	struct msg m = { .type = types[rng_below(r, 12)] }, back;
	long size = msg_encode(&m, data, sizeof(data));

	assert_true(size > 0);
	for (uint32_t i = 0, n = 1 + rng_below(r, 12); i < n && size > 16; i++)
		from[16 + rng_below(r, (uint32_t)size - 16)] = (unsigned char)rng_next(r);
	if (msg_decode(&back, data, (size_t)size) != 0)
		return;
	state_apply(s, &back);
	ui_take_message(u, s, &back);
	msg_clear(&back);
}

TEST(fuzz)
{
	const char *many = getenv("FUZZ_EVENTS");
	int events = many ? atoi(many) : 3000;
	struct ui u;
	struct state *s = golden_default(&u);
	struct screen *screen;
	struct rng r;

	rng_init(&r, getenv("FUZZ_SEED") ? (uint64_t)atoll(getenv("FUZZ_SEED")) : 11);
	screen = screen_new(80, 24, false);
	for (int i = 0; i < events; i++) {
		uint32_t what = rng_below(&r, 10);

		if (what < 6)
			ui_key(&u, s, any_key(&r));
		else if (what < 8)
			any_message(&r, s, &u);
		else
			screen_resize(
					screen,
					1 + (int)rng_below(&r, rng_below(&r, 2) ? 300 : 40),
					1 + (int)rng_below(&r, rng_below(&r, 2) ? 90 : 12));
		if (u.branch.open && rng_below(&r, 8) == 0)
			answer_branch(&u, s, u.branch.name, (float)rng_below(&r, 100));
		u.clock.behind_us = rng_below(&r, 4) ? 0 : rng_below(&r, 1u << 31);
		u.outbox.n = 0;
		u.requests.quit = false;
		u.display.graph = (enum graph)rng_below(&r, 3);
		if (rng_below(&r, 50) == 0)
			ui_set_connection(&u, (enum ui_link)rng_below(&r, 5), "why");
		ui_tick(&u, s, u.clock.local_us + rng_below(&r, 400000), u.clock.wall_us + 1000);
		view_draw(screen, s, &u);
	}
	screen_free(screen);
	ui_fini(&u);
	state_free(s);
}
