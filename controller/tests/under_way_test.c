/* fdatasync and fsync are the test's own, and show what a power loss leaves.
 *
 * The iteration under way: what moves within it when a node is slow, a count that crosses such a move,
 * and what a successor reads of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "controller/iteration/takeover_record.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/evaluate.h"
#include "controller/iteration/iteration.h"
#include "controller/loop.h"
#include "controller/members/link_failures.h"
#include "controller/members/members.h"
#include "controller/members/node_state.h"
#include "controller/network/failed_links.h"
#include "controller/planning/request.h"
#include "controller/setup.h"
#include "controller/tests/under_way.h"
#include "controller/weights/recover.h"

/* ---- what is on the disk ---- */

static struct {
	const char *folder; /* NULL: nobody looks */
	char copy[64];
	uint32_t synced;
} disk;

/* What the files are then is what a power loss leaves of them. */
static void look_at_disk(void)
{
	char command[256];

	if (!disk.folder)
		return;
	disk.synced++;
	snprintf(command, sizeof(command), "cp '%s'/run.db '%s'/run.db-wal '%s'", disk.folder, disk.folder,
		 disk.copy);
	assert_int_equal(system(command), 0);
}

int fdatasync(int fd)
{
	look_at_disk();
	return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	look_at_disk();
	return (int)syscall(SYS_fsync, fd);
}

static void watch_disk(const struct controller *c)
{
	disk.folder = c->options.run_dir;
	strcpy(disk.copy, "/tmp/skippipe-power-loss-XXXXXX");
	assert_non_null(mkdtemp(disk.copy));
	disk.synced = 0;
}

static void forget_disk(void)
{
	char command[128];

	disk.folder = NULL;
	snprintf(command, sizeof(command), "rm -rf '%s'", disk.copy);
	assert_int_equal(system(command), 0);
}

/* All but the store and the cluster: a successor has the same. */
static void forget(struct controller *c)
{
	c->store = NULL;
	c->cluster = NULL;
	controller_fini(c);
	free(c);
}

/* The node tells that it has begun its pass of the microbatch. */
static void begins(struct controller *c, uint16_t node, uint32_t microbatch, enum work_kind kind, uint32_t attempt)
{
	struct msg_task_event event = { .type = WORK_STARTS, .kind = (uint8_t)kind, .microbatch = microbatch,
					.attempt = attempt, .blocker = UINT32_MAX, .at_us = c->now_us };
	struct msg_report r = { .iteration = 1, .n_events = 1, .events = &event };

	iteration_report(c, &c->members[node], &r);
	loop_act(c);
}

/* It tells that it did it. */
static void does(struct controller *c, uint16_t node, uint32_t microbatch, enum work_kind kind,
		 uint32_t attempt, double took_s)
{
	struct msg_task_event events[2] = {
		{ .type = WORK_STARTS, .kind = (uint8_t)kind, .microbatch = microbatch, .attempt = attempt,
		  .blocker = UINT32_MAX, .at_us = c->now_us },
		{ .type = WORK_ENDS, .kind = (uint8_t)kind, .microbatch = microbatch, .attempt = attempt,
		  .blocker = UINT32_MAX, .at_us = c->now_us + (int64_t)(took_s * SECOND),
		  .counted = kind != WORK_FORWARD, .loss = 3 },
	};
	struct msg_report r = { .iteration = 1, .n_events = 2, .events = events };

	iteration_report(c, &c->members[node], &r);
	loop_act(c);
}

static uint16_t second_of(const struct controller *c, uint32_t microbatch)
{
	return c->routes.microbatches[microbatch].nodes[1];
}

/* ---- moving ---- */

/* Each data node passes its first two on, and n03 takes six times as long as planned for what it gets of
 * them; the others take what they should. Returns the first that it has not begun. */
static uint32_t three_is_slow(struct controller *c)
{
	uint32_t begun[NODES] = { 0 }, others = 0;

	for (uint32_t i = 0; i < N; i++) {
		uint16_t data = c->routes.microbatches[i].nodes[0], next = second_of(c, i);

		if (begun[data] == 2 || begun[next] == 2 || next == 3)
			continue;
		begun[data]++;
		begun[next]++;
		does(c, data, i, WORK_FORWARD, FIRST, 0.1);
		does(c, next, i, WORK_FORWARD, FIRST, 0.1);
		others++;
	}
	assert_true(others >= 3);
	c->now_us += SECOND;
	for (uint32_t i = 0; i < N && begun[3] < 2; i++) {
		if (second_of(c, i) != 3)
			continue;
		begun[3]++;
		does(c, c->routes.microbatches[i].nodes[0], i, WORK_FORWARD, FIRST, 0.1);
		does(c, 3, i, WORK_FORWARD, FIRST, 0.6);
	}
	for (uint32_t i = 0; i < N; i++)
		if (c->routes.microbatches[i].moved)
			return i;
	return N;
}

static void what_has_not_begun_goes_around_a_slow_node(void **state)
{
	struct controller *c = *state;
	uint32_t moved = 0;
	uint16_t was[N];

	for (uint32_t i = 0; i < N; i++)
		was[i] = second_of(c, i);
	assert_true(three_is_slow(c) < N);
	for (uint32_t i = 0; i < N; i++) {
		const struct microbatch *m = &c->routes.microbatches[i];

		assert_int_equal(m->moved, m->route.attempt > FIRST);
		if (m->moved)
			assert_false(m->begun);
		else
			assert_int_equal(m->nodes[1], was[i]);
		moved += was[i] == 3 && m->nodes[1] != 3;
	}
	assert_true(moved > 0);
	assert_non_null(strstr(c->journal.notes[c->journal.n_notes - 1].text, "take other ways"));
	assert_true(c->plan_wanted > 0);
	assert_true(c->cluster->nodes[3].forward_s > 0.5);
}

/* A baseline's ways are its own until its next plan. */
static void a_baseline_waits_for_its_next_plan(void **state)
{
	struct controller *c = *state;

	c->options.algorithm = PLAN_NO_TC2;
	assert_int_equal(three_is_slow(c), N);
	assert_true(c->plan_wanted > 0);
	assert_true(c->cluster->nodes[3].forward_s > 0.5);
}

/* The node from which it was taken had begun it after all, and says so. */
static uint32_t a_count_crosses(struct controller *c, bool moved)
{
	uint32_t i = three_is_slow(c);
	struct microbatch *m = &c->routes.microbatches[i];

	assert_true(i < N && m->nodes[1] != 3);
	m->moved = moved;
	does(c, 3, i, WORK_BACKWARD, FIRST, 0.1);
	return i;
}

static void a_count_that_crossed_a_move_begins_the_iteration_anew(void **state)
{
	struct controller *c = *state;

	a_count_crosses(c, true);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->redo);
	assert_true(c->first_attempt > FIRST + 1); /* what was told so far is void */
	assert_int_equal(c->members[3].state, NODE_LIVE);
}

/* It has not ended, so neither a pause nor a step does. */
static void a_pause_waits_for_what_begins_anew(void **state)
{
	struct controller *c = *state;

	c->pause = c->step = true;
	a_count_crosses(c, true);
	loop_phase(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->step);
	c->step = false;
	loop_phase(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	c->redo = false;
	loop_phase(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PAUSED);
}

static void without_a_move_it_is_a_lie(void **state)
{
	struct controller *c = *state;

	a_count_crosses(c, false);
	assert_int_equal(c->members[3].state, NODE_FAILED);
	assert_false(c->redo);
}

/* Not before that stage is there again. */
static void while_a_stage_is_lost_it_waits(void **state)
{
	struct controller *c = *state;
	uint32_t i = three_is_slow(c);

	c->phase = PHASE_STALLED;
	for (int node = 0; node < DATA; node++)
		c->members[node].replica = false;
	does(c, 3, i, WORK_BACKWARD, FIRST, 0.1);
	assert_int_equal(c->phase, PHASE_STALLED);
	assert_true(c->stall.taken_over);
	for (int node = 0; node < DATA; node++)
		c->members[node].replica = true;
	recover_turn(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->redo);
}

/* ---- slots that would wait in a circle ---- */

/* m0 of n00, which is on its way to n03, and the returned one of n01, to the node given. */
static struct microbatch *two_are_left(struct controller *c, uint16_t to)
{
	struct microbatch *other = NULL;

	for (uint32_t i = 0; i < N; i++) {
		struct microbatch *m = &c->routes.microbatches[i];

		if (i > 0 && !other && m->nodes[0] == 1)
			other = m;
		else if (i > 0)
			m->done = true;
		if (m->done) { /* by who stays */
			m->nodes[0] = 0;
			m->nodes[1] = 4;
		}
	}
	assert_non_null(other);
	c->routes.microbatches[0].nodes[0] = 0;
	c->routes.microbatches[0].nodes[1] = 3;
	other->nodes[1] = to;
	does(c, 0, 0, WORK_FORWARD, FIRST, 0.1);
	does(c, 1, other->route.microbatch, WORK_FORWARD, FIRST, 0.1);
	return other;
}

/* Of one slot each at n00 and n03. m0 holds that at n00 and waits for that at n03, which the other holds; and when
 * the other's data node is gone, n00 alone can stand in. */
static struct microbatch *nearly_a_circle(struct controller *c)
{
	struct microbatch *other = two_are_left(c, 3);

	does(c, 3, other->route.microbatch, WORK_FORWARD, FIRST, 0.1);
	c->cluster->nodes[0].memory = c->cluster->nodes[3].memory = 1;
	c->members[2].replica = false;
	for (uint16_t node = 4; node < NODES; node++)
		c->members[node].replica = false;
	return other;
}

static void who_would_wait_in_a_circle_begins_again(void **state)
{
	struct controller *c = *state;
	struct microbatch *other = nearly_a_circle(c);

	members_gone(c, &c->members[1], "is gone");
	loop_act(c);
	assert_int_equal(other->nodes[0], 0);
	assert_true(other->route.attempt > FIRST);
	assert_int_equal(other->route.since, other->route.attempt);
	assert_int_equal(other->passed, 0);
}

static void who_finds_a_slot_goes_on(void **state)
{
	struct controller *c = *state;
	struct microbatch *other = nearly_a_circle(c);

	c->cluster->nodes[0].memory = 2;
	members_gone(c, &c->members[1], "is gone");
	loop_act(c);
	assert_int_equal(other->nodes[0], 0);
	assert_true(other->route.attempt > FIRST);
	assert_int_equal(other->route.since, FIRST);
}

/* n03 is gone, and n04, which began its only task a second ago, is nearer than n05, which is free. Whether a task takes
 * half a second or two decides whether it is over by now. */
static uint16_t who_stands_in_beside_a_task_of(struct controller *c, double forward_s)
{
	struct microbatch *other = two_are_left(c, 4);

	for (uint16_t node = DATA; node < NODES; node++)
		c->cluster->nodes[node].forward_s = forward_s;
	c->cluster->delay_s[0 * NODES + 5] = c->cluster->delay_s[5 * NODES + 0] = 0.1;
	begins(c, 4, other->route.microbatch, WORK_FORWARD, FIRST);
	c->now_us += SECOND;
	members_gone(c, &c->members[3], "is gone");
	loop_act(c);
	return second_of(c, 0);
}

static void who_is_free_by_now_stands_in(void **state)
{
	assert_int_equal(who_stands_in_beside_a_task_of(*state, 0.5), 4);
}

static void who_is_busy_does_not(void **state)
{
	assert_int_equal(who_stands_in_beside_a_task_of(*state, 2), 5);
}

/* ---- a sum that is there ---- */

static void all_is_done(struct controller *c)
{
	for (uint32_t i = 0; i < N; i++) {
		uint16_t data = c->routes.microbatches[i].nodes[0], next = second_of(c, i);

		does(c, data, i, WORK_FORWARD, FIRST, 0.1);
		does(c, next, i, WORK_FORWARD, FIRST, 0.1);
		does(c, data, i, WORK_LOSS, FIRST, 0.02);
		does(c, next, i, WORK_BACKWARD, FIRST, 0.1);
		does(c, data, i, WORK_BACKWARD, FIRST, 0.1);
	}
	assert_int_equal(c->phase, PHASE_REDUCING);
}

static void tells_its_sum(struct controller *c, uint16_t node)
{
	uint64_t slices[DATA] = { 1, 2, 3 };
	uint8_t stage = (uint8_t)(node / DATA);
	struct msg_reduced r = { .iteration = 1, .attempt = c->reduce_attempt, .stage = stage,
				 .sum_squares = 1, .n_slices = c->summing[stage], .slices = slices };

	iteration_reduced(c, &c->members[node], &r);
	loop_act(c);
}

/* What it had counted is in the others' sum: nothing runs again, and the record has it. */
static void who_dies_after_its_sum_stays_in_the_record(void **state)
{
	struct controller *c = *state;
	uint32_t counted[NODES] = { 0 }, summed = 0;
	struct store_commit k;

	all_is_done(c);
	for (uint16_t node = DATA; node < NODES; node++)
		tells_its_sum(c, node);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_REDUCING);
	for (uint16_t node = 0; node < DATA; node++)
		tells_its_sum(c, node);
	assert_int_equal(c->committed, 1);
	assert_int_equal(store_read_commit(c->store, 1, &k, NULL), 0);
	for (size_t i = 0; i < k.n_orders; i++)
		counted[k.orders[i].node] = k.orders[i].n_counted;
	for (size_t i = 0; i < k.n_reductions; i++)
		summed += k.reductions[i].n_nodes;
	store_commit_clear(&k);
	assert_int_equal(summed, NODES);
	for (uint16_t node = 0; node < NODES; node++)
		assert_int_equal(counted[node], c->routes.counts[node].n);
	assert_true(counted[4] > 0);
}

static bool summed_in(const struct store_commit *k, uint8_t stage, uint16_t node)
{
	for (size_t i = 0; i < k->n_reductions; i++)
		for (size_t n = 0; k->reductions[i].stage == stage && n < k->reductions[i].n_nodes; n++)
			if (k->reductions[i].nodes[n] == node)
				return true;
	return false;
}

/* How often the stage's sum has the gradient, and the microbatch's loss, by what is recorded. */
static uint32_t times_in_sum(const struct store_commit *k, uint8_t stage, uint32_t microbatch, char kind)
{
	uint32_t times = 0;

	for (size_t i = 0; i < k->n_orders; i++) {
		const struct store_order *o = &k->orders[i];

		for (uint32_t n = 0; n < o->n_counted; n++)
			times += o->stage == stage && summed_in(k, stage, o->node) &&
				 o->counted[n].microbatch == microbatch && o->counted[n].kind == kind;
	}
	return times;
}

static void every_gradient_is_recorded_once(const struct controller *c)
{
	struct store_commit k;

	assert_int_equal(c->committed, 1);
	assert_int_equal(store_read_commit(c->store, 1, &k, NULL), 0);
	assert_int_equal(k.n_routes, N);
	for (size_t i = 0; i < k.n_routes; i++) {
		assert_int_equal(times_in_sum(&k, 0, (uint32_t)i, 'L'), 1);
		for (uint32_t h = 0; h < k.routes[i].n_hops; h++) {
			assert_int_equal(times_in_sum(&k, k.routes[i].stages[h], (uint32_t)i, 'B'), 1);
			assert_true(summed_in(&k, k.routes[i].stages[h], k.routes[i].nodes[h]));
		}
	}
	store_commit_clear(&k);
}

/* Who stands in does what it owes. */
static uint32_t runs_again(struct controller *c)
{
	uint32_t again = 0;

	for (uint32_t i = 0; i < N; i++) {
		struct microbatch *m = &c->routes.microbatches[i];

		if (m->done)
			continue;
		again++;
		for (uint32_t h = 0; h < m->route.n_hops; h++)
			if (m->owed_forward >> h & 1)
				does(c, m->nodes[h], i, WORK_FORWARD, m->route.attempt, 0.1);
		if (m->owed_loss)
			does(c, m->nodes[0], i, WORK_LOSS, m->route.attempt, 0.02);
		for (uint32_t h = m->route.n_hops; h-- > 0;)
			if (m->owed_backward >> h & 1)
				does(c, m->nodes[h], i, WORK_BACKWARD, m->route.attempt, 0.1);
	}
	return again;
}

static void all_tell_their_sums(struct controller *c)
{
	assert_int_equal(c->phase, PHASE_REDUCING);
	for (uint16_t node = 0; node < NODES && c->phase == PHASE_REDUCING; node++)
		if (c->members[node].replica)
			tells_its_sum(c, node);
}

/* All is done, and n04 dies when its stage has the sum. */
static void four_dies_in_its_sum(struct controller *c)
{
	all_is_done(c);
	for (uint16_t node = DATA; node < NODES; node++)
		tells_its_sum(c, node);
	assert_true(c->routes.counts[4].n > 0);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_REDUCING);
}

/* The first sums of the first stage differ once: all sums begin anew. */
static void sums_differ(struct controller *c)
{
	uint64_t slices[DATA] = { 1, 2, 4 };
	struct msg_reduced r = { .iteration = 1, .attempt = c->reduce_attempt, .stage = 0,
				 .sum_squares = 1, .n_slices = DATA, .slices = slices };

	tells_its_sum(c, 0);
	tells_its_sum(c, 1);
	iteration_reduced(c, &c->members[2], &r);
	loop_act(c);
	assert_int_equal(c->n_differing, 1);
}

/* Its part was in that sum and in no other: what it did runs again. */
static void who_died_in_a_sum_is_not_in_the_next(void **state)
{
	struct controller *c = *state;

	four_dies_in_its_sum(c);
	sums_differ(c);
	assert_int_equal(c->phase, PHASE_COMPUTING);
	assert_int_equal(c->routes.counts[4].n, 0);
	assert_true(runs_again(c) > 0);
	all_tell_their_sums(c);
	every_gradient_is_recorded_once(c);
}

static void nor_is_it_when_another_stage_loses_one(void **state)
{
	struct controller *c = *state;

	four_dies_in_its_sum(c);
	members_gone(c, &c->members[0], "is gone");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_COMPUTING);
	assert_true(runs_again(c) > 0);
	all_tell_their_sums(c);
	every_gradient_is_recorded_once(c);
	for (int node = 0; node < NODES; node++)
		assert_int_equal(c->members[node].lost_here, node == 0 || node == 4);
}

/* It joins the next sum, with a gradient of nothing. */
static void nor_when_it_is_back(void **state)
{
	struct controller *c = *state;
	struct member *back = &c->members[4];

	four_dies_in_its_sum(c);
	back->state = NODE_SYNCING;
	back->ready = true;
	sums_differ(c);
	assert_true(runs_again(c) > 0);
	assert_true(back->replica);
	all_tell_their_sums(c);
	every_gradient_is_recorded_once(c);
}

/* Its place is another's by then: the record says of which stage's sum it was. */
static void whatever_became_of_its_place(void **state)
{
	struct controller *c = *state;

	four_dies_in_its_sum(c);
	c->cluster->nodes[4].stage = 0;
	for (uint16_t node = 0; node < DATA; node++)
		tells_its_sum(c, node);
	every_gradient_is_recorded_once(c);
}

/* The last of the stage that has no sum sleeps, and is back: all begins anew. */
static void nor_after_a_stage_was_awaited(void **state)
{
	struct controller *c = *state;

	c->members[1].replica = c->members[2].replica = false;
	for (uint32_t i = 0; i < N; i++)
		c->routes.microbatches[i].nodes[0] = 0;
	for (int node = 0; node < NODES; node++)
		c->members[node].held_stage = (uint8_t)(node / DATA);
	four_dies_in_its_sum(c);
	members_gone(c, &c->members[0], "sleeps");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_STALLED);
	c->members[0].beat.iteration = 1;
	assert_true(iteration_resumes(c, &c->members[0]));
	recover_turn(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->redo);
}

/* What others ended while the stage was awaited was told, and nothing more will be. */
static void what_ended_meanwhile_is_summed(void **state)
{
	struct controller *c = *state;
	uint16_t last = 3;

	for (uint16_t node = 4; node < NODES; node++)
		c->members[node].replica = false;
	for (int node = 0; node < NODES; node++)
		c->members[node].held_stage = (uint8_t)(node / DATA);
	for (uint32_t i = 0; i < N; i++) {
		uint16_t data = c->routes.microbatches[i].nodes[0];

		c->routes.microbatches[i].nodes[1] = last;
		does(c, data, i, WORK_FORWARD, FIRST, 0.1);
		does(c, last, i, WORK_FORWARD, FIRST, 0.1);
		does(c, data, i, WORK_LOSS, FIRST, 0.02);
		does(c, last, i, WORK_BACKWARD, FIRST, 0.1);
	}
	members_gone(c, &c->members[last], "sleeps");
	loop_act(c);
	for (uint32_t i = 0; i < N; i++)
		does(c, c->routes.microbatches[i].nodes[0], i, WORK_BACKWARD, FIRST, 0.1);
	assert_int_equal(c->phase, PHASE_STALLED);
	c->members[last].beat.iteration = 1;
	c->members[last].beat.stage = 1;
	assert_true(iteration_resumes(c, &c->members[last]));
	all_tell_their_sums(c);
	every_gradient_is_recorded_once(c);
}

/* Each stage waits for its last. One told something when it passed for dead: nobody will know what. */
static void what_was_told_to_nobody_begins_anew(void **state)
{
	struct controller *c = *state;

	for (int node = 0; node < NODES; node++) {
		c->members[node].held_stage = (uint8_t)(node / DATA);
		c->members[node].replica = node % DATA == 0;
		c->members[node].beat.iteration = 1;
	}
	for (uint32_t i = 0; i < N; i++) {
		c->routes.microbatches[i].nodes[0] = 0;
		c->routes.microbatches[i].nodes[1] = DATA;
	}
	c->members[DATA].beat.stage = 1;
	members_gone(c, &c->members[0], "sleeps");
	loop_act(c);
	members_gone(c, &c->members[DATA], "sleeps");
	loop_act(c);
	does(c, DATA, 0, WORK_FORWARD, FIRST, 0.1);
	assert_true(iteration_resumes(c, &c->members[DATA]));
	assert_true(iteration_resumes(c, &c->members[0]));
	recover_turn(c);
	loop_act(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->redo);
}

/* It passed for dead when the others were told of other ways. */
static void who_is_back_hears_of_other_ways(void **state)
{
	struct controller *c = *state;

	for (int node = 0; node < NODES; node++)
		c->members[node].held_stage = (uint8_t)(node / DATA);
	for (uint16_t node = 4; node < NODES; node++)
		c->members[node].replica = false;
	for (uint32_t i = 0; i < N; i++)
		c->routes.microbatches[i].nodes[1] = DATA;
	members_gone(c, &c->members[0], "is gone");
	loop_act(c);
	members_gone(c, &c->members[DATA], "sleeps");
	loop_act(c);
	c->members[DATA].beat.iteration = 1;
	c->members[DATA].beat.stage = 1;
	c->progress.rerouted = false;
	assert_true(iteration_resumes(c, &c->members[DATA]));
	assert_int_equal(c->phase, PHASE_COMPUTING);
	assert_true(c->progress.rerouted); /* said with the order */
}

/* ---- what a successor reads ---- */

static struct controller *successor(struct controller *c)
{
	struct controller *next = under_way_knowing(c->cluster);

	next->store = c->store;
	next->first_attempt = next->own_attempt = 1000;
	takeover_read(next);
	return next;
}

static void knows_the_changed_routes(const struct controller *c, const struct controller *next)
{
	assert_non_null(next->takeover.plan);
	assert_int_equal(next->takeover.first, FIRST);
	assert_int_equal(next->first_attempt, 1000);
	for (uint32_t i = 0; i < N; i++) {
		const struct microbatch *a = &c->routes.microbatches[i], *b = &next->routes.microbatches[i];

		assert_int_equal(a->route.attempt, b->route.attempt);
		assert_int_equal(a->nodes[0], b->nodes[0]);
		assert_int_equal(a->nodes[1], b->nodes[1]);
		assert_true(b->nodes[1] != 4);
		assert_int_equal(b->moved, b->route.attempt > FIRST);
		assert_int_equal(a->route.since, b->route.since);
		assert_int_equal(a->owed_forward, b->owed_forward);
		assert_int_equal(a->owed_backward, b->owed_backward);
		assert_int_equal(b->owed_forward != 0, b->moved);
	}
	for (int i = 0; i < NODES; i++)
		assert_int_equal(next->members[i].lost_here, i == 4);
}

static void a_successor_knows_the_changed_routes(void **state)
{
	struct controller *c = *state, *next;

	three_is_slow(c);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	next = successor(c);
	knows_the_changed_routes(c, next);
	forget(next);
}

/* Agents were told of them, so a power loss must leave them. */
static void also_after_a_power_loss(void **state)
{
	struct controller *c = *state, *next;
	struct store *own = c->store;

	three_is_slow(c);
	watch_disk(c);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_true(disk.synced > 0);
	disk.folder = NULL;
	assert_int_equal(store_resume(&c->store, disk.copy, NULL), 0);
	next = successor(c);
	knows_the_changed_routes(c, next);
	forget(next);
	store_close(c->store);
	c->store = own;
	forget_disk();
}

/* The disk is waited for when something has become of the plan, and else not. */
static void what_goes_as_planned_waits_for_no_disk(void **state)
{
	struct controller *c = *state;

	takeover_record(c);
	watch_disk(c);
	takeover_record(c);
	assert_int_equal(disk.synced, 0);
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_int_equal(disk.synced, 1);
	c->iteration++;
	c->members[4].lost_here = false;
	assert_int_equal(routes_from_plan(&c->routes, c->current->plan, c->shard_of, DATA, EACH, FIRST, NULL), 0);
	takeover_record(c);
	assert_int_equal(disk.synced, 1);
	c->first_attempt++; /* it begins anew */
	assert_int_equal(routes_from_plan(&c->routes, c->current->plan, c->shard_of, DATA, EACH, FIRST + 1, NULL), 0);
	takeover_record(c);
	assert_int_equal(disk.synced, 2);
	forget_disk();
}

/* Nobody is told of what a successor would not know. */
static void who_cannot_record_tells_nobody(void **state)
{
	struct controller *c = *state;
	struct store *other;
	char lock[128];

	snprintf(lock, sizeof(lock), "%s/run.lock", c->options.run_dir);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(store_resume(&other, c->options.run_dir, NULL), 0); /* has taken the run over */
	members_gone(c, &c->members[4], "is gone");
	loop_act(c);
	assert_int_equal(c->phase, PHASE_FINISHED);
	assert_true(c->ending.unrecorded);
	assert_false(c->progress.rerouted);
	store_close(other);
}

static void record(struct controller *c, const char *routes, int iteration)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"iteration\":%d,\"first_attempt\":%d,\"gone\":[],\"routes\":[%s]}",
		 iteration, FIRST, routes);
	assert_int_equal(store_set(c->store, "under_way", text, NULL), 0);
}

static bool carries(struct controller *c)
{
	struct controller *next = successor(c);
	bool any = next->takeover.plan != NULL;

	forget(next);
	return any;
}

/* The rest of a route: hops as bits. */
#define SINCE(attempt, hops)                                                                       \
	",\"since\":" #attempt ",\"owed_forward\":" #hops ",\"owed_backward\":" #hops ",\"owed_loss\":false}"

static void what_does_not_fit_is_not_carried_on(void **state)
{
	static const char *const bad[] = {
		"{\"microbatch\":12,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":5,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,6],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,2],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0],\"stages\":[0]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,\"3\"],\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"stages\":[0,1]" SINCE(5, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(4, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(7, 2),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(5, 4),
		"{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]}",
		"7",
	};
	struct controller *c = *state;

	record(c, "{\"microbatch\":0,\"attempt\":6,\"nodes\":[0,3],\"stages\":[0,1]" SINCE(5, 2), 1);
	assert_true(carries(c));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		record(c, bad[i], 1);
		assert_false(carries(c));
		record(c, bad[i], 2); /* of another iteration: it is not looked at */
		assert_true(carries(c));
	}
	assert_int_equal(store_set(c->store, "under_way", "{\"iteration\":1", NULL), 0);
	assert_false(carries(c));
}

/* ---- links that are cut ---- */

static bool says(const struct controller *c, const char *words)
{
	for (uint32_t i = 0; i < c->journal.n_notes; i++)
		if (strstr(c->journal.notes[i].text, words))
			return true;
	return false;
}

static bool anyone_is_out(const struct controller *c)
{
	for (int i = 0; i < NODES; i++)
		if (!c->members[i].replica)
			return true;
	return false;
}

/* Nothing has come through for 0.9 s, where something was to within 0.25. */
static void complains(struct controller *c, uint16_t from, uint16_t to)
{
	struct msg_stuck s = { to, 900, 250 };
	struct msg_heartbeat h = { .n_stuck = 1, .stuck = &s };

	for (int i = 0; i < NODES; i++)
		c->members[i].heard_us = c->now_us;
	link_failures_hear(c, &c->members[from], &h);
	link_failures_check(c);
	loop_act(c);
}

static bool any_needs(const struct controller *c, uint16_t a, uint16_t b)
{
	for (uint32_t i = 0; i < N; i++)
		if (routes_need(&c->routes.microbatches[i], a, b))
			return true;
	return false;
}

static void what_needs_a_cut_link_goes_around_it(void **state)
{
	struct controller *c = *state;
	uint16_t data = c->routes.microbatches[0].nodes[0], next = second_of(c, 0);
	uint32_t moved = 0;

	does(c, data, 0, WORK_FORWARD, FIRST, 0.1);
	complains(c, data, next);
	assert_int_equal(c->phase, PHASE_COMPUTING);
	assert_false(anyone_is_out(c) || any_needs(c, data, next));
	for (uint32_t i = 0; i < N; i++) {
		const struct microbatch *m = &c->routes.microbatches[i];

		assert_int_equal(m->moved, m->route.attempt > FIRST);
		assert_int_equal(m->route.since, FIRST);
		moved += m->moved;
	}
	assert_true(moved > 0);
	assert_true(says(c, "nothing came through for 0.9 s, expected within 0.2"));
	assert_true(says(c, "go around the link"));
	assert_false(replan_usable(c, c->current)); /* later plans do too */
	assert_true(c->plan_wanted > 0 && c->sooner_plan == c->plan_wanted);
}

/* What the neighbours kept is sent to the node that stands in, and the rest is as it was. */
static void what_had_come_through_stays(void **state)
{
	struct controller *c = *state;
	struct microbatch *m = &c->routes.microbatches[0];
	uint16_t data = m->nodes[0], next = m->nodes[1];

	does(c, data, 0, WORK_FORWARD, FIRST, 0.1);
	does(c, next, 0, WORK_FORWARD, FIRST, 0.1);
	does(c, data, 0, WORK_LOSS, FIRST, 0.1); /* the loss is counted at n.., so only the other may change */
	complains(c, data, next);
	assert_int_equal(m->nodes[0], data);
	assert_true(m->nodes[1] != next && m->route.attempt == FIRST + 1);
	does(c, m->nodes[1], 0, WORK_FORWARD, FIRST + 1, 0.1);
	does(c, m->nodes[1], 0, WORK_BACKWARD, FIRST + 1, 0.1);
	does(c, data, 0, WORK_BACKWARD, FIRST + 1, 0.1);
	assert_true(m->done);
	assert_true(routes_counted(&c->routes, 0));
}

/* Both have counted, and the gradient cannot get from one to the other. */
static void where_nobody_can_stand_in_one_end_goes_and_may_come_back(void **state)
{
	struct controller *c = *state;
	uint16_t data = c->routes.microbatches[0].nodes[0], next = second_of(c, 0);
	struct member *out = &c->members[next];
	struct msg_heartbeat h = { .beat = 1, .committed = 0 };

	does(c, data, 0, WORK_FORWARD, FIRST, 0.1);
	does(c, next, 0, WORK_FORWARD, FIRST, 0.1);
	does(c, data, 0, WORK_LOSS, FIRST, 0.1);
	does(c, next, 0, WORK_BACKWARD, FIRST, 0.1);
	complains(c, next, data);
	assert_true(link_failures_between(c, data, next));
	assert_int_equal(out->state, NODE_DEAD);
	assert_int_equal(c->phase, PHASE_COMPUTING);
	assert_true(second_of(c, 0) != next);
	assert_true(says(c, "run again without"));
	members_heartbeat(c, out, &h);
	loop_act(c);
	assert_true(out->state != NODE_DEAD); /* though the link is still not there */
	assert_true(link_failures_between(c, data, next));
}

/* Of the others nobody is left to go around it. */
static void a_link_that_all_have_to_use_costs_one_end(void **state)
{
	struct controller *c = *state;
	uint16_t data = c->routes.microbatches[0].nodes[0], next = second_of(c, 0);
	uint32_t out = 0;

	for (uint16_t i = 0; i < NODES; i++)
		if (i != data && i != next)
			c->cluster->delay_s[i * NODES + data] = c->cluster->delay_s[next * NODES + i] = -1;
	complains(c, data, next);
	for (uint16_t i = 0; i < NODES; i++)
		out += !c->members[i].replica;
	assert_int_equal(out, 1);
	assert_true(!c->members[data].replica || !c->members[next].replica);
	assert_false(any_needs(c, data, next));
}

static void a_validation_goes_around_it(void **state)
{
	struct controller *c = *state;
	uint16_t a, b;

	c->options.eval_batches = 6;
	evaluation_begin(c);
	a = c->evaluation.microbatches[4].nodes[0];
	b = c->evaluation.microbatches[4].nodes[1];
	assert_true(evaluation_needs(c, a, b) && evaluation_needs(c, b, a));
	complains(c, b, a);
	assert_int_equal(c->phase, PHASE_EVALUATING);
	assert_false(anyone_is_out(c) || evaluation_needs(c, a, b));
}

/* ---- waiting for a sleeper ---- */

static void the_more_is_lost_the_longer_a_sleeper_is_awaited(void **state)
{
	struct controller *c = *state;

	c->curves.history = calloc(1, sizeof(*c->curves.history));
	assert_non_null(c->curves.history);
	c->curves.history[0].real_s = 2;
	c->curves.n_history = 1;
	c->options.checkpoint_every = 50;
	c->committed = 102; /* two iterations are little */
	assert_int_equal(recover_patience_us(c), 5 * SECOND);
	c->committed = 112;
	assert_int_equal(recover_patience_us(c), 12 * SECOND);
	c->committed = 149;
	assert_int_equal(recover_patience_us(c), 30 * SECOND);
	c->options.checkpoint_every = 0; /* all would be lost */
	c->committed = 100;
	assert_int_equal(recover_patience_us(c), 30 * SECOND);
	c->curves.n_history = 0;
	assert_int_equal(recover_patience_us(c), 5 * SECOND);
}

static int end(void **state)
{
	disk.folder = NULL;
	return under_way_end(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, under_way_begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_has_not_begun_goes_around_a_slow_node),
		TEST(a_baseline_waits_for_its_next_plan),
		TEST(a_count_that_crossed_a_move_begins_the_iteration_anew),
		TEST(a_pause_waits_for_what_begins_anew),
		TEST(without_a_move_it_is_a_lie),
		TEST(while_a_stage_is_lost_it_waits),
		TEST(who_would_wait_in_a_circle_begins_again),
		TEST(who_finds_a_slot_goes_on),
		TEST(who_is_free_by_now_stands_in),
		TEST(who_is_busy_does_not),
		TEST(who_dies_after_its_sum_stays_in_the_record),
		TEST(who_died_in_a_sum_is_not_in_the_next),
		TEST(nor_is_it_when_another_stage_loses_one),
		TEST(nor_when_it_is_back),
		TEST(whatever_became_of_its_place),
		TEST(nor_after_a_stage_was_awaited),
		TEST(what_ended_meanwhile_is_summed),
		TEST(what_was_told_to_nobody_begins_anew),
		TEST(who_is_back_hears_of_other_ways),
		TEST(a_successor_knows_the_changed_routes),
		TEST(also_after_a_power_loss),
		TEST(what_goes_as_planned_waits_for_no_disk),
		TEST(who_cannot_record_tells_nobody),
		TEST(what_does_not_fit_is_not_carried_on),
		TEST(what_needs_a_cut_link_goes_around_it),
		TEST(what_had_come_through_stays),
		TEST(where_nobody_can_stand_in_one_end_goes_and_may_come_back),
		TEST(a_link_that_all_have_to_use_costs_one_end),
		TEST(a_validation_goes_around_it),
		TEST(the_more_is_lost_the_longer_a_sleeper_is_awaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
