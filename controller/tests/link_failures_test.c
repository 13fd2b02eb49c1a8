/* link_failures_test.c - a link between two living nodes is cut. The controller reroutes the
 * microbatches that need the link, or removes one end. */
#include <string.h>

#include "base/tests/test.h"
#include "controller/iteration/evaluate.h"
#include "controller/joining/agents.h"
#include "controller/loop.h"
#include "controller/iteration/cut_links.h"
#include "controller/members/members.h"
#include "controller/network/failed_links.h"
#include "controller/planning/request.h"
#include "controller/tests/under_way.h"

static bool journal_has(const struct controller *c, const char *words)
{
	for (uint32_t i = 0; i < c->run.journal.n_notes; i++)
		if (strstr(c->run.journal.notes[i].text, words))
			return true;
	return false;
}

static bool anyone_is_out(const struct controller *c)
{
	for (int i = 0; i < NODES; i++)
		if (!member_is_replica(&c->members.list[i]))
			return true;
	return false;
}

/* Node `from` reports that nothing has moved for 0.9 s, although movement was expected within 0.25
 * s. */
static void complains_of(struct controller *c, uint16_t from, struct msg_stuck s)
{
	struct msg_heartbeat h = { .n_stuck = 1, .stuck = &s };

	for (int i = 0; i < NODES; i++)
		c->members.list[i].heard.message_us = c->run.now_us;
	link_failures_hear(&c->members, &c->members.list[from], &h);
	cut_links_check(&c->iteration);
	loop_act(&c->iteration);
}

static void complains(struct controller *c, uint16_t from, uint16_t to)
{
	complains_of(c, from, (struct msg_stuck){ .to = to, .ms = 900, .expected_ms = 250 });
}

static bool any_needs(const struct controller *c, uint16_t a, uint16_t b)
{
	for (uint32_t i = 0; i < N; i++)
		if (routes_need(&c->iteration.routes.microbatches[i], a, b))
			return true;
	return false;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

FIXTURE_TEST(microbatches_are_rerouted_around_a_cut_link)
{
	struct controller *c = *state;
	uint16_t data = c->iteration.routes.microbatches[0].route.nodes[0],
		 next = under_way_second_of(c, 0);
	uint32_t moved = 0;

	under_way_does(c, data, 0, TASK_FORWARD, FIRST, 0.1);
	complains(c, data, next);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_false(anyone_is_out(c) || any_needs(c, data, next));
	for (uint32_t i = 0; i < N; i++) {
		const struct microbatch *m = &c->iteration.routes.microbatches[i];

		assert_int_equal(m->moved, m->route.attempt > FIRST);
		assert_int_equal(m->route.since, FIRST);
		moved += m->moved;
	}
	assert_true(moved > 0);
	assert_true(journal_has(c, "nothing came through for 0.9 s, expected within 0.2"));
	assert_true(journal_has(c, "go around the link"));
	/* Later plans must avoid the link, too */
	assert_false(replan_usable(&c->members, c->run.plan));
	assert_true(c->planning.wanted_id > 0);
}

/* The neighbours of the substitute have stored the tensors that the substitute needs, so only the
 * substitute repeats work. */
FIXTURE_TEST(finished_work_is_not_repeated)
{
	struct controller *c = *state;
	struct microbatch *m = &c->iteration.routes.microbatches[0];
	uint16_t data = m->route.nodes[0], next = m->route.nodes[1];

	under_way_does(c, data, 0, TASK_FORWARD, FIRST, 0.1);
	under_way_does(c, next, 0, TASK_FORWARD, FIRST, 0.1);
	/* The data node has counted the loss, so only the other end of the link can be replaced. */
	under_way_does(c, data, 0, TASK_LOSS, FIRST, 0.1);
	complains(c, data, next);
	assert_int_equal(m->route.nodes[0], data);
	assert_true(m->route.nodes[1] != next && m->route.attempt == FIRST + 1);
	under_way_does(c, m->route.nodes[1], 0, TASK_FORWARD, FIRST + 1, 0.1);
	under_way_does(c, m->route.nodes[1], 0, TASK_BACKWARD, FIRST + 1, 0.1);
	under_way_does(c, data, 0, TASK_BACKWARD, FIRST + 1, 0.1);
	assert_true(m->done);
	assert_false(routes_may_count(&c->iteration.routes, data, 0, TASK_LOSS) ||
		     routes_may_count(&c->iteration.routes, data, 0, TASK_BACKWARD) ||
		     routes_may_count(&c->iteration.routes, m->route.nodes[1], 0, TASK_BACKWARD));
}

/* Both ends of the cut link have counted the microbatch, and a count cannot move to a substitute.
 * The controller therefore removes one end, and other nodes repeat the work of this end. */
FIXTURE_TEST(one_end_of_a_link_without_a_substitute_is_dropped)
{
	struct controller *c = *state;
	uint16_t data = c->iteration.routes.microbatches[0].route.nodes[0],
		 next = under_way_second_of(c, 0);
	struct member *out = &c->members.list[next];
	struct msg_heartbeat h = { .beat = 1, .committed = 0 };

	under_way_does(c, data, 0, TASK_FORWARD, FIRST, 0.1);
	under_way_does(c, next, 0, TASK_FORWARD, FIRST, 0.1);
	under_way_does(c, data, 0, TASK_LOSS, FIRST, 0.1);
	under_way_does(c, next, 0, TASK_BACKWARD, FIRST, 0.1);
	complains(c, next, data);
	assert_true(link_failures_between(&c->members, data, next));
	assert_int_equal(out->state, MEMBER_DEAD);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_true(under_way_second_of(c, 0) != next);
	assert_true(journal_has(c, "run again without"));
	members_heartbeat(&c->iteration, out, &h);
	loop_act(&c->iteration);
	/* The removed end may return, although the link is still cut */
	assert_true(out->state != MEMBER_DEAD);
	assert_true(link_failures_between(&c->members, data, next));
}

/* No substitute is left, so no route can avoid the link, and the controller removes one end. */
FIXTURE_TEST(a_link_that_every_route_needs_costs_one_end)
{
	struct controller *c = *state;
	uint16_t data = c->iteration.routes.microbatches[0].route.nodes[0],
		 next = under_way_second_of(c, 0);
	uint32_t out = 0;

	for (uint16_t i = 0; i < NODES; i++)
		if (i != data && i != next)
			c->run.cluster->delay_s[i * NODES + data] =
				c->run.cluster->delay_s[next * NODES + i] = -1;
	complains(c, data, next);
	for (uint16_t i = 0; i < NODES; i++)
		out += !member_is_replica(&c->members.list[i]);
	assert_int_equal(out, 1);
	assert_true(!member_is_replica(&c->members.list[data]) ||
		    !member_is_replica(&c->members.list[next]));
	assert_false(any_needs(c, data, next));
}

FIXTURE_TEST(a_validation_avoids_the_cut_link)
{
	struct controller *c = *state;
	uint16_t a, b;

	c->run.options.eval_batches = 6;
	evaluation_begin(&c->iteration);
	a = c->iteration.evaluation.microbatches[4].route.nodes[0];
	b = c->iteration.evaluation.microbatches[4].route.nodes[1];
	assert_true(evaluation_needs(&c->iteration, a, b) && evaluation_needs(&c->iteration, b, a));
	complains(c, b, a);
	assert_int_equal(c->run.phase, PHASE_EVALUATING);
	assert_false(anyone_is_out(c) || evaluation_needs(&c->iteration, a, b));
}

static uint32_t times_noted(const struct controller *c, const char *words)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->run.journal.n_notes; i++)
		n += strstr(c->run.journal.notes[i].text, words) != NULL;
	return n;
}

/* Small messages pass, and TCP may need seconds to repair the loss of large ones. The journal names
 * the MTU as a possible cause once, and only after the agent has found that large messages are
 * lost. */
FIXTURE_TEST(a_link_that_passes_small_messages_gets_more_time)
{
	static const char mtu[] = "small messages pass, large ones do not: MTU?";
	struct controller *c = *state;
	uint16_t data = c->iteration.routes.microbatches[0].route.nodes[0],
		 next = under_way_second_of(c, 0);
	struct msg_stuck s = { .to = next, .ms = 2999, .expected_ms = 250, .small_passes = 1 };

	c->run.now_us += 3000000;
	complains_of(c, data, s);
	assert_false(link_failures_between(&c->members, data, next));
	s.ms = 3000;
	complains_of(c, data, s);
	assert_true(link_failures_between(&c->members, data, next));
	assert_true(journal_has(c, "(small messages pass)"));
	assert_false(journal_has(c, "MTU") || journal_has(c, "a port closed"));
	s.large_lost = 1;
	complains_of(c, data, s);
	complains_of(c, data, s);
	assert_int_equal(times_noted(c, mtu), 1);
	s.large_lost = 0;
	complains_of(c, data, s);
	assert_int_equal(times_noted(c, mtu), 1);
}
