/* replan_test.c - a baseline algorithm plans the run. Tests what the controller requests from the
 * planner, and how it uses the answers. */

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/loop.h"
#include "controller/operator/command.h"
#include "controller/planning/contingency.h"
#include "controller/planning/replan.h"
#include "controller/planning/request.h"
#include "controller/run/settings.h"
#include "controller/tests/under_way.h"

static int dtfm_begin(void **state)
{
	int rc = under_way_begin(state);
	struct controller *c = *state;

	c->run.options.planning.algorithm = PLAN_DTFM;
	c->run.options.planning.budget_s = 60;
	c->run.options.eval_batches = 1;
	free(c->run.plan->plan->search.algorithm);
	c->run.plan->plan->search.algorithm = strdup("dtfm");
	return rc;
}

/* Waits until the newest request has been answered. */
static void wait_for_plan(struct controller *c)
{
	for (int i = 0; i < 1000 && c->planning.wanted_id; i++) {
		struct pollfd fd = { planner_fd(c->planning.planner), POLLIN, 0 };

		poll(&fd, 1, 100);
		loop_take_answers(c);
	}
	assert_int_equal(c->planning.wanted_id, 0);
}

static void take_over(struct controller *c)
{
	assert_non_null(c->planning.pending);
	planned_free(c->run.plan);
	c->run.plan = c->planning.pending;
	c->planning.pending = NULL;
}

static void is_by(const struct planned *p, const char *algorithm)
{
	assert_non_null(p);
	assert_string_equal(p->plan->search.algorithm, algorithm);
}

static const struct msg_see_note *last_note(const struct controller *c)
{
	assert_true(c->run.journal.n_notes > 0);
	return &c->run.journal.notes[c->run.journal.n_notes - 1];
}

#define FIXTURE_TEST(name) TEST_WITH(name, dtfm_begin, under_way_end)

/* The controller asks a baseline only once, because more time would not change the answer. The
 * controller makes no plans ahead. */
FIXTURE_TEST(a_baseline_is_asked_once)
{
	struct controller *c = *state;

	c->run.options.planning.ahead_s = 1;
	assert_int_equal(contingency_start(&c->planning, NULL), 0);
	assert_null(c->planning.contingency);
	c->members.list[4].is_marked = true;
	replan(&c->planning, "a node was marked failed");
	wait_for_plan(c);
	is_by(c->planning.pending, "dtfm");
	assert_false(planned_uses(c->planning.pending, 4));
	assert_string_equal(c->planning.pending->reason, "a node was marked failed");
	/* the controller has not asked for a better plan */
	assert_string_equal(c->planning.reason, "a node was marked failed");
	assert_int_equal(c->run.journal.n_notes, 0);
}

/* Sets the delay of the links between nodes 4 and 5 and the data nodes 1 and 2. The links of n00
 * and n03 stay fast. delay_s < 0 removes these links, so that straight pipelines are impossible. */
static void cut(struct controller *c, double delay_s)
{
	for (int i = DATA + 1; i < NODES; i++)
		for (int d = 0; d < DATA; d++)
			c->run.cluster->delay_s[d * NODES + i] =
				c->run.cluster->delay_s[i * NODES + d] = d == 0 ? 0.05 : delay_s;
}

/* If the baseline finds no plan, SkipPipe's own planner replaces it, and the journal says so. Once
 * the baseline finds a plan again, it is used, even if iterations then take longer. */
FIXTURE_TEST(the_own_planner_replaces_a_baseline_for_a_while)
{
	struct controller *c = *state;
	uint32_t n_notes;

	c->run.options.planning.budget_s = 0.05;
	cut(c, -1);
	replan(&c->planning, "links or compute have changed");
	wait_for_plan(c);
	is_by(c->planning.pending, "best");
	assert_int_equal(last_note(c)->kind, NOTE_ALERT);
	assert_string_equal(last_note(c)->text,
			    "dtfm has no paths of its own: the plan of best is used");
	take_over(c);
	n_notes = c->run.journal.n_notes;
	replan(&c->planning, "a mark was taken back");
	wait_for_plan(c);
	is_by(c->planning.pending, "best");
	/* the journal reports the replacement only once */
	assert_int_equal(c->run.journal.n_notes, n_notes);
	take_over(c);
	cut(c, 0.4);
	c->run.options.planning.budget_s = 60;
	replan_if_better(&c->planning, "links or compute have changed", false);
	wait_for_plan(c);
	is_by(c->planning.pending, "dtfm");
	assert_true(c->planning.pending->plan->predicted.iteration_s >
		    c->run.plan->plan->predicted.iteration_s);
	assert_string_equal(last_note(c)->text, "planned by dtfm again");
}

/* A new plan that is not better is not used, whether the baseline or SkipPipe's own planner made
 * it. */
FIXTURE_TEST(the_plan_stays_if_no_other_is_better)
{
	struct controller *c = *state;

	replan(&c->planning, "first");
	wait_for_plan(c);
	take_over(c);
	replan_if_better(&c->planning, "again", false);
	wait_for_plan(c);
	assert_null(c->planning.pending);
	replan_if_better(&c->planning, "links or compute have changed", true);
	wait_for_plan(c);
	assert_null(c->planning.pending);
}

/* The baseline DT-FM visits every stage, so the controller refuses to skip stages. */
FIXTURE_TEST(a_skip_is_refused)
{
	struct controller *c = *state;

	c->run.options.acts[0] = (struct scripted_act){
		.iteration = 1, .verb = COMMAND_SKIP, .node = -1, .value = 1
	};
	c->run.options.n_acts = 1;
	command_scripted(&c->operators);
	assert_int_equal(c->run.wanted.path_length, 2);
	assert_int_equal(c->planning.wanted_id, 0);
	assert_non_null(strstr(last_note(c)->text, "dtfm, which visits every stage"));
}

/* The record names the algorithm, so a restarted controller uses it again. */
FIXTURE_TEST(a_new_controller_keeps_the_algorithm)
{
	struct controller *c = *state;
	char *text = resume_options(&c->run);

	assert_non_null(text);
	c->run.options.planning.algorithm = PLAN_CBS;
	assert_int_equal(store_set(c->run.record.store, "options", text, NULL), 0);
	assert_int_equal(resume_options_again(&c->run, NULL), 0);
	assert_int_equal(c->run.options.planning.algorithm, PLAN_DTFM);
	free(text);
}
