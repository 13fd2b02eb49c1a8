/* The iteration under way: what moves within it when a node is slow, a count that crosses such a move,
 * and what a successor reads of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/setup.h"
#include "controller/tests/under_way.h"

/* All but the store and the cluster: a successor has the same. */
static void forget(struct controller *c)
{
	c->store = NULL;
	c->cluster = NULL;
	controller_fini(c);
	free(c);
}

/* The node tells that it did its pass of the microbatch. */
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
	assert_non_null(strstr(c->notes[c->n_notes - 1].text, "take other ways"));
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
	iteration_turn(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->step);
	c->step = false;
	iteration_turn(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	c->redo = false;
	iteration_turn(c);
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
	assert_true(c->taken_over);
	for (int node = 0; node < DATA; node++)
		c->members[node].replica = true;
	recover_turn(c);
	assert_int_equal(c->phase, PHASE_PLANNING);
	assert_true(c->redo);
}

/* ---- slots that would wait in a circle ---- */

/* Two are left, of one slot each at n00 and n03. m0 holds that at n00 and waits for that at n03, which the
 * other holds; and when the other's data node is gone, n00 alone can stand in. */
static struct microbatch *nearly_a_circle(struct controller *c)
{
	struct microbatch *other = NULL;

	for (uint32_t i = 0; i < N; i++) {
		struct microbatch *m = &c->routes.microbatches[i];

		if (i > 0 && !other && m->nodes[0] == 1)
			other = m;
		else if (i > 0)
			m->done = true;
		if (m->done)
			m->nodes[0] = 0;
	}
	assert_non_null(other);
	c->routes.microbatches[0].nodes[0] = 0;
	c->routes.microbatches[0].nodes[1] = other->nodes[1] = 3;
	does(c, 0, 0, WORK_FORWARD, FIRST, 0.1);
	does(c, 1, other->route.microbatch, WORK_FORWARD, FIRST, 0.1);
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
	assert_int_equal(other->nodes[0], 0);
	assert_true(other->route.attempt > FIRST);
	assert_int_equal(other->route.since, FIRST);
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
	struct msg_reduced r = { .iteration = 1, .attempt = c->reduce_attempt, .stage = (uint8_t)(node / DATA),
				 .sum_squares = 1, .n_slices = DATA, .slices = slices };

	iteration_reduced(c, &c->members[node], &r);
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

/* ---- what a successor reads ---- */

static struct controller *successor(struct controller *c)
{
	struct controller *next = under_way_knowing(c->cluster);

	next->store = c->store;
	next->first_attempt = next->own_attempt = 1000;
	carry_read(next);
	return next;
}

static void a_successor_knows_the_changed_routes(void **state)
{
	struct controller *c = *state, *next;

	three_is_slow(c);
	members_gone(c, &c->members[4], "is gone");
	next = successor(c);
	assert_non_null(next->carried);
	assert_int_equal(next->carried_first, FIRST);
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
	forget(next);
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
	bool any = next->carried != NULL;

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

/* ---- waiting for a sleeper ---- */

static void the_more_is_lost_the_longer_a_sleeper_is_awaited(void **state)
{
	struct controller *c = *state;

	c->history = calloc(1, sizeof(*c->history));
	assert_non_null(c->history);
	c->history[0].real_s = 2;
	c->n_history = 1;
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
	c->n_history = 0;
	assert_int_equal(recover_patience_us(c), 5 * SECOND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, under_way_begin, under_way_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_has_not_begun_goes_around_a_slow_node),
		TEST(a_count_that_crossed_a_move_begins_the_iteration_anew),
		TEST(a_pause_waits_for_what_begins_anew),
		TEST(without_a_move_it_is_a_lie),
		TEST(while_a_stage_is_lost_it_waits),
		TEST(who_would_wait_in_a_circle_begins_again),
		TEST(who_finds_a_slot_goes_on),
		TEST(who_dies_after_its_sum_stays_in_the_record),
		TEST(a_successor_knows_the_changed_routes),
		TEST(what_does_not_fit_is_not_carried_on),
		TEST(the_more_is_lost_the_longer_a_sleeper_is_awaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
