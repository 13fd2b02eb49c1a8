/* Whole agents under a controller that does what the test says, held against the same training
 * by the model's code alone: same gradients counted in the same order, same weights, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "agent/needs.h"
#include "agent/tests/cluster.h"
#include "base/clock.h"
#include "base/rng.h"

static void check_training(bool bf16)
{
	struct cluster *c = cluster_make(6, cluster_six);

	c->bf16 = bf16;
	cluster_gather(c);
	cluster_route_six(c);
	for (int i = 0; i < 3; i++)
		cluster_iterate(c);
	cluster_evaluate(c, 4);
	for (uint32_t k = 0; k < 4; k++)
		assert_true(c->evaluated[k] == cluster_twin_evaluation(c, k));
	cluster_iterate(c);
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

static void test_training(void **state)
{
	(void)state;
	check_training(false);
}

static void test_training_in_bf16(void **state)
{
	(void)state;
	check_training(true);
}

/* ---- a node dies, another one comes ---- */

static bool three_has_counted(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_events; i++)
		if (c->events[i].node == 3 && c->events[i].counted)
			return true;
	return false;
}

static bool all_are_ready(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (c->nodes[i].agent && !c->nodes[i].ready)
			return false;
	return true;
}

static bool three_is_back(struct cluster *c)
{
	return c->nodes[3].said_hello;
}

static bool three_is_ready(struct cluster *c)
{
	return c->nodes[3].ready;
}

/* Everything that node 3 had a part in goes by node 2. */
static uint32_t without_three(struct cluster *c)
{
	uint32_t which = 0;

	for (uint32_t m = 0; m < c->n_batches; m++)
		for (uint32_t i = 0; i < c->routes[m].n_hops; i++)
			if (c->routes[m].nodes[i] == 3) {
				c->routes[m].nodes[i] = 2;
				which |= 1u << m;
			}
	return which;
}

static void join_three(struct cluster *c)
{
	cluster_start_agent(c, 3);
	cluster_until(c, three_is_back, "hello of the new node 3");
	assert_int_equal(c->nodes[3].hello.run, 0);
	cluster_welcome(c, 3);
	cluster_peers(c);
	cluster_assign(c, 3, 2);
	cluster_until(c, three_is_ready, "node 3 to have node 2's weights");
	assert_int_equal(c->nodes[3].ready_said.iteration, c->nodes[2].committed.iteration);
	assert_true(c->nodes[3].ready_said.hash == c->nodes[2].committed.hash);
}

/* Whoever is still there has ended no task twice. */
static void nothing_was_done_twice(const struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_events; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct msg_task_event *a = &c->events[i], *b = &c->events[k];

			assert_false(a->type == WORK_ENDS && b->type == WORK_ENDS && a->node == b->node &&
				     a->microbatch == b->microbatch && a->kind == b->kind);
		}
}

static void check_death_and_join(bool bf16)
{
	struct cluster *c = cluster_make(6, cluster_six);

	c->bf16 = bf16;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	cluster_start(c);
	cluster_until(c, three_has_counted, "node 3 to count");
	cluster_kill(c, 3);
	cluster_reroute(c, without_three(c), 3);
	cluster_finish(c);
	nothing_was_done_twice(c);
	cluster_iterate(c);
	join_three(c);
	/* It takes part with no gradient of its own, then with work. */
	cluster_start(c);
	cluster_finish(c);
	cluster_route_six(c);
	cluster_iterate(c);
	cluster_unmake(c);
}

static void test_death_and_join(void **state)
{
	(void)state;
	check_death_and_join(false);
}

/* Who stands in gets the same bits: rounded once, from the same floats. */
static void test_death_and_join_in_bf16(void **state)
{
	(void)state;
	check_death_and_join(true);
}

/* The twins compute each backward pass in one call: in two it gives the same bits, in the order in
 * which the weights' parts were done, whoever dies. */
static void test_split_backward(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);
	uint32_t weights = 0;

	(void)state;
	c->split = true;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	for (uint32_t i = 0; i < c->n_events; i++)
		weights += c->events[i].type == WORK_ENDS && c->events[i].kind == WORK_WEIGHTS;
	assert_true(weights >= c->n_batches);
	cluster_start(c);
	cluster_until(c, three_has_counted, "node 3 to count");
	cluster_kill(c, 3);
	cluster_reroute(c, without_three(c), 3);
	cluster_finish(c);
	join_three(c);
	cluster_route_six(c);
	cluster_iterate(c);
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

/* In the middle of an iteration: the joiner hears of it by the reduction, or by a reroute. */
static void test_join_in_between(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);

	(void)state;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	cluster_kill(c, 3);
	without_three(c);
	cluster_start(c);
	join_three(c);
	cluster_until(c, cluster_all_through, "all microbatches");
	cluster_reduce(c, 1);
	/* Two is gone before the commit; three does its work. */
	cluster_kill(c, 2);
	for (uint32_t m = 0; m < c->n_batches; m++)
		for (uint32_t i = 0; i < c->routes[m].n_hops; i++)
			if (c->routes[m].nodes[i] == 2)
				c->routes[m].nodes[i] = 3;
	cluster_reroute(c, 0xff & ~(1u << 1) & ~(1u << 5), 2);
	cluster_until(c, cluster_all_through, "the rerun");
	cluster_reduce(c, 2);
	cluster_check_twins(c);
	cluster_commit(c, 2);
	cluster_iterate(c);
	cluster_unmake(c);
}

/* ---- a copy of another stage ---- */

static bool two_keeps(struct cluster *c)
{
	return c->nodes[2].kept;
}

/* Node 2 of stage 1 keeps stage 2, fetched from its one replica while an iteration runs; it
 * follows every commit, and takes the stage over when that replica is gone. */
static void test_copy_takes_over(void **state)
{
	static const uint8_t five[] = { 0, 0, 1, 1, 2 };
	struct cluster *c = cluster_make(5, five);
	struct stage *twin;

	(void)state;
	cluster_gather(c);
	cluster_route(c, 0, 3, (uint16_t[]){ 0, 2, 4 });
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 4 });
	cluster_route(c, 2, 3, (uint16_t[]){ 0, 4, 3 });
	cluster_route(c, 3, 2, (uint16_t[]){ 1, 4 });
	cluster_iterate(c);
	cluster_start(c);
	cluster_keep(c, 2, 2, 4);
	cluster_finish(c);
	cluster_until(c, two_keeps, "the copy of stage 2");
	for (int i = 0; i < 2; i++) {
		cluster_iterate(c);
		assert_true(c->nodes[2].copy_reduced_said.sum_squares ==
			    c->nodes[4].reduced_said.sum_squares);
		assert_true(c->nodes[2].copy_committed.hash == c->nodes[4].committed.hash);
	}
	/* Node 4 dies in the middle of an iteration, which begins anew with node 2 in its
	 * place. */
	cluster_start(c);
	cluster_turns(c, 3);
	cluster_kill(c, 4);
	twin = c->twins[2];
	c->twins[2] = c->twins[4];
	c->twins[4] = twin;
	c->nodes[2].stage = 2;
	c->nodes[4].stage = 1;
	c->nodes[2].ready = false;
	cluster_send(
		c, 2,
		&(struct msg){ .type = MSG_ASSIGN, .u.assign = { ++c->assignments, 2, 1 } });
	cluster_until(c, all_are_ready, "node 2 to have stage 2");
	assert_true(c->nodes[2].ready_said.hash == stage_hash(c->twins[2]));
	c->iteration--;
	cluster_route(c, 0, 3, (uint16_t[]){ 0, 3, 2 });
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 2 });
	cluster_route(c, 2, 3, (uint16_t[]){ 0, 2, 3 });
	cluster_route(c, 3, 2, (uint16_t[]){ 1, 2 });
	for (uint32_t m = 0; m < c->n_batches; m++)
		c->routes[m].attempt++;
	cluster_iterate(c);
	cluster_iterate(c);
	cluster_unmake(c);
}

/* ---- a commit that was missed ---- */

static bool all_hello(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (!c->nodes[i].said_hello)
			return false;
	return true;
}

static bool two_keeps_none(struct cluster *c)
{
	return c->nodes[2].kept_said.hash == 0;
}

static bool three_complains(struct cluster *c)
{
	return c->nodes[3].troubles > 0;
}

/* Node 3 hears nothing of an iteration, as behind a cut link: it keeps its older weights, refuses to
 * start the next iteration with them, and catches up from the other replica. */
static void test_missed_commit(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);
	uint64_t old;

	(void)state;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	old = c->nodes[3].committed.hash;
	without_three(c);
	c->nodes[3].ready = false;
	cluster_iterate(c);
	assert_true(c->nodes[2].committed.hash != old);
	c->nodes[3].ready = true;
	cluster_start(c);
	cluster_until(c, three_complains, "node 3 to say what it holds");
	assert_non_null(strstr(c->nodes[3].trouble, "1 committed here"));
	c->nodes[3].ready = false;
	cluster_finish(c);
	/* Its own stage again, and nothing fetched: it has what it had. */
	cluster_send(c, 3, &(struct msg){ .type = MSG_ASSIGN, .u.assign = { ++c->assignments, 1, 1 } });
	cluster_until(c, three_is_ready, "node 3 with its own weights");
	assert_int_equal(c->nodes[3].ready_said.iteration, 1);
	assert_true(c->nodes[3].ready_said.hash == old);
	cluster_assign(c, 3, 2);
	cluster_until(c, three_is_ready, "node 3 to have node 2's weights");
	assert_int_equal(c->nodes[3].ready_said.iteration, 3);
	assert_true(c->nodes[3].ready_said.hash == c->nodes[2].committed.hash);
	cluster_route_six(c);
	cluster_iterate(c);
	cluster_iterate(c);
	cluster_unmake(c);
}

/* A keeper that was left out of a sum has a copy that is of no use: it says so, and is given another. */
static void test_copy_missed_commit(void **state)
{
	static const uint8_t five[] = { 0, 0, 1, 1, 2 };
	struct cluster *c = cluster_make(5, five);

	(void)state;
	cluster_gather(c);
	cluster_route(c, 0, 3, (uint16_t[]){ 0, 2, 4 });
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 4 });
	cluster_iterate(c);
	cluster_keep(c, 2, 2, 4);
	cluster_until(c, two_keeps, "the copy of stage 2");
	cluster_iterate(c);
	assert_true(c->nodes[2].copy_committed.hash == c->nodes[4].committed.hash);
	c->nodes[2].keeps = -1; /* nobody tells it of this one */
	cluster_iterate(c);
	cluster_until(c, two_keeps_none, "node 2 to say that its copy is old");
	assert_non_null(strstr(c->nodes[2].kept_said.text, "missed a commit"));
	cluster_keep(c, 2, 2, 4);
	cluster_until(c, two_keeps, "another copy of stage 2");
	cluster_iterate(c);
	assert_true(c->nodes[2].copy_committed.hash == c->nodes[4].committed.hash);
	cluster_unmake(c);
}

static bool all_but_three_committed(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (i != 3 && c->nodes[i].committed.iteration != c->iteration)
			return false;
	return true;
}

static bool three_has_committed(struct cluster *c)
{
	return c->nodes[3].committed.iteration == c->iteration;
}

/* The controller died telling a commit: node 3 never heard. It has the sum, and steps when the next
 * controller tells it again. */
static void test_commit_told_again(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct msg m = { .type = MSG_COMMIT };

	(void)state;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	cluster_start(c);
	cluster_until(c, cluster_all_through, "all microbatches");
	cluster_reduce(c, 1);
	cluster_check_twins(c);
	m.u.commit = (struct msg_commit){ c->iteration, 1, 1.0f / (float)c->n_batches, 0.01f, 0.9f,
					  0.99f, 1e-8f, 0.1f };
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (i != 3)
			cluster_send(c, i, &m);
	cluster_until(c, all_but_three_committed, "all others to commit");
	cluster_restart_controller(c);
	cluster_until(c, all_hello, "hello to the new controller");
	assert_int_equal(c->nodes[3].hello.committed + 1, c->nodes[2].hello.committed);
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_welcome(c, i);
	cluster_peers(c);
	cluster_send(c, 3, &m);
	cluster_until(c, three_has_committed, "node 3 to commit");
	assert_true(c->nodes[3].committed.hash == c->nodes[2].committed.hash);
	cluster_iterate(c);
	cluster_unmake(c);
}

static bool two_has_caught_up(struct cluster *c)
{
	return c->nodes[2].kept && c->nodes[2].copy_committed.iteration == c->iteration;
}

/* Nobody waits for the copy at node 2: its pieces and sums come late, after commits, and it comes to
 * the same weights all the same. */
static void test_copy_lags(void **state)
{
	static const uint8_t five[] = { 0, 0, 1, 1, 2 };
	struct cluster *c = cluster_make(5, five);
	bool behind = false;

	(void)state;
	cluster_gather(c);
	cluster_route(c, 0, 2, (uint16_t[]){ 0, 2 });
	cluster_route(c, 1, 3, (uint16_t[]){ 1, 3, 4 });
	cluster_route(c, 2, 3, (uint16_t[]){ 0, 4, 3 });
	cluster_route(c, 3, 2, (uint16_t[]){ 1, 4 });
	cluster_iterate(c);
	c->copies_lag = true;
	cluster_fault(c, 4, 9, FAULT_LOSS, 2, 0.7f);
	cluster_keep(c, 2, 2, 4);
	for (int i = 0; i < 5; i++) {
		cluster_iterate(c);
		behind = behind || !two_has_caught_up(c);
	}
	assert_true(behind);
	cluster_until(c, two_keeps, "the copy of stage 2");
	cluster_iterate(c);
	cluster_iterate(c);
	cluster_fault(c, 4, 9, FAULT_NONE, 2, 0);
	cluster_until(c, two_has_caught_up, "the copy to catch up");
	assert_true(c->nodes[2].copy_committed.hash == stage_hash(c->twins[4]));
	cluster_unmake(c);
}

/* ---- reruns that need not be ---- */

static void test_random_reroutes(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct rng g;

	(void)state;
	rng_init(&g, (uint64_t)clock_wall_us());
	cluster_gather(c);
	cluster_route_six(c);
	for (int i = 0; i < 4; i++) {
		cluster_start(c);
		for (int k = 0; k < 12; k++) {
			cluster_turns(c, (int)rng_below(&g, 4));
			cluster_reroute(c, rng_below(&g, 256) & rng_below(&g, 256), -1);
		}
		cluster_until(c, cluster_all_through, "all microbatches");
		cluster_reduce(c, 1);
		cluster_check_twins(c);
		cluster_commit(c, 1);
	}
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

/* ---- a reduction that is begun again ---- */

static bool four_complains(struct cluster *c)
{
	return c->nodes[4].troubles > 0;
}

static void test_reduction_retry(void **state)
{
	static const uint16_t both[] = { 4, 5 };
	struct cluster *c = cluster_make(6, cluster_six);
	struct msg m = { .type = MSG_REDUCE };

	(void)state;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_start(c);
	cluster_until(c, cluster_all_through, "all microbatches");
	/* Node 4 alone is told of attempt 1; a commit by it must be refused. */
	m.u.reduce = (struct msg_reduce){
		.iteration = 1, .attempt = 1, .stage = 2, .n_nodes = 2, .nodes = both
	};
	cluster_send(c, 4, &m);
	cluster_turns(c, 20);
	m.type = MSG_COMMIT;
	m.u.commit = (struct msg_commit) { .iteration = 1, .attempt = 1, .scale = 1 };
	cluster_send(c, 4, &m);
	cluster_until(c, four_complains, "a refusal");
	assert_non_null(strstr(c->nodes[4].trouble, "not complete"));
	cluster_reduce(c, 2);
	cluster_check_twins(c);
	/* One of an attempt that never was, and then the right one twice. */
	m.u.commit.attempt = 1;
	cluster_send(c, 4, &m);
	cluster_commit(c, 2);
	assert_int_equal(c->nodes[4].troubles, 2);
	c->nodes[4].committed.iteration = 0;
	cluster_commit(c, 2);
	cluster_iterate(c);
	cluster_unmake(c);
}

/* ---- a controller that begins again ---- */

static void test_controller_restart(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);

	(void)state;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	cluster_start(c);
	cluster_until(c, three_has_counted, "some work");
	/* What is under way from now on arrives after the new start. */
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_fault(c, i, 1, FAULT_PARTITION, -1, 0);
	cluster_turns(c, 20);
	cluster_restart_controller(c);
	cluster_until(c, all_hello, "hello to the new controller");
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		assert_true(c->nodes[i].hello.run == 77);
		assert_int_equal(c->nodes[i].hello.committed, 1);
		assert_int_equal(c->nodes[i].hello.stage, cluster_six[i]);
		assert_true(c->nodes[i].hello.hash == c->nodes[i].committed.hash);
		cluster_welcome(c, i);
	}
	cluster_peers(c);
	/* The iteration begins anew with attempts above all that still travels. */
	c->iteration--;
	for (uint32_t m = 0; m < c->n_batches; m++)
		c->routes[m].attempt += 1 << 16;
	cluster_start(c);
	cluster_turns(c, 20);
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_fault(c, i, 1, FAULT_NONE, -1, 0);
	cluster_finish(c);
	cluster_iterate(c);
	cluster_unmake(c);
}

static bool all_told_all(struct cluster *c)
{
	bool told[6] = { false };

	for (uint32_t i = 0; i < c->n_events; i++)
		told[c->events[i].node] = true;
	for (uint32_t i = 0; i < 6; i++)
		if (!told[i])
			return false;
	return true;
}

/* Or takes the iteration up: whatever happened until then is told, once. */
static void test_iteration_taken_up(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct msg recall = { .type = MSG_RECALL };

	(void)state;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	cluster_start(c);
	cluster_until(c, three_has_counted, "some work");
	cluster_reroute(c, 1 << 2, -1); /* remembered with both attempts */
	cluster_turns(c, 20);
	cluster_restart_controller(c);
	c->n_events = 0;
	memset(c->loss, 0, sizeof(c->loss));
	cluster_until(c, all_hello, "hello to the new controller");
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		assert_int_equal(c->nodes[i].hello.iteration, c->iteration);
		assert_int_equal(c->nodes[i].hello.epoch, c->epoch);
		cluster_welcome(c, i);
	}
	cluster_peers(c);
	recall.u.recall.iteration = c->iteration + 1; /* there is no such */
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_send(c, i, &recall);
	recall.u.recall.iteration = c->iteration;
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_send(c, i, &recall);
	cluster_until(c, all_told_all, "what happened");
	cluster_until(c, cluster_all_through, "all microbatches");
	cluster_reduce(c, 1 << 16);
	cluster_check_twins(c);
	cluster_commit(c, 1 << 16);
	assert_int_equal(cluster_troubles(c), 0);
	cluster_iterate(c);
	cluster_unmake(c);
}

static bool something_is_to_be_told(struct cluster *c)
{
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (report_pending(c->nodes[i].agent))
			return true;
	return false;
}

static bool something_was_told(struct cluster *c)
{
	return c->n_events > 0;
}

static bool same_event(const struct msg_task_event *a, const struct msg_task_event *b)
{
	return a->node == b->node && a->microbatch == b->microbatch && a->attempt == b->attempt &&
	       a->kind == b->kind && a->type == b->type;
}

/* What was about to be told is among what happened, and is not told again. */
static void test_what_is_recalled_is_told_once(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct msg recall = { .type = MSG_RECALL };

	(void)state;
	cluster_gather(c);
	cluster_route_six(c);
	cluster_iterate(c);
	c->stopped_us = clock_monotonic_us(); /* it is never time to tell */
	cluster_start(c);
	cluster_until(c, something_is_to_be_told, "work");
	assert_int_equal(c->n_events, 0);
	recall.u.recall.iteration = c->iteration;
	for (uint32_t i = 0; i < c->n_nodes; i++)
		cluster_send(c, i, &recall);
	cluster_until(c, something_was_told, "what happened");
	c->stopped_us = 0;
	cluster_until(c, cluster_all_through, "all microbatches");
	for (uint32_t i = 0; i < c->n_events; i++)
		for (uint32_t j = 0; j < i; j++)
			assert_false(same_event(&c->events[i], &c->events[j]));
	cluster_reduce(c, 1);
	cluster_check_twins(c);
	cluster_commit(c, 1);
	cluster_unmake(c);
}

static bool somebody_accuses(struct cluster *c)
{
	return cluster_troubles(c) > 0;
}

/* Who sent nonsense is said again: the predecessor may not have heard it. */
static void check_accusations(bool bf16, uint32_t liar)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct msg recall = { .type = MSG_RECALL };
	uint32_t said[6];
	char name[16];

	c->bf16 = bf16;
	snprintf(name, sizeof(name), "n%02u", liar);
	cluster_gather(c);
	cluster_route_six(c);
	cluster_fault(c, liar, 5, FAULT_CORRUPT, -1, 0);
	cluster_start(c);
	cluster_until(c, somebody_accuses, "an accusation");
	cluster_turns(c, 100); /* nothing moves any more */
	cluster_restart_controller(c);
	for (uint32_t i = 0; i < 6; i++) {
		said[i] = c->nodes[i].troubles;
		c->nodes[i].troubles = 0;
	}
	cluster_until(c, all_hello, "hello to the new controller");
	for (uint32_t i = 0; i < 6; i++)
		cluster_welcome(c, i);
	cluster_peers(c);
	cluster_turns(c, 50);
	assert_int_equal(cluster_troubles(c), 0);
	recall.u.recall.iteration = c->iteration;
	for (uint32_t i = 0; i < 6; i++)
		cluster_send(c, i, &recall);
	cluster_until(c, somebody_accuses, "the accusation again");
	cluster_turns(c, 50);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(c->nodes[i].troubles > 0, said[i] > 0);
		if (said[i] > 0)
			assert_non_null(strstr(c->nodes[i].trouble, name));
	}
	cluster_unmake(c);
}

static void test_accusations_are_told_again(void **state)
{
	(void)state;
	check_accusations(false, 2);
}

/* One sends what is no number, one what is absurdly large. */
static void test_nonsense_in_bf16_is_found(void **state)
{
	(void)state;
	check_accusations(true, 2);
	check_accusations(true, 3);
}

/* A node whose memory holds the stage, and not what an iteration takes besides, says so before it
 * computes anything. */
static void test_memory_is_looked_at_before_an_iteration(void **state)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct stage_options o = { .slots = CLUSTER_SLOTS, .batch = CLUSTER_BATCH,
				   .sequence = CLUSTER_SEQUENCE };
	struct stage *like;
	struct needs n;
	size_t bytes;

	(void)state;
	assert_int_equal(stage_new(&like, &c->config, cluster_six[2], &o, NULL), 0);
	n = needs_of(stage_parameters(like), stage_activation(like), 8, UINT64_MAX, false);
	bytes = stage_memory_bytes(like);
	stage_free(like);
	cluster_kill(c, 2);
	c->memory_bytes = bytes + n.total;
	cluster_start_agent(c, 2);
	cluster_gather(c);
	cluster_route_six(c);
	cluster_start(c);
	cluster_until(c, cluster_all_through, "all microbatches, with enough");
	cluster_unmake(c);
	c = cluster_make(6, cluster_six);
	cluster_kill(c, 2);
	c->memory_bytes = bytes + 1024;
	c->may_give_up = true;
	cluster_start_agent(c, 2);
	cluster_gather(c);
	cluster_route_six(c);
	cluster_start(c);
	cluster_until(c, somebody_accuses, "what is missing");
	assert_int_equal(c->nodes[2].troubles, 1);
	assert_non_null(strstr(c->nodes[2].trouble, "an iteration needs"));
	assert_non_null(strstr(c->nodes[2].trouble, "are missing"));
	for (uint32_t i = 0; i < c->n_events; i++)
		assert_int_not_equal(c->events[i].node, 2);
	cluster_unmake(c);
}

/* As with large models, made small: an activation, of six frames, is longer than all that may be under
 * way to a peer, and a slice longer than a message may be. */
static void test_what_is_large_travels(void **state)
{
	enum { CHUNK = 4096, ACTIVATION = 6 * CHUNK };
	struct cluster *c = calloc(1, sizeof(*c));

	(void)state;
	assert_non_null(c);
	c->dim = ACTIVATION / sizeof(float) / (CLUSTER_BATCH * CLUSTER_SEQUENCE);
	c->chunk_bytes = CHUNK;
	c->message_bytes = ACTIVATION + LINKS_HEAD_BYTES;
	c->retained_bytes = ACTIVATION / 4;
	cluster_init(c, 6, cluster_six);
	cluster_gather(c);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(links_activation_bytes(c->nodes[i].agent), ACTIVATION);
		assert_true(c->nodes[i].agent->parameters / 2 * sizeof(float) > c->message_bytes);
	}
	cluster_route_six(c);
	for (int i = 0; i < 2; i++)
		cluster_iterate(c);
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

/* What no message can hold is said before anything is computed. */
static void test_what_is_too_large_is_said(void **state)
{
	struct cluster *c = calloc(1, sizeof(*c));

	(void)state;
	assert_non_null(c);
	c->message_bytes = CLUSTER_BATCH * CLUSTER_SEQUENCE * 16 * sizeof(float);
	c->may_give_up = true;
	cluster_init(c, 6, cluster_six);
	cluster_gather(c);
	cluster_route_six(c);
	cluster_start(c);
	cluster_until(c, somebody_accuses, "what is too large");
	for (uint32_t i = 0; i < 6; i++)
		if (c->nodes[i].troubles > 0)
			assert_non_null(strstr(c->nodes[i].trouble, "smaller microbatches"));
	assert_int_equal(c->n_events, 0);
	cluster_unmake(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_training),
		cmocka_unit_test(test_training_in_bf16),
		cmocka_unit_test(test_death_and_join),
		cmocka_unit_test(test_death_and_join_in_bf16),
		cmocka_unit_test(test_split_backward),
		cmocka_unit_test(test_copy_takes_over),
		cmocka_unit_test(test_missed_commit),
		cmocka_unit_test(test_copy_missed_commit),
		cmocka_unit_test(test_commit_told_again),
		cmocka_unit_test(test_copy_lags),
		cmocka_unit_test(test_join_in_between),
		cmocka_unit_test(test_random_reroutes),
		cmocka_unit_test(test_reduction_retry),
		cmocka_unit_test(test_controller_restart),
		cmocka_unit_test(test_iteration_taken_up),
		cmocka_unit_test(test_what_is_recalled_is_told_once),
		cmocka_unit_test(test_accusations_are_told_again),
		cmocka_unit_test(test_nonsense_in_bf16_is_found),
		cmocka_unit_test(test_memory_is_looked_at_before_an_iteration),
		cmocka_unit_test(test_what_is_large_travels),
		cmocka_unit_test(test_what_is_too_large_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
