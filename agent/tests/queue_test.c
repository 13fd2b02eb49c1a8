/* Tests each rule by which the queue chooses the next task. */

#include <stdlib.h>
#include <string.h>

#include "agent/execution/queue.h"
#include "agent/tests/tasks.h"
#include "base/tests/test.h"

static struct route two_hops(uint32_t microbatch, uint32_t attempt)
{
	return (struct route) { .microbatch = microbatch,
				.attempt = attempt,
				.n_hops = 2,
				.nodes = { 0, 1 },
				.stages = { 0, 1 } };
}

static enum queue_verdict arrive(struct queue *q, uint32_t microbatch, uint32_t attempt,
				 uint32_t position, int64_t now)
{
	struct route r = two_hops(microbatch, attempt);
	struct task *t = new_task(&r, position, now);
	enum queue_verdict v = queue_arrive(q, t);

	if (v != QUEUE_TAKEN)
		task_free(t);
	return v;
}

TEST(test_verdicts)
{
	struct queue *q;

	assert_int_equal(queue_new(&q, 1), 0);
	assert_int_equal(arrive(q, 5, 1, 3, 0), QUEUE_ORPHAN);
	assert_int_equal(arrive(q, 5, 1, 1, 0), QUEUE_TAKEN);
	assert_int_equal(arrive(q, 5, 1, 1, 0), QUEUE_TWICE);
	assert_int_equal(arrive(q, 5, 0, 1, 0), QUEUE_OLD);
	assert_int_equal(arrive(q, 5, 2, 1, 0), QUEUE_TAKEN);
	assert_int_equal(queue_waiting(q), 1);
	assert_false(queue_supersede(q, 5, 2));
	assert_true(queue_supersede(q, 5, 3));
	assert_int_equal(queue_waiting(q), 0);
	queue_free(q);
}

/* A substitute may receive the gradient before the activation. */
TEST(test_an_early_gradient)
{
	struct queue *q;
	struct task *t;

	assert_int_equal(queue_new(&q, 1), 0);
	queue_supersede(q, 5, 1);
	assert_int_equal(arrive(q, 5, 1, 3, 0), QUEUE_TAKEN);
	assert_null(queue_start(q, 0));
	assert_true(queue_blocked(q));
	/* The B waits for the F of its own microbatch, so the wait is not reported as a
	 * collision. */
	assert_null(queue_announce_waiter(q));
	assert_int_equal(arrive(q, 5, 1, 1, 4), QUEUE_TAKEN);
	t = queue_start(q, 4);
	assert_int_equal(t->kind, TASK_FORWARD);
	assert_null(queue_announce_waiter(q));
	task_free(queue_end(q));
	t = queue_start(q, 6);
	assert_int_equal(t->kind, TASK_BACKWARD);
	assert_true(t->count);
	task_free(queue_end(q));
	assert_int_equal(queue_slots_held(q), 0);
	queue_free(q);
}

/* If another node of the route is replaced, waiting and running tasks stay valid and keep their
 * slots. The tasks' events still name the attempt with which the tasks arrived. */
TEST(test_going_on)
{
	struct route r = two_hops(1, 1);
	struct queue *q;
	struct task *t;

	assert_int_equal(queue_new(&q, 1), 0);
	arrive(q, 1, 0, 1, 0);
	arrive(q, 2, 0, 1, 0);
	assert_int_equal(queue_start(q, 0)->route.microbatch, 1);
	r.nodes[0] = 3;
	assert_true(queue_continue(q, &r));
	assert_false(queue_continue(q, &r));
	t = queue_end(q);
	assert_false(t->stale);
	assert_int_equal(t->route.nodes[0], 3);
	assert_int_equal(t->attempt, 0);
	task_free(t);
	assert_int_equal(queue_slots_held(q), 1);
	assert_int_equal(arrive(q, 1, 1, 1, 2), QUEUE_TWICE);
	r = two_hops(2, 1);
	r.nodes[0] = 3;
	assert_true(queue_continue(q, &r));
	assert_int_equal(queue_waiting(q), 1);
	assert_null(queue_start(q, 3));
	arrive(q, 1, 1, 3, 4);
	assert_int_equal(queue_start(q, 4)->route.microbatch, 1);
	task_free(queue_end(q));
	t = queue_start(q, 5);
	assert_int_equal(t->route.microbatch, 2);
	assert_int_equal(t->route.nodes[0], 3);
	queue_free(q);
}

TEST(test_running_task_of_an_older_attempt)
{
	struct queue *q;
	struct task *t;

	assert_int_equal(queue_new(&q, 1), 0);
	arrive(q, 1, 0, 1, 0);
	assert_non_null(queue_start(q, 0));
	task_free(queue_end(q));
	arrive(q, 1, 0, 3, 5);
	assert_non_null(queue_start(q, 5));
	/* The microbatch restarts while its B runs. The microbatch's slot becomes free only when
	 * the B ends. */
	assert_int_equal(arrive(q, 1, 1, 1, 6), QUEUE_TAKEN);
	assert_int_equal(queue_slots_held(q), 1);
	t = queue_end(q);
	assert_true(t->stale);
	assert_true(t->count);
	task_free(t);
	assert_int_equal(queue_slots_held(q), 0);
	assert_non_null(queue_start(q, 8));
	task_free(queue_end(q));
	assert_int_equal(arrive(q, 1, 1, 3, 9), QUEUE_TAKEN);
	assert_non_null(queue_start(q, 9));
	t = queue_end(q);
	assert_false(t->stale);
	assert_false(t->count); /* the gradient was counted in an earlier attempt */
	task_free(t);
	assert_int_equal(queue_slots_held(q), 0);
	queue_free(q);
}

TEST(test_blockers)
{
	const struct task *t;
	struct queue *q;

	assert_int_equal(queue_new(&q, 1), 0);
	arrive(q, 1, 0, 1, 0);
	assert_non_null(queue_start(q, 0));
	assert_null(queue_announce_waiter(q));
	arrive(q, 2, 0, 1, 1);
	t = queue_announce_waiter(q);
	assert_non_null(t);
	assert_int_equal(t->route.microbatch, 2);
	assert_int_equal(t->blocker, 1);
	assert_null(queue_announce_waiter(q));
	task_free(queue_end(q));
	assert_null(queue_start(q, 3));
	assert_true(queue_blocked(q));
	assert_int_equal(queue_slots_held(q), 1);
	arrive(q, 1, 0, 3, 4);
	assert_false(queue_blocked(q));
	assert_int_equal(queue_start(q, 4)->route.microbatch, 1);
	task_free(queue_end(q));
	assert_int_equal(queue_start(q, 5)->route.microbatch, 2);
	queue_free(q);
}

TEST(test_clear_keeps_what_runs)
{
	struct route r = two_hops(3, 0);
	struct queue *q;
	struct task *t;

	assert_int_equal(queue_new(&q, 2), 0);
	arrive(q, 1, 0, 1, 0);
	arrive(q, 2, 0, 1, 0);
	assert_non_null(queue_start(q, 0));
	t = new_task(&r, 1, 0);
	t->evaluate = true;
	assert_int_equal(queue_arrive(q, t), QUEUE_TAKEN);
	queue_clear(q);
	assert_int_equal(queue_waiting(q), 1);
	assert_int_equal(queue_slots_held(q), 1);
	t = queue_end(q);
	assert_true(t->stale);
	task_free(t);
	assert_int_equal(queue_slots_held(q), 0);
	assert_int_equal(arrive(q, 1, 0, 1, 1), QUEUE_TAKEN);
	assert_true(queue_start(q, 1)->evaluate);
	queue_clear_evaluations(q);
	t = queue_end(q);
	assert_true(t->stale);
	task_free(t);
	queue_free(q);
}

/* A task of a restarted microbatch runs before tasks with a rank. Tasks with a rank run before
 * tasks without a rank, even if a task without a rank has waited longer. */
TEST(a_restarted_task_goes_first)
{
	struct route r = { .n_hops = 1 };
	struct msg_rank rank = { 2, TASK_FORWARD };
	const uint32_t order[] = { 1, 2, 0 };
	struct queue *q;

	assert_int_equal(queue_new(&q, 3), 0);
	queue_rank(q, &rank, 1);
	for (uint32_t id = 0; id < 3; id++) {
		r.microbatch = id;
		r.attempt = id == 1;
		queue_supersede(q, id, r.attempt);
		assert_int_equal(queue_arrive(q, new_task(&r, 0, id)), QUEUE_TAKEN);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(queue_start(q, 10)->route.microbatch, order[i]);
		task_free(queue_end(q));
	}
	queue_free(q);
}
