/* members_test.c - for which nodes the run waits, when these nodes try to join again, which links
 * count as cut, and for which plans the run waits. The test sets the time. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/controller.h"
#include "controller/iteration/answers.h"
#include "controller/iteration/cut_links.h"
#include "controller/iteration/link_failures.h"
#include "controller/joining/agents.h"
#include "controller/joining/startup.h"
#include "controller/loop.h"
#include "controller/members/lifecycle.h"
#include "controller/network/failed_links.h"
#include "controller/network/link_table.h"
#include "controller/network/measuring.h"
#include "controller/operator/consoles.h"
#include "controller/planning/drift.h"
#include "controller/planning/replan.h"
#include "controller/tests/bare.h"
#include "controller/weights/copies.h"
#include "controller/weights/rebalance.h"
#include "controller/weights/standbys.h"

enum { NODES = 6, SECOND = 1000000, START = 100 * SECOND };

static struct cluster *three_stages(void)
{
	struct cluster *k = cluster_alloc(NODES, 3, false);

	assert_non_null(k);
	k->microbatches_per_data_node = 2;
	for (int s = 0; s < 3; s++)
		k->stages[s] = 2;
	for (int i = 0; i < NODES; i++) {
		k->nodes[i].stage = i / 2;
		k->nodes[i].forward_s = 0.1;
		k->nodes[i].backward_s = 0.2;
		k->nodes[i].loss_s = 0.05;
		k->nodes[i].memory = 3;
	}
	for (int i = 0; i < NODES * NODES; i++)
		k->delay_s[i] = 0.05;
	return k;
}

/* Returns a controller between iterations, with two live nodes in each stage. Messages to nodes
 * are lost. */
static struct controller *made(void)
{
	struct controller *c = bare_controller(three_stages(), 2);

	c->run.phase = PHASE_PAUSED;
	c->run.options.limits.silence_us = 450000;
	c->run.committed = 7;
	c->run.now_us = START;
	return c;
}

/* Sets the time, as if all nodes had been heard until then. */
static void at(struct controller *c, int64_t now_us)
{
	c->run.now_us = now_us;
	for (uint32_t i = 0; i < NODES; i++)
		c->members.list[i].heard.message_us = now_us;
	c->members.membership.next_look_us = 0;
	loop_look_at_members(&c->iteration);
}

/* ---- joining again ---- */

/* Returns a node that cannot join, because no living node has the weights of its stage. */
static struct member *stranded(struct controller *c)
{
	struct member *m = &c->members.list[5];

	c->members.list[4].state = MEMBER_DEAD;
	m->state = MEMBER_JOINING;
	m->assigned.at_us = START;
	return m;
}

static bool tried(struct controller *c, int64_t now_us)
{
	int64_t before = c->members.list[5].assigned.at_us;

	at(c, now_us);
	return c->members.list[5].assigned.at_us != before;
}

TEST(a_joiner_is_tried_every_second)
{
	struct controller *c = made();

	stranded(c);
	assert_false(tried(c, START + SECOND));
	assert_true(tried(c, START + SECOND + 1));
	assert_false(tried(c, START + 2 * SECOND + 1));
	assert_true(tried(c, START + 2 * SECOND + 2));
	bare_free(c);
}

static void refuse_copy(struct controller *c, struct member *m)
{
	struct msg_kept k = { .assignment = 3, .stage = 2, .text = "too slow" };

	m->state = MEMBER_SYNCING;
	m->copy.stage = 2;
	m->copy.order = 3;
	standbys_kept(&c->members, m, &k);
	assert_int_equal(m->state, MEMBER_JOINING);
}

/* Returns a controller whose node 5 has no stage and is about to join. */
static struct controller *made_for_late_node(void)
{
	struct controller *c = made();
	struct member *m = &c->members.list[5];

	c->run.plan = calloc(1, sizeof(*c->run.plan));
	assert_non_null(c->run.plan);
	c->run.plan->plan = plan_alloc(3, NODES, 1, 2);
	assert_non_null(c->run.plan->plan);
	c->run.plan->plan->predicted.iteration_s = 1;
	for (int i = 0; i < NODES; i++)
		c->members.list[i].move.home = -1;
	m->state = MEMBER_JOINING;
	m->assigned.at_us = START;
	c->run.cluster->nodes[5].stage = -1;
	return c;
}

/* Only stage 2, which has one replica, has room for the late node. Its link to this replica first
 * takes minutes, and later has a normal delay. */
TEST(a_node_that_joined_late_gets_a_place)
{
	struct controller *c = made_for_late_node();
	struct member *m = &c->members.list[5];

	c->run.cluster->delay_s[5 * NODES + 4] = 100;
	at(c, START + 2 * SECOND);
	assert_int_equal(c->run.cluster->nodes[5].stage, -1);
	m->state = MEMBER_JOINING;
	copies_forget(m);
	c->run.cluster->delay_s[5 * NODES + 4] = 0.05;
	at(c, START + 4 * SECOND);
	assert_int_equal(c->run.cluster->nodes[5].stage, 2);
	bare_free(c);
}

/* No agent can connect to the node's port, so the node gets no stage. Once the port is open, the
 * agents report the round trips of their new connections. The links are then measured again, and
 * the node gets a stage. */
TEST(a_node_that_nobody_reaches_waits)
{
	struct controller *c = made_for_late_node();
	struct member *m = &c->members.list[5];
	struct msg_link link = { .to = 5, .latency_s = 0.001f };
	const struct msg_links report = { 1, &link, (uint8_t)c->run.cluster->formats.wire,
					  0, 0 };

	c->members.links = link_table_new(NODES);
	for (uint32_t i = 0; i < NODES; i++)
		for (uint32_t j = 0; j < NODES; j++)
			*link_table_at(c->members.links, i, j) = (struct link_seen){
				.known = i != j, .unreachable = j == 5, .latency_s = 0.001f
			};
	at(c, START + 2 * SECOND);
	assert_int_equal(c->run.cluster->nodes[5].stage, -1);
	assert_int_equal(m->state, MEMBER_JOINING);
	assert_non_null(strstr(m->why, "do not reach it"));
	members_links(&c->planning, &c->members.list[4], &report);
	assert_false(measuring_isolates(&c->members, m) || measuring_knows(&c->members, m));
	for (uint32_t i = 0; i < NODES; i++)
		link_table_at(c->members.links, i, 5)->known = i != 5;
	at(c, START + 4 * SECOND);
	assert_int_equal(c->run.cluster->nodes[5].stage, 2);
	link_table_free(c->members.links);
	free(c->members.list[4].links.list);
	bare_free(c);
}

/* Stage 0 has lost a node, and stage 2 lacks a node that never joined. The late node joins stage 0
 * and exchanges stages with the lost node. Without the exchange stage 0 would have three nodes, for
 * which the search finds no plan. */
TEST(a_node_that_joined_late_takes_the_place_of_a_lost_one)
{
	struct controller *c = made_for_late_node();

	c->run.cluster->delay_s[5 * NODES + 4] = 100;
	c->members.list[0].state = MEMBER_DEAD;
	at(c, START + 2 * SECOND);
	assert_int_equal(c->run.cluster->nodes[5].stage, 0);
	assert_int_equal(c->run.cluster->nodes[0].stage, -1);
	bare_free(c);
}

TEST(each_refused_copy_is_tried_later)
{
	struct controller *c = made();
	struct member *m = stranded(c);
	int64_t now = START, wait = SECOND;

	for (int i = 1; i < 10; i++) {
		c->run.now_us = now;
		refuse_copy(c, m);
		wait = i <= 6 ? 2 * wait : wait; /* the wait doubles up to a minute */
		assert_false(tried(c, now + wait));
		assert_true(tried(c, now + wait + 1));
		now += wait + 1;
	}
	m->state = MEMBER_READY;
	/* the node becomes a replica meanwhile, so its wait is one second again */
	member_apply(&c->run, m, EVENT_ADMIT, "");
	member_apply(&c->run, m, EVENT_LEAVE, "");
	m->assigned.at_us = now;
	assert_true(tried(c, now + SECOND + 1));
	bare_free(c);
}

TEST(a_dropped_copy_is_tried_later)
{
	struct controller *c = made();
	struct member *m = stranded(c);

	m->state = MEMBER_SYNCING;
	m->copy.stage = 2;
	copies_refuse(&c->members, m, "its copy was overdue");
	assert_int_equal(m->copy.stage, -1);
	assert_false(tried(c, START + 2 * SECOND));
	assert_true(tried(c, START + 2 * SECOND + 1));
	bare_free(c);
}

/* ---- cut links ---- */

/* Makes node `from` report that an input is missing that was expected within 0.25 s. */
static void report_stuck_link(struct controller *c, uint16_t from, uint16_t to, uint32_t ms)
{
	struct msg_stuck s = { .to = to, .ms = ms, .expected_ms = 250 };
	struct msg_heartbeat h = { .n_stuck = 1, .stuck = &s };

	link_failures_hear(&c->members, &c->members.list[from], &h);
}

static void report_working_links(struct controller *c, uint16_t from)
{
	struct msg_heartbeat h = { .n_stuck = 0 };

	link_failures_hear(&c->members, &c->members.list[from], &h);
}

static bool is_out(const struct controller *c, int node)
{
	return c->members.list[node].state == MEMBER_DEAD;
}

static bool all_are_in(const struct controller *c)
{
	for (int i = 0; i < NODES; i++)
		if (is_out(c, i))
			return false;
	return true;
}

static double *delay(const struct controller *c, int from, int to)
{
	return &c->run.cluster->delay_s[from * NODES + to];
}

/* The link counts as cut in both directions, and is absent from the planner's cluster. No node is
 * dropped. */
TEST(a_reported_link_counts_as_cut)
{
	struct controller *c = made();

	report_stuck_link(c, 1, 3, 750);
	at(c, START);
	assert_true(all_are_in(c));
	assert_true(link_failures_between(&c->members, 1, 3) &&
		    link_failures_between(&c->members, 3, 1) &&
		    !link_failures_between(&c->members, 1, 2));
	assert_true(*delay(c, 1, 3) < 0 && *delay(c, 3, 1) < 0 && *delay(c, 1, 2) > 0);
	assert_true(c->planning.wanted_id != 0);
	bare_free(c);
}

TEST(a_link_returns_once_no_node_complains)
{
	struct controller *c = made();

	*delay(c, 1, 3) = 0.07;
	report_stuck_link(c, 1, 3, 750);
	at(c, START);
	/* a measurement of the cut link arrives late, and is kept for the link's return */
	*delay(c, 3, 1) = 0.09;
	at(c, START + 100000);
	assert_true(*delay(c, 3, 1) < 0);
	at(c, START + 300000);
	report_stuck_link(c, 1, 3, 1100);
	at(c, START + SECOND / 2);
	report_working_links(c, 1);
	assert_true(link_failures_between(&c->members, 1, 3));
	at(c, START + 3 * SECOND);
	assert_false(link_failures_between(&c->members, 1, 3));
	assert_true(*delay(c, 1, 3) == 0.07 && *delay(c, 3, 1) == 0.09);
	bare_free(c);
}

/* Node 1 reports that the link works again, and then falls silent. While node 1 is silent, it may
 * find that the link is cut again. The link therefore counts as cut until node 1 is heard. */
TEST(a_link_does_not_return_while_an_end_is_silent)
{
	struct controller *c = made();

	report_stuck_link(c, 1, 3, 750);
	at(c, START);
	report_working_links(c, 1);
	for (c->run.now_us = START; c->run.now_us < START + 5 * SECOND; c->run.now_us += 100000) {
		c->members.list[3].heard.message_us = c->run.now_us;
		cut_links_check(&c->iteration);
		loop_act(&c->iteration);
	}
	assert_true(link_failures_between(&c->members, 1, 3));
	bare_free(c);
}

static int64_t believed_after(struct controller *c, int64_t now_us)
{
	report_stuck_link(c, 1, 3, 750);
	at(c, now_us);
	assert_true(link_failures_between(&c->members, 1, 3));
	report_working_links(c, 1);
	for (int64_t t = now_us; t < now_us + 100 * SECOND; t += 20000) {
		at(c, t);
		if (!link_failures_between(&c->members, 1, 3))
			return t - now_us;
	}
	fail_msg("never");
	return 0;
}

TEST(a_link_returns_later_each_time)
{
	struct controller *c = made();
	int64_t first = believed_after(c, START), second = believed_after(c, START + 200 * SECOND),
		third = believed_after(c, START + 400 * SECOND);

	assert_true(second > first * 3 / 2 && third > second * 3 / 2);
	/* The link has worked for so long that its earlier cuts do not count any more */
	assert_true(believed_after(c, START + 5000 * (int64_t)SECOND) < second);
	bare_free(c);
}

/* The controller itself cannot hear the node, so the node does not count as cut off. The failure
 * detector decides whether the node is dead. */
TEST(a_silent_node_is_not_cut_off)
{
	struct controller *c = made();

	report_stuck_link(c, 1, 3, 750);
	c->run.now_us = START;
	for (uint32_t i = 0; i < NODES; i++)
		c->members.list[i].heard.message_us = START - (i == 3 ? 600000 : 0);
	c->members.membership.next_look_us = 0;
	loop_look_at_members(&c->iteration);
	assert_true(all_are_in(c) && !link_failures_between(&c->members, 1, 3));
	bare_free(c);
}

/* A link counts as cut if nothing has moved on it for three times the expected time. If heartbeats
 * of one end may be late for longer than this, the controller waits as long as they may be late. */
TEST(a_recently_used_link_is_not_cut)
{
	struct msg_stuck s = { .to = 3, .ms = 449, .expected_ms = 100 };
	struct msg_heartbeat h = { .n_stuck = 1, .stuck = &s };
	struct controller *c = made();

	link_failures_hear(&c->members, &c->members.list[1], &h);
	at(c, START);
	assert_false(link_failures_between(&c->members, 1, 3));
	s = (struct msg_stuck){ .to = 3, .ms = 1499, .expected_ms = 500 };
	link_failures_hear(&c->members, &c->members.list[1], &h);
	at(c, START);
	assert_false(link_failures_between(&c->members, 1, 3));
	c->members.list[3].heard.late_us = 800000;
	s = (struct msg_stuck){ .to = 3, .ms = 1500, .expected_ms = 500 };
	link_failures_hear(&c->members, &c->members.list[1], &h);
	at(c, START);
	assert_false(link_failures_between(&c->members, 1, 3));
	c->members.list[3].heard.late_us = 0;
	at(c, START);
	assert_true(link_failures_between(&c->members, 1, 3));
	bare_free(c);
}

TEST(waiting_for_an_absent_node_is_no_cut)
{
	struct controller *c = made();

	for (int from = 1; from <= 3; from += 2) { /* node `from` was absent until START */
		c->members.list[1].since_us = c->members.list[3].since_us = 0;
		c->members.list[from].since_us = START;
		report_stuck_link(c, 1, 3, 60000);
		at(c, START + 749999);
		assert_false(link_failures_between(&c->members, 1, 3));
	}
	at(c, START + 750000);
	assert_true(link_failures_between(&c->members, 1, 3));
	bare_free(c);
}

/* Two replicas need the link between them for the sum, so the controller removes one of these
 * replicas. It removes the replica that reports the link, so that a false report harms only its
 * sender. */
TEST(one_of_two_separated_replicas_is_removed)
{
	struct controller *c = made();

	report_stuck_link(c, 2, 3, 1499);
	at(c, START);
	assert_true(all_are_in(c));
	report_stuck_link(c, 2, 3, 1500);
	at(c, START);
	assert_true(is_out(c, 2) && c->members.list[2].stuck.is_cut_off);
	assert_false(is_out(c, 3) || link_failures_between(&c->members, 2, 3));
	bare_free(c);
}

static void keeps(struct controller *c, int node, int stage)
{
	c->members.list[node].copy.stage = stage;
	c->members.list[node].copy.state = COPY_WHOLE;
	c->members.list[node].copy.iterations = c->run.committed;
}

/* The last replica of a stage is cut off from all other nodes. If a copy of its weights exists, the
 * controller removes the replica and uses the copy. Without a copy, the controller would have to
 * remove all other nodes. */
TEST(an_unreachable_last_replica_is_replaced_by_its_copy)
{
	struct controller *c = made();

	c->members.list[0].state = MEMBER_JOINING;
	report_stuck_link(c, 2, 1, 5000);
	report_stuck_link(c, 3, 1, 400);
	report_stuck_link(c, 4, 1, 400);
	at(c, START);
	assert_true(all_are_in(c));
	/* No copy of the stage exists, so neither end can be removed, and the run waits */
	assert_false(link_failures_remove_end(&c->members));
	assert_true(all_are_in(c));
	keeps(c, 5, 0);
	report_stuck_link(c, 3, 1, 750);
	at(c, START);
	for (int i = 1; i < NODES; i++)
		assert_int_equal(is_out(c, i), i == 1);
	bare_free(c);
}

/* Node 1 reports its link to node 0, but node 1 keeps the only weights of stage 2 as its copy. The
 * controller therefore removes node 0. */
TEST(the_holder_of_the_only_copy_stays)
{
	struct controller *c = made();

	c->members.list[4].state = c->members.list[5].state = MEMBER_JOINING;
	keeps(c, 1, 2);
	report_stuck_link(c, 1, 0, 5000);
	at(c, START);
	assert_true(is_out(c, 0) && !is_out(c, 1));
	bare_free(c);
}

/* No plan can avoid the link, so the controller removes the end that reported it. If that end is
 * the last replica of its stage, the other end is removed. */
TEST(a_link_that_every_plan_needs_costs_one_end)
{
	for (int last = 0; last < 2; last++) {
		struct controller *c = made();

		(void)state;
		c->members.list[0].state = last ? MEMBER_JOINING : MEMBER_LIVE;
		report_stuck_link(c, 1, 3, 5000);
		at(c, START);
		assert_true(all_are_in(c));
		assert_true(link_failures_remove_end(&c->members));
		assert_int_equal(is_out(c, 1), !last);
		assert_int_equal(is_out(c, 3), last);
		assert_true(c->members.list[last ? 3 : 1].stuck.is_cut_off);
		bare_free(c);
	}
}

/* n03 has a copy of the stage of n01. Their link is cut, so the copy would not receive the stage's
 * sums. The copy of n04 stays. */
TEST(a_copy_that_needs_a_cut_link_is_dropped)
{
	struct controller *c = made();

	c->members.list[0].state = MEMBER_JOINING;
	keeps(c, 3, 0);
	keeps(c, 4, 0);
	report_stuck_link(c, 1, 3, 750);
	at(c, START);
	assert_int_equal(c->members.list[3].copy.state, COPY_DROPPED);
	assert_int_not_equal(c->members.list[4].copy.state, COPY_DROPPED);
	bare_free(c);
}

/* The joiner's link to one replica is cut, so it fetches its stage from another node. */
TEST(a_joiner_fetches_over_other_links)
{
	struct controller *c = made();
	struct member *m = &c->members.list[5];

	c->members.list[3].move.home = m->move.home = 1;
	c->run.cluster->nodes[5].stage = 1;
	c->run.cluster->stages[1]++;
	m->state = MEMBER_SYNCING;
	m->assigned.at_us = START;
	*delay(c, 2, 5) = 0.01;
	/* the order is lost, like all messages here, but its source has been chosen */
	assert_false(copies_fetch(&c->members, m, 1));
	assert_int_equal(m->assigned.source, 2);
	report_stuck_link(c, 5, 2, 750);
	at(c, START);
	assert_true(link_failures_between(&c->members, 2, 5) && all_are_in(c));
	copies_fetch(&c->members, m, 1);
	assert_int_equal(m->assigned.source, 3);
	bare_free(c);
}

/* ---- copies ---- */

/* Two nodes can keep a copy of a stage. The node to which the first plan gave this stage keeps the
 * copy, even if the other node is nearer. */
TEST(a_node_of_the_stage_keeps_the_copy)
{
	for (int home = 2; home <= 5; home += 3) {
		struct controller *c = made();

		(void)state;
		c->members.list[0].state = MEMBER_JOINING;
		for (int i = 0; i < NODES; i++)
			c->members.list[i].move.home = c->run.cluster->nodes[i].stage;
		c->members.list[home].move.home = 0;
		c->run.cluster->delay_s[1 * NODES + 3] = 0.01;
		standbys_turn(&c->backups, iteration_sums_took_s(&c->iteration));
		loop_act(&c->iteration);
		for (int i = 0; i < NODES; i++)
			assert_int_equal(c->members.list[i].copy.stage, i == home ? 0 : -1);
		bare_free(c);
	}
}

/* ---- returning to the first stage ---- */

TEST(a_node_with_slow_links_does_not_return_to_its_stage)
{
	struct controller *c = made();

	for (int i = 0; i < NODES; i++) {
		c->members.list[i].move.home = c->run.cluster->nodes[i].stage;
		c->members.list[i].links.ratio = 1;
	}
	c->members.list[0].move.home = 1;
	c->members.list[2].move.home = 0;
	c->run.phase = PHASE_COMPUTING;
	c->members.list[2].links.ratio = 4;
	rebalance_turn(&c->backups);
	assert_int_equal(c->backups.rebalance.next_us, 0);
	c->members.list[2].links.ratio = 1;
	rebalance_turn(&c->backups);
	/* The controller tried the exchange, but no node received the order */
	assert_true(c->backups.rebalance.next_us > 0);
	for (int k = 0; k < 2; k++) {
		c->backups.rebalance.pair[k] = &c->members.list[2 * k];
		c->backups.rebalance.pair[k]->copy.stage = !k;
		c->backups.rebalance.pair[k]->move.is_returning = true;
	}
	rebalance_turn(&c->backups);
	assert_ptr_equal(c->backups.rebalance.pair[0], &c->members.list[0]);
	/* the node's links have become slow, so it must not move */
	c->members.list[0].links.ratio = 4;
	rebalance_turn(&c->backups);
	assert_null(c->backups.rebalance.pair[0]);
	bare_free(c);
}

/* ---- plans ---- */

/* Waits for the answer to the newest request. Skips answers to earlier requests. */
static void answer(struct controller *c)
{
	struct pollfd fd = { planner_fd(c->planning.planner), POLLIN, 0 };
	uint64_t wanted = c->planning.wanted_id;

	while (c->planning.wanted_id == wanted) {
		assert_true(poll(&fd, 1, 20000) > 0);
		loop_take_answers(c);
	}
}

/* Node 5 has left its stage but has not died, so the plan in force is useless. No death causes a
 * request for another plan. After a few seconds, the controller itself notices that the plan is
 * useless. */
TEST(a_useless_plan_is_replaced)
{
	struct controller *c = made();

	replan(&c->planning, "a test");
	answer(c);
	c->run.plan = c->planning.pending;
	c->planning.pending = NULL;
	c->planning.wanted_id = 0; /* the search for a better plan has ended */
	c->members.list[5].state = MEMBER_JOINING;
	c->run.phase = PHASE_PLANNING;
	c->run.now_us += SECOND;
	loop_phase(c);
	loop_act(&c->iteration);
	assert_int_equal(c->planning.wanted_id, 0);
	c->run.now_us += 5 * SECOND;
	loop_phase(c);
	loop_act(&c->iteration);
	assert_true(c->planning.wanted_id != 0);
	bare_free(c);
}

TEST(the_first_plan_is_awaited)
{
	struct controller *c = made();

	assert_false(replan_awaited(&c->planning));
	replan(&c->planning, "a test");
	/* No plan is in force, so the first iteration waits until the newest request is
	 * answered. */
	assert_true(replan_awaited(&c->planning));
	answer(c);
	c->run.plan = c->planning.pending;
	c->planning.pending = NULL;
	assert_non_null(c->run.plan);
	c->run.unit_s = 1e3;
	assert_false(replan_awaited(&c->planning)); /* the run does not wait for a better plan */
	replan(&c->planning, "a node was lost");
	assert_true(replan_awaited(&c->planning));
	answer(c);
	assert_non_null(c->planning.pending);
	assert_false(replan_awaited(&c->planning));
	bare_free(c);
}

/* A pending plan waits until all agents are connected, but only for a limited time, and not for an
 * agent that has died. */
TEST(a_plan_waits_for_connections)
{
	struct controller *c = made();
	struct preparation *x = &c->planning.preparation;
	struct member *m = &c->members.list[2];

	replan(&c->planning, "a test");
	answer(c);
	assert_non_null(c->planning.pending);
	assert_false(preparation_awaited(&c->planning));
	*x = (struct preparation){ 7, c->planning.pending->request, c->run.now_us };
	assert_false(preparation_awaited(&c->planning));
	m->assigned.connect_id = 7;
	c->planning.wanted_id = 0; /* the search for a better plan has ended */
	c->run.phase = PHASE_PLANNING;
	assert_true(preparation_awaited(&c->planning));
	iteration_boundary(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	assert_non_null(c->planning.pending);
	preparation_answer(m, &(struct msg_connected){ 6 });
	assert_true(preparation_awaited(&c->planning));
	preparation_answer(m, &(struct msg_connected){ 7 });
	assert_false(preparation_awaited(&c->planning));
	m->assigned.connect_id = 7;
	m->state = MEMBER_DEAD;
	assert_false(preparation_awaited(&c->planning));
	m->state = MEMBER_LIVE;
	c->run.now_us += 2 * SECOND;
	assert_false(preparation_awaited(&c->planning));
	bare_free(c);
}

TEST(short_iterations_do_not_wait)
{
	struct controller *c = made();
	double iteration_s;

	replan(&c->planning, "a test");
	answer(c);
	c->run.plan = c->planning.pending;
	c->planning.pending = NULL;
	iteration_s = c->run.plan->plan->predicted.iteration_s;
	replan(&c->planning, "a node was lost");
	/* The search takes 0.06 s. The run waits for the search only if this is less than 1/20 of
	 * an iteration. An iteration of 1.21 s is long enough, and one of 1.19 s is not. */
	c->run.unit_s = 1.21 / iteration_s;
	assert_true(replan_awaited(&c->planning));
	c->run.unit_s = 1.19 / iteration_s;
	assert_false(replan_awaited(&c->planning));
	replan_if_better(&c->planning, "links have changed", false);
	c->run.unit_s = 1e3;
	assert_false(replan_awaited(&c->planning));
	bare_free(c);
}

/* In the first ten iterations of a plan, small corrections do not cause another plan. */
TEST(a_new_plan_may_settle)
{
	struct controller *c = made();

	replan(&c->planning, "a test");
	answer(c);
	c->run.plan = c->planning.pending;
	c->planning.pending = NULL;
	c->planning.wanted_id = 0; /* the search for a better plan has ended */
	c->run.plan->iteration = c->run.committed + 1;
	c->run.now_us += 100 * SECOND;
	c->run.committed += 9;
	c->planning.drift.links_corrected = true;
	drift_turn(&c->planning);
	assert_false(c->planning.drift.links_corrected);
	assert_int_equal(c->planning.wanted_id, 0);
	c->run.committed++;
	c->planning.drift.links_corrected = true;
	drift_turn(&c->planning);
	assert_true(c->planning.wanted_id != 0);
	bare_free(c);
}

/* ---- the first iteration ---- */

/* Returns a controller that gathers agents. All nodes except node 5 have built their stages. */
static struct controller *gathering(void)
{
	struct controller *c = made();

	replan(&c->planning, "the run's first plan");
	answer(c);
	c->run.phase = PHASE_GATHERING;
	c->members.gathering = GATHER_BUILD;
	c->run.committed = 0;
	c->run.options.limits.gather_us = 30 * SECOND;
	c->run.committed_us = START;
	for (int i = 0; i < NODES; i++) {
		struct member *m = &c->members.list[i];

		m->state = i != 5 ? MEMBER_READY : MEMBER_SYNCING;
		m->assigned.number = (uint64_t)i + 1;
		m->assigned.at_us = START;
	}
	return c;
}

static bool begins(struct controller *c, int64_t now_us)
{
	c->run.now_us = now_us;
	startup_turn(&c->iteration);
	return c->run.phase != PHASE_GATHERING;
}

TEST(a_run_starts_once_all_nodes_are_ready)
{
	struct controller *c = gathering();

	assert_false(begins(c, START + 1));
	c->members.list[5].state = MEMBER_READY;
	assert_true(begins(c, START + 2));
	for (int i = 0; i < NODES; i++)
		assert_true(member_is_replica(&c->members.list[i]));
	bare_free(c);
}

TEST(a_run_does_not_wait_forever)
{
	struct controller *c = gathering();

	assert_false(begins(c, START + 60 * SECOND - 1));
	assert_true(begins(c, START + 60 * SECOND));
	for (int i = 0; i < NODES; i++)
		assert_int_equal(member_is_replica(&c->members.list[i]), i != 5);
	/* node 5 joins later, when it is ready */
	assert_int_equal(c->members.list[5].state, MEMBER_SYNCING);
	bare_free(c);
}

TEST(a_run_does_not_wait_for_an_excluded_node)
{
	struct controller *c = gathering();

	c->members.list[5].is_marked = true;
	assert_true(begins(c, START + 1));
	assert_false(member_is_replica(&c->members.list[5]));
	bare_free(c);
}
