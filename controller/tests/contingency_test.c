/* contingency_test.c - plans that the controller makes ahead for the loss of a node. Tests when
 * they are made, when they are used, and which cost consoles see. */

#include <time.h>

#include "base/tests/test.h"
#include "controller/planning/contingency.h"
#include "controller/planning/request.h"
#include "controller/tests/player.h"
#include "controller/tests/under_way.h"

/* Gives the controller turns until it has a plan for the loss of the node. */
static void wait_for(struct controller *c, int node)
{
	struct timespec moment = { 0, 1000000 };

	for (int i = 0; i < 30000 && contingency_lost_s(&c->planning, &c->members.list[node]) == 0;
	     i++) {
		contingency_turn(&c->planning);
		nanosleep(&moment, NULL);
	}
	assert_true(contingency_lost_s(&c->planning, &c->members.list[node]) > 0);
}

static bool plan_uses(const struct plan *p, int node)
{
	for (int i = 0; i < p->n_microbatches; i++)
		for (int h = 0; h < p->microbatches[i].length; h++)
			if (p->microbatches[i].path[h] == node)
				return true;
	return false;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* If the controller has made a plan ahead for exactly the present case, the search starts from
 * this plan. In all other cases, the search starts from the plan in force. */
FIXTURE_TEST(planning_starts_from_the_plan_made_ahead)
{
	struct controller *c = *state;
	bool excluded[MSG_NODES];
	struct planner_request q;
	const struct plan *from;

	c->run.options.planning.ahead_s = 0.005;
	assert_int_equal(contingency_start(&c->planning, NULL), 0);
	for (int i = 0; i < NODES; i++)
		wait_for(c, i);
	replan_request(&c->members, &q, excluded);
	assert_ptr_equal(replan_from(&c->planning, &q), c->run.plan->plan);
	excluded[4] = true;
	from = replan_from(&c->planning, &q);
	assert_ptr_not_equal(from, c->run.plan->plan);
	assert_true(plan_uses(c->run.plan->plan, 4));
	assert_false(plan_uses(from, 4));
	assert_true(from->predicted.iteration_s ==
		    contingency_lost_s(&c->planning, &c->members.list[4]));
	excluded[3] = true;
	assert_ptr_equal(replan_from(&c->planning, &q), c->run.plan->plan);
	excluded[3] = false;
	q.path_length = 1;
	assert_ptr_equal(replan_from(&c->planning, &q), c->run.plan->plan);
}

static int warnings(const struct controller *c)
{
	int n = 0;

	for (uint32_t i = 0; i < c->run.journal.n_notes; i++)
		n += c->run.journal.notes[i].kind == NOTE_WARNING;
	return n;
}

/* A data node has become slow. The journal warns once that iterations would be shorter without
 * this node. */
FIXTURE_TEST(the_journal_warns_of_a_node_that_slows_the_run)
{
	struct controller *c = *state;
	struct simulation *s;

	c->run.options.planning.ahead_s = 0.005;
	assert_int_equal(contingency_start(&c->planning, NULL), 0);
	for (int i = 0; i < NODES; i++)
		wait_for(c, i);
	assert_int_equal(warnings(c), 0);
	c->run.cluster->nodes[1].forward_s *= 4;
	c->run.cluster->nodes[1].backward_s *= 4;
	assert_int_equal(simulate(c->run.cluster, c->run.plan->plan, &s, NULL), 0);
	c->run.plan->plan->predicted.iteration_s = s->iteration_s;
	simulation_free(s);
	for (int renewed = 0; renewed < 2; renewed++) {
		struct timespec moment = { 0, 1000000 };

		c->run.epoch++;
		for (int i = 0; i < 30000 && (warnings(c) == 0 || i < 100); i++) {
			contingency_turn(&c->planning);
			nanosleep(&moment, NULL);
		}
		assert_int_equal(warnings(c),
				 /* the controller warns once, although it makes all plans again */
				 1);
		c->run.now_us += 31 * (int64_t)SECOND;
	}
	assert_int_equal(c->run.journal.notes[c->run.journal.n_notes - 1].node, 1);
	assert_true(contingency_lost_s(&c->planning, &c->members.list[1]) <
		    0.9 * c->run.plan->plan->predicted.iteration_s);
}

static void plan_without_those_out(struct controller *c)
{
	bool excluded[MSG_NODES];
	struct planner_request today;
	struct plan_request q;
	struct error err = { "" };

	replan_request(&c->members, &today, excluded);
	plan_request_init(&q);
	q.path_length = today.path_length;
	q.excluded = excluded;
	q.evaluations = 20;
	plan_free(c->run.plan->plan);
	assert_int_equal(plan_search(c->run.cluster, &q, &c->run.plan->plan, &err), 0);
}

/* Plans made ahead become useless when another node is lost or the skip ratio changes. The
 * controller then makes them again. */
FIXTURE_TEST(a_change_makes_the_plans_made_ahead_obsolete)
{
	struct controller *c = *state;

	c->run.options.planning.ahead_s = 0.005;
	assert_int_equal(contingency_start(&c->planning, NULL), 0);
	wait_for(c, 4);
	c->members.list[5].state = MEMBER_DEAD;
	assert_true(contingency_lost_s(&c->planning, &c->members.list[4]) == 0);
	/* The plan in force still uses the dead node 5. Consoles therefore see no cost for the
	 * loss of node 4 until a plan without node 5 is in force */
	for (int i = 0; i < 200; i++) {
		contingency_turn(&c->planning);
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
	assert_true(contingency_lost_s(&c->planning, &c->members.list[4]) == 0);
	plan_without_those_out(c);
	wait_for(c, 4);
	c->run.wanted.path_length = 1;
	assert_true(contingency_lost_s(&c->planning, &c->members.list[4]) == 0);
	wait_for(c, 4);
	c->members.list[3].is_marked = true; /* node 4 is now the last replica of its stage */
	plan_without_those_out(c);
	for (int i = 0; i < DATA; i++)
		wait_for(c, i);
	assert_true(contingency_lost_s(&c->planning, &c->members.list[4]) == 0);
}

static bool all_foreseen(const struct world *w)
{
	for (int i = 0; i < PLAYERS; i++)
		if (w->states[i] == NODE_LIVE && w->lost_s[i] == 0)
			return false;
	return true;
}

/* An iteration without the lost node takes as long as predicted. The controller then plans ahead
 * for the next loss. */
TEST(a_loss_costs_as_much_as_predicted)
{
	const char *options[] = { "--eval-every", "0",       "--ahead", "0.02",
				  "--iterations", "1000000", NULL };
	struct world *w = world_new(options);
	struct player *lost = &w->players[4];
	uint64_t planned;
	float said_s;

	WORLD_UNTIL(w, world_all_live(w) && all_foreseen(w));
	said_s = w->lost_s[lost->node];
	assert_true(said_s > 0);
	planned = w->planned;
	lost->asleep = true;
	WORLD_UNTIL(w, w->states[lost->node] == NODE_DEAD && w->planned > planned);
	assert_true(w->planned_s <= said_s * 1.0001f);
	WORLD_UNTIL(w, w->lost_s[lost->node] == 0);
	WORLD_UNTIL(w, all_foreseen(w));
	world_free(w);
}

/* The controller keeps the newest plan for each set of nodes. When a node returns, the plan that
 * was in force when the node left is used again. */
FIXTURE_TEST(plans_that_were_in_force_are_kept)
{
	struct controller *c = *state;
	bool excluded[MSG_NODES];
	struct planner_request q;
	const struct plan *from;
	double was_s = c->run.plan->plan->predicted.iteration_s;

	/* The search for a plan ahead takes an hour, so it does not end during the test */
	c->run.options.planning.ahead_s = 3600;
	assert_int_equal(contingency_start(&c->planning, NULL), 0);
	contingency_turn(&c->planning);
	for (int i = 0; i < 10; i++) {
		c->members.list[5].state = i % 2 ? MEMBER_LIVE : MEMBER_DEAD;
		plan_without_those_out(c);
		c->run.epoch++;
		contingency_turn(&c->planning);
	}
	c->members.list[5].state = MEMBER_DEAD;
	plan_without_those_out(c);
	c->members.list[5].state = MEMBER_LIVE;
	replan_request(&c->members, &q, excluded);
	from = replan_from(&c->planning, &q);
	assert_ptr_not_equal(from, c->run.plan->plan);
	assert_true(plan_uses(from, 5));
	assert_true(from->predicted.iteration_s == was_s);
}

/* The controller also plans ahead for a skip ratio with one more skipped stage, and for a ratio
 * with one less. */
FIXTURE_TEST(another_skip_ratio_is_foreseen)
{
	struct controller *c = *state;
	bool excluded[MSG_NODES];
	struct planner_request q;
	const struct plan *from = NULL;

	c->run.options.planning.ahead_s = 0.005;
	c->run.wanted.path_length = 1;
	plan_without_those_out(c);
	assert_int_equal(contingency_start(&c->planning, NULL), 0);
	replan_request(&c->members, &q, excluded);
	q.path_length = 2;
	assert_ptr_equal(replan_from(&c->planning, &q), c->run.plan->plan);
	for (int i = 0; i < 30000 && (!from || from == c->run.plan->plan); i++) {
		contingency_turn(&c->planning);
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		from = replan_from(&c->planning, &q);
	}
	assert_int_equal(from->path_length, 2);
	q.path_length = 1;
	assert_ptr_equal(replan_from(&c->planning, &q), c->run.plan->plan);
}

TEST(no_plans_are_made_ahead_if_none_are_wanted)
{
	const char *options[] = { "--eval-every", "0", "--ahead", "0", NULL };
	struct world *w = world_new(options);

	WORLD_UNTIL(w, world_all_live(w) && w->committed >= 20);
	for (int i = 0; i < PLAYERS; i++)
		assert_true(w->lost_s[i] == 0);
	world_free(w);
}
