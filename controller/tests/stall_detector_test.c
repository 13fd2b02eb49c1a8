/* stall_detector_test.c - when hanging nodes count as dead, and when an iteration restarts. The
 * test itself calls each check ("look") of the detector. */

#include <stdlib.h>

#include "base/tests/test.h"
#include "controller/controller.h"
#include "controller/iteration/evaluate.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/stall_detector.h"
#include "controller/loop.h"
#include "controller/network/failed_links.h"
#include "controller/operator/consoles.h"
#include "controller/tests/under_way.h"
#include "controller/weights/standbys.h"
#include "controller/tests/bare.h"

enum { LOOK_US = 250000 };

/* Returns a controller with six replicas in two stages. The longest task takes 0.2 s, and the
 * longest link delay, from the last node to the first, is 0.05 s. The time limit is 10 s plus 20
 * times the sum of both: 15 s. */
static struct controller *made(void)
{
	struct controller *c = bare_controller(cluster_alloc(NODES, 2, false), 2);

	c->run.phase = PHASE_EVALUATING;
	c->run.options.limits.overdue_us = 10 * SECOND;
	c->run.options.eval_batches = 4;
	c->run.now_us = SECOND;
	c->run.cluster->microbatches_per_data_node = 1;
	for (int i = 0; i < NODES * NODES; i++)
		c->run.cluster->delay_s[i] = 0.01;
	c->run.cluster->delay_s[(NODES - 1) * NODES] = 0.05;
	for (uint16_t i = 0; i < NODES; i++) {
		c->run.cluster->nodes[i].stage = i / 3;
		c->run.cluster->stages[i / 3] = 3;
		c->run.cluster->nodes[i].forward_s = 0.1;
		c->run.cluster->nodes[i].backward_s = 0.2;
		c->run.cluster->nodes[i].memory = 3;
	}
	return c;
}

/* Heartbeats report that node 1 receives `got` bytes in each second. */
static void moves(struct controller *c, uint64_t got)
{
	for (uint32_t i = 0; i < NODES; i++) {
		c->members.list[i].beat.received_bytes += (i == 1 ? got : 100) * LOOK_US / SECOND;
		stall_note_heartbeat(&c->run, &c->members.list[i]);
	}
}

static bool hung_after(struct controller *c, int looks)
{
	bool hung = false;

	for (int i = 0; i < looks && !hung; i++) {
		c->run.now_us += LOOK_US;
		assert_true(stall_look(&c->iteration));
		assert_false(stall_look(&c->iteration));
		hung = stall_hung(&c->iteration, 1);
	}
	return hung;
}

TEST(the_time_limit_is_much_longer_than_a_task)
{
	struct controller *c = made();

	assert_false(hung_after(c, 60));
	assert_true(hung_after(c, 1));
	bare_free(c);
}

TEST(every_end_of_a_task_gives_more_time)
{
	struct controller *c = made();

	assert_false(hung_after(c, 60));
	c->run.progress++;
	assert_false(hung_after(c, 60));
	assert_true(hung_after(c, 1));
	bare_free(c);
}

TEST(slow_tasks_have_time)
{
	struct controller *c = made();

	/* n02's tasks take one real second each, although the plan predicts less */
	c->members.list[2].compute.forward_s = 1;
	assert_false(hung_after(c, 120));
	assert_true(hung_after(c, 1));
	bare_free(c);
}

TEST(injected_faults_have_time)
{
	struct controller *c = made();

	c->run.faults.list = calloc(1, sizeof(*c->run.faults.list));
	c->run.faults.list[0] =
		(struct fault){ .kind = FAULT_SLOW_NODE, .node = 2, .factor = 4, .active = true };
	c->run.faults.n = 1;
	assert_false(hung_after(c, 120));
	assert_true(hung_after(c, 1));
	bare_free(c);
}

/* An hour for which the controller itself was suspended is not a stall. */
TEST(sleep_of_the_controller_is_no_stall)
{
	struct controller *c = made();

	assert_false(hung_after(c, 50));
	c->run.now_us += 3600 * (int64_t)SECOND;
	assert_false(hung_after(c, 10));
	bare_free(c);
}

static bool hung_while(struct controller *c, uint64_t got)
{
	for (int i = 0; i < 200; i++) {
		moves(c, got);
		if (hung_after(c, 1))
			return true;
	}
	return false;
}

TEST(a_slow_transfer_has_time)
{
	struct controller *c = made();

	assert_false(hung_while(c, 10000));
	bare_free(c);
}

TEST(heartbeats_are_not_data)
{
	struct controller *c = made();

	c->members.list[2].compute.forward_s = 1;
	assert_true(hung_while(c, 3000));
	bare_free(c);
}

static bool out(const struct controller *c, int node)
{
	return c->members.list[node].state == MEMBER_DEAD;
}

TEST(a_node_that_reports_a_running_task_is_dropped)
{
	struct controller *c = made();

	c->members.list[1].beat.in_flight = 2;
	c->members.list[4].beat.running = 1;
	assert_true(stall_drop_hanging(&c->members));
	assert_true(out(c, 4));
	assert_false(out(c, 1) || c->members.list[4].is_marked);
	bare_free(c);
}

/* Makes n checks, with heartbeats from all nodes except `silent`. */
static void looks(struct controller *c, int n, uint32_t silent)
{
	for (int i = 0; i < n; i++) {
		c->run.now_us += LOOK_US;
		for (uint32_t k = 0; k < NODES; k++)
			if (k != silent)
				c->members.list[k].heard.message_us = c->run.now_us;
		stall_turn(&c->iteration);
		loop_act(&c->iteration);
	}
}

/* The last heartbeats of all nodes report rest, but n02 is silent and may be busy by now. The
 * iteration restarts only after n02 is heard again. */
TEST(a_node_that_is_not_heard_may_be_busy)
{
	struct controller *c = made();

	c->run.phase = PHASE_COMPUTING;
	looks(c, 1, 2);
	looks(c, 10, 2);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	looks(c, 4, NODES);
	assert_int_equal(c->run.phase, PHASE_PLANNING); /* the iteration restarts */
	bare_free(c);
}

/* Messages may still be on their way over the link, so a restart would be too early. */
TEST(a_link_that_may_be_cut_is_awaited)
{
	struct controller *c = made();
	struct link_failure cut = { .from = 5, .active = true };

	c->run.phase = PHASE_COMPUTING;
	c->members.list[5].stuck.n = 1;
	c->members.list[5].stuck.links[0] =
		(struct msg_stuck){ .to = 0, .ms = 2000, .expected_ms = 1000 };
	looks(c, 10, NODES);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	c->members.failed_links.of = &cut;
	c->members.failed_links.n = 1;
	looks(c, 5, NODES);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	c->members.failed_links.of = NULL;
	c->members.failed_links.n = 0;
	bare_free(c);
}

TEST(a_microbatch_may_wait_for_a_slot)
{
	struct controller *c = made();

	c->members.list[3].beat.queued = 2;
	c->members.list[3].beat.blocked = 1;
	assert_false(stall_drop_hanging(&c->members));
	c->members.list[3].beat.blocked = 0;
	assert_true(stall_drop_hanging(&c->members));
	assert_true(out(c, 3));
	bare_free(c);
}

/* Makes n02 report a running, queued or unsent task, for which the others wait. */
static void report_tasks(struct controller *c, int what)
{
	struct msg_heartbeat *b = &c->members.list[2].beat;

	c->run.phase = PHASE_COMPUTING;
	c->run.committed = 4;
	c->run.iteration = 5;
	for (int i = 0; i < NODES; i++) {
		c->members.list[i].beat.committed = 4;
		c->members.list[i].beat.iteration = 5;
	}
	b->running = what == 0;
	b->queued = what == 1;
	b->in_flight = what == 2;
}

TEST(each_kind_of_work_gives_more_time)
{
	for (int what = 0; what < 3; what++) {
		struct controller *c = made();

		report_tasks(c, what);
		assert_true(stall_drop_hanging(&c->members));
		for (int i = 0; i < NODES; i++)
			assert_int_equal(out(c, i), i == 2);
		bare_free(c);
	}
}

/* After a commit, all nodes make their step at the same time and do nothing else. None of them is
 * dropped. n02 missed the commit. When the others have made their step, n02 is dropped. */
TEST(a_node_that_makes_its_step_is_not_dropped)
{
	struct controller *c = made();

	report_tasks(c, 3);
	for (int i = 0; i < NODES; i++) {
		c->members.list[i].beat.committed = 3;
		c->members.list[i].beat.running = 1;
	}
	looks(c, 20, NODES);
	for (int i = 0; i < NODES; i++) {
		assert_false(out(c, i));
		c->members.list[i].beat.committed = 3 + (i != 2);
		c->members.list[i].beat.running = 0;
	}
	for (int i = 0; i < 5; i++) {
		c->run.now_us += LOOK_US;
		for (int k = 0; k < NODES; k++)
			c->members.list[k].heard.message_us = c->run.now_us;
		stall_turn(&c->iteration);
	}
	for (int i = 0; i < NODES; i++)
		assert_int_equal(out(c, i), i == 2);
	bare_free(c);
}

TEST(the_step_of_a_large_stage_has_time)
{
	struct controller *c = made();

	c->run.training.stage_parameters[1] = 100000000; /* adds 5 s to the limit */
	assert_false(hung_after(c, 80));
	assert_true(hung_after(c, 1));
	bare_free(c);
}

TEST(all_hanging_nodes_are_dropped)
{
	struct controller *c = made();

	c->members.list[1].beat.running = c->members.list[4].beat.running = 1;
	assert_true(stall_drop_hanging(&c->members));
	for (int i = 0; i < NODES; i++)
		assert_int_equal(out(c, i), i == 1 || i == 4);
	bare_free(c);
}

/* n02 has not begun the iteration, so it is not at rest, but it reports no work. */
TEST(without_reported_work_the_iteration_restarts)
{
	struct controller *c = made();

	report_tasks(c, 3);
	c->members.list[2].beat.iteration = 4;
	looks(c, 60, NODES);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	looks(c, 1, NODES);
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	for (int i = 0; i < NODES; i++)
		assert_false(out(c, i));
	bare_free(c);
}

TEST(a_majority_is_not_dropped)
{
	struct controller *c = made();

	for (int i = 0; i < 4; i++)
		c->members.list[i].beat.running = 1;
	/* no node is dropped, and all nodes get the full time again */
	assert_true(stall_drop_hanging(&c->members));
	for (int i = 0; i < NODES; i++)
		assert_false(out(c, i));
	assert_false(hung_after(c, 60));
	bare_free(c);
}

TEST(a_big_sum_has_time)
{
	struct controller *c = made();

	c->run.plan = calloc(1, sizeof(*c->run.plan));
	c->run.plan->plan = plan_alloc(2, NODES, 1, 2);
	assert_non_null(c->run.plan->plan);
	c->run.plan->plan->predicted.sync_s = 1;         /* adds 6 s to the limit */
	c->run.training.stage_parameters[1] = 100000000; /* adds 5 s to the limit */
	for (int i = 0; i < NODES; i++)
		c->members.list[i].sum.is_done = i != 4;
	for (int i = 0; i < 85; i++) {
		assert_false(out(c, 4));
		c->run.now_us += LOOK_US;
		stall_sums_turn(&c->iteration);
		loop_act(&c->iteration);
	}
	assert_true(out(c, 4)); /* n04 waits for no replica, so it is dropped */
	bare_free(c);
}

/* Each replica waits for another replica, so the controller cannot tell which one is late. The
 * controller drops no replica, and the iteration restarts. */
TEST(sums_that_wait_for_each_other_restart)
{
	struct controller *c = made();

	c->run.phase = PHASE_REDUCING;
	c->run.plan = calloc(1, sizeof(*c->run.plan));
	c->run.plan->plan = plan_alloc(2, NODES, 1, 2);
	assert_non_null(c->run.plan->plan);
	for (int i = 0; i < NODES; i++)
		c->members.list[i].beat.awaits = (uint16_t)(1 + i / 3 * 3 + (i + 1) % 3);
	for (int i = 0; i < 41; i++) {
		assert_int_equal(c->run.phase, PHASE_REDUCING);
		c->run.now_us += LOOK_US;
		stall_sums_turn(&c->iteration);
		loop_act(&c->iteration);
	}
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	for (int i = 0; i < NODES; i++)
		assert_false(out(c, i));
	bare_free(c);
}

/* All replicas have their sums after a second. n04 lacks the sum for its standby copy of the first
 * stage. The sums of n00 and n01 differ, so the sums restart once the copy is dropped. */
static struct controller *waiting_for_a_copy(void)
{
	static uint64_t no_slices[1];
	struct controller *c = made();

	c->run.plan = calloc(1, sizeof(*c->run.plan));
	c->run.plan->plan = plan_alloc(2, NODES, 1, 2);
	assert_non_null(c->run.plan->plan);
	c->run.phase = PHASE_REDUCING;
	c->iteration.progress.reduced_us = c->iteration.progress.reduce_us + SECOND;
	for (int i = 0; i < NODES; i++) {
		c->members.list[i].sum.is_done = true;
		c->members.list[i].sum.reported.slices = no_slices;
	}
	c->members.list[0].sum.reported.squares = 1;
	c->members.list[4].copy.stage = 0;
	c->members.list[4].copy.sum_state = COPY_SUM_ORDERED;
	c->members.list[4].copy.state = COPY_WHOLE;
	return c;
}

/* Makes a check every each_us until the copy is dropped. Returns the number of checks. */
static int looks_for(struct controller *c, int64_t each_us)
{
	int looks = 0;

	for (; c->members.list[4].copy.state != COPY_DROPPED && looks < 1000; looks++) {
		c->run.now_us += each_us;
		standbys_turn(&c->backups, iteration_sums_took_s(&c->iteration));
		loop_act(&c->iteration);
	}
	bare_free(c);
	return looks;
}

TEST(a_late_copy_has_three_times_the_time_of_the_sums)
{
	struct controller *c = waiting_for_a_copy();

	/* the limit is 5 s: 2 s, and three times 1 s for the sums */
	assert_int_equal(looks_for(c, SECOND / 10), 50);
	c = waiting_for_a_copy();
	c->run.plan->plan->predicted.sync_s = 2;
	assert_int_equal(looks_for(c, SECOND / 10), 80);
}

TEST(sleep_makes_no_copy_late)
{
	assert_int_equal(looks_for(waiting_for_a_copy(), SECOND), 50);
}
