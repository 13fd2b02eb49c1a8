/* Tests one node's part in a reduction: the orders that it accepts, the slices that it sends, and
 * the slices that it accepts. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/execution/compute.h"
#include "agent/execution/queue.h"
#include "agent/execution/tasks.h"
#include "agent/sums/reduction.h"
#include "agent/sums/slices.h"
#include "agent/tensors/delay_queue.h"
#include "agent/tests/lone_agent.h"
#include "base/tests/test.h"

enum { NODES = 6, ME = 1, STAGE = 2, P = 31, COMMITTED = 4, NEXT = 5, SECOND = 1000000 };

static const uint16_t replicas[] = { 0, ME, 3 };

/* Makes an agent that has no worker and no controller. The tests do the worker's jobs and check
 * only how many messages the agent sends. The emulated transfer of a slice takes one second. */
static int begin(void **state)
{
	struct agent *a = lone_agent_new(ME, NODES);

	a->run.welcome.time_scale = 1;
	a->held.stage = STAGE;
	a->held.parameters = P;
	a->held.committed = COMMITTED;
	for (int i = 0; i < NODES; i++)
		a->run.times.sync_s[i] = 3;
	assert_int_equal(tasks_begin_run(a->modules.tasks, 1), 0);
	*state = a;
	return 0;
}

static int end(void **state)
{
	lone_agent_free(*state);
	return 0;
}

static void order(struct agent *a, uint64_t iteration, uint32_t attempt, uint32_t n,
		  const uint16_t *nodes, uint32_t n_copies, const uint16_t *copies)
{
	const struct msg_reduce m = { iteration, attempt, STAGE, n,          nodes,
				      n_copies,  copies,  0,     FORMAT_FP32 };

	reduction_begin(a->modules.reduction, &m, queue_counts(tasks_queue(a->modules.tasks)), 0);
}

static void order_three(struct agent *a, uint32_t attempt)
{
	order(a, NEXT, attempt, 3, replicas, 0, NULL);
}

/* ---- orders ---- */

/* Checks that the agent reports an invalid order, and that the present reduction continues. */
static void refuses(struct agent *a, uint64_t iteration, uint32_t n, const uint16_t *nodes)
{
	uint64_t sent = a->tell.tally.sequence;

	for (int under_way = 0; under_way < 2; under_way++) {
		if (under_way)
			order_three(a, 1);
		order(a, iteration, 2, n, nodes, 0, NULL);
		assert_int_equal(a->tell.tally.sequence, ++sent);
		assert_false(a->tell.end.leaving);
		assert_int_equal(reduction_slices(a->modules.reduction) != NULL, under_way);
		if (under_way)
			assert_int_equal(slices_attempt(reduction_slices(a->modules.reduction)), 1);
	}
	reduction_forget(a->modules.reduction);
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, end)

FIXTURE_TEST(invalid_orders_are_refused)
{
	struct agent *a = *state;

	refuses(a, COMMITTED, 3, replicas);
	refuses(a, NEXT + 1, 3, replicas);
	refuses(a, NEXT, 3, (uint16_t[]){ 0, ME, NODES });
	refuses(a, NEXT, 2, (uint16_t[]){ NODES, ME });
	refuses(a, NEXT, 2, (uint16_t[]){ 3, ME });
	refuses(a, NEXT, 2, (uint16_t[]){ 0, 3 });
	order(a, NEXT, 1, 2, (uint16_t[]){ ME, NODES - 1 }, 0, NULL);
	assert_non_null(reduction_slices(a->modules.reduction));
}

FIXTURE_TEST(only_a_newer_attempt_restarts)
{
	struct agent *a = *state;

	order_three(a, 2);
	order_three(a, 2);
	order_three(a, 1);
	assert_int_equal(a->tell.tally.dropped, 2);
	assert_int_equal(slices_attempt(reduction_slices(a->modules.reduction)), 2);
	order_three(a, 3);
	assert_int_equal(slices_attempt(reduction_slices(a->modules.reduction)), 3);
	assert_int_equal(a->tell.tally.sequence, 0);
}

/* ---- from the gradient to the norm ---- */

/* Does the worker's job: encodes the slices of a gradient in which float k has the value k. */
static void give_gradient(struct agent *a)
{
	uint32_t n = slices_count(reduction_slices(a->modules.reduction));
	float gradient[P];

	assert_true(reduction_next_job(a->modules.reduction, &a->job));
	assert_int_equal(a->job.kind, JOB_GRADIENT);
	assert_false(reduction_next_job(a->modules.reduction, &(struct job){ 0 }));
	a->job.bodies = calloc(n, sizeof(a->job.bodies[0]));
	assert_non_null(a->job.bodies);
	for (uint32_t i = 0; i < n; i++) {
		a->job.bodies[i] = malloc(P * sizeof(float));
		assert_non_null(a->job.bodies[i]);
		for (size_t k = 0; k < P; k++)
			gradient[k] = (float)k;
		slices_encode(reduction_slices(a->modules.reduction), i,
			      i == slices_mine(reduction_slices(a->modules.reduction))
				      ? slices_own_part(reduction_slices(a->modules.reduction))
				      : a->job.bodies[i],
			      gradient, NULL);
	}
	reduction_job_done(a->modules.reduction, &a->job, 0);
	job_clear(&a->job);
}

static void give_sum(struct agent *a)
{
	uint32_t mine;

	assert_true(reduction_next_job(a->modules.reduction, &a->job));
	assert_int_equal(a->job.kind, JOB_SUM);
	assert_false(reduction_next_job(a->modules.reduction, &(struct job){ 0 }));
	mine = slices_mine(a->job.slices);
	slices_sum(a->job.slices, NULL);
	a->job.bodies = calloc(slices_count(a->job.slices), sizeof(a->job.bodies[0]));
	assert_non_null(a->job.bodies);
	a->job.bodies[mine] = malloc(P * sizeof(float));
	assert_non_null(a->job.bodies[mine]);
	memcpy(a->job.bodies[mine], slices_own_sum(a->job.slices),
	       slices_bytes(a->job.slices, mine));
	reduction_job_done(a->modules.reduction, &a->job, 0);
	job_clear(&a->job);
}

/* Delivers a slice as if it came from another node. All floats of the slice have this value. */
static int receive(struct agent *a, enum tensor_kind kind, uint16_t from, uint32_t index,
		   uint64_t iteration, uint32_t attempt, float value)
{
	struct msg m = { .type = MSG_TENSOR };
	size_t at, floats = 1;
	float body[P];

	for (int k = 0; k < P; k++)
		body[k] = value;
	if (reduction_slices(a->modules.reduction))
		slices_range(reduction_slices(a->modules.reduction), index, &at, &floats);
	m.u.tensor = (struct msg_tensor){ .kind = (uint8_t)kind,
					  .from = from,
					  .stage = STAGE,
					  .iteration = iteration,
					  .attempt = attempt,
					  .index = index };
	m.body = (const void *)body;
	m.body_size = floats * sizeof(float);
	return reduction_put(a->modules.reduction, &m);
}

/* Removes the next slice from the delay queue. Checks the slice's index, its receiver and the
 * time at which it is due. Float k of the slice must be `first` + k * `step`. */
static void leaves(struct agent *a, enum tensor_kind kind, uint16_t to, uint32_t index,
		   int64_t due_us, float first, float step)
{
	size_t from, floats;
	struct parcel p;

	assert_int_equal(delay_queue_take(a->modules.delay_queue, INT64_MAX, &p), 0);
	slices_range(reduction_slices(a->modules.reduction), index, &from, &floats);
	assert_int_equal(p.to, to);
	assert_int_equal(p.due_us, due_us);
	assert_int_equal(parcel_bytes(&p), floats * sizeof(float));
	assert_int_equal(p.head.kind, kind);
	assert_int_equal(p.head.from, ME);
	assert_int_equal(p.head.stage, STAGE);
	assert_int_equal(p.head.iteration, NEXT);
	assert_int_equal(p.head.attempt, slices_attempt(reduction_slices(a->modules.reduction)));
	assert_int_equal(p.head.index, index);
	for (size_t k = 0; k < floats; k++)
		assert_true(((float *)p.body->data)[k] == first + (float)k * step);
	parcel_free(&p);
}

FIXTURE_TEST(every_replica_and_copy_gets_its_slice)
{
	/* The order also names this node itself and a node outside the run. These two get no
	 * slice. */
	static const uint16_t copies[] = { 4, ME, NODES, 5 };
	struct agent *a = *state;
	size_t from, floats;

	order(a, NEXT, 7, 3, replicas, 4, copies);
	assert_int_equal(reduction_awaits(a->modules.reduction), -1);
	give_gradient(a);
	assert_true(a->requests.look_again);
	/* The first slice goes to the next replica in the order. The transfers do not overlap. */
	slices_range(reduction_slices(a->modules.reduction), 2, &from, &floats);
	leaves(a, TENSOR_PART, 3, 2, SECOND, (float)from, 1);
	leaves(a, TENSOR_PART, 0, 0, 2 * SECOND, 0, 1);
	assert_int_equal(delay_queue_count(a->modules.delay_queue), 0);
	assert_false(reduction_next_job(a->modules.reduction, &a->job));
	assert_int_equal(reduction_awaits(a->modules.reduction), 0);
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, NEXT, 7, 100), 0);
	assert_int_equal(reduction_awaits(a->modules.reduction), 3);
	assert_int_equal(receive(a, TENSOR_PART, 3, 1, NEXT, 7, 1000), 0);
	give_sum(a);
	slices_range(reduction_slices(a->modules.reduction), 1, &from, &floats);
	leaves(a, TENSOR_SUM, 3, 1, SECOND, (float)from + 1100, 1);
	leaves(a, TENSOR_SUM, 0, 1, 2 * SECOND, (float)from + 1100, 1);
	leaves(a, TENSOR_SUM, 4, 1, 3 * SECOND, (float)from + 1100, 1);
	leaves(a, TENSOR_SUM, 5, 1, 4 * SECOND, (float)from + 1100, 1);
	assert_int_equal(delay_queue_count(a->modules.delay_queue), 0);
	assert_int_equal(reduction_awaits(a->modules.reduction), 0);
	assert_int_equal(receive(a, TENSOR_SUM, 0, 0, NEXT, 7, 1), 0);
	assert_int_equal(reduction_awaits(a->modules.reduction), 3);
	assert_false(reduction_next_job(a->modules.reduction, &a->job));
	assert_int_equal(receive(a, TENSOR_SUM, 3, 2, NEXT, 7, 1), 0);
	assert_true(reduction_next_job(a->modules.reduction, &a->job));
	assert_int_equal(a->job.kind, JOB_NORM);
	assert_int_equal(reduction_awaits(a->modules.reduction), -1);
	assert_false(reduction_ready(a->modules.reduction, NEXT, 7));
	assert_int_equal(a->tell.tally.sequence, 0);
	reduction_job_done(a->modules.reduction, &a->job, 0);
	assert_int_equal(a->tell.tally.sequence, 1);
	assert_true(reduction_ready(a->modules.reduction, NEXT, 7));
	assert_false(reduction_ready(a->modules.reduction, NEXT, 6));
	assert_false(reduction_ready(a->modules.reduction, COMMITTED, 7));
	/* An order that repeats an earlier order is answered again. An order with an older
	 * attempt is ignored. */
	order(a, NEXT, 7, 3, replicas, 4, copies);
	assert_int_equal(a->tell.tally.sequence, 2);
	order(a, NEXT, 6, 3, replicas, 4, copies);
	assert_int_equal(a->tell.tally.sequence, 2);
	reduction_forget(a->modules.reduction);
	assert_false(reduction_ready(a->modules.reduction, NEXT, 7));
}

FIXTURE_TEST(a_single_replica_sends_only_to_copies)
{
	static const uint16_t me[] = { ME }, copies[] = { 4 };
	struct agent *a = *state;

	for (uint32_t n = 0; n < 2; n++) {
		order(a, NEXT, 1 + n, 1, me, n, copies);
		give_gradient(a);
		assert_int_equal(delay_queue_count(a->modules.delay_queue), 0);
		give_sum(a);
		if (n == 1)
			leaves(a, TENSOR_SUM, 4, 0, 3 * SECOND, 0, 1);
		assert_int_equal(delay_queue_count(a->modules.delay_queue), 0);
		assert_true(reduction_next_job(a->modules.reduction, &a->job));
		assert_int_equal(a->job.kind, JOB_NORM);
	}
}

/* If a job ends after its reduction was dropped, the result of the job changes nothing. */
FIXTURE_TEST(a_late_result_of_the_worker_is_dropped)
{
	struct agent *a = *state;
	struct job late = { .kind = JOB_SUM };

	reduction_job_done(a->modules.reduction, &late, 0);
	assert_int_equal(a->tell.tally.sequence, 0);
	assert_int_equal(delay_queue_count(a->modules.delay_queue), 0);
}

/* ---- slices from other nodes ---- */

FIXTURE_TEST(slices_of_other_attempts_are_ignored)
{
	struct agent *a = *state;

	/* A slice that arrives before the order must wait. A slice of a committed iteration is
	 * dropped. */
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, NEXT, 3, 0), -EAGAIN);
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, COMMITTED, 3, 0), 0);
	assert_int_equal(a->tell.tally.dropped, 1);
	order_three(a, 3);
	give_gradient(a);
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, NEXT + 1, 3, 0), -EAGAIN);
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, NEXT + 1, 2, 0), -EAGAIN);
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, NEXT, 4, 0), -EAGAIN);
	assert_int_equal(receive(a, TENSOR_SUM, 0, 0, NEXT, 4, 0), -EAGAIN);
	assert_int_equal(a->tell.tally.dropped, 1);
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, NEXT, 2, 0), 0);
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, COMMITTED, 9, 0), 0);
	assert_int_equal(a->tell.tally.dropped, 3);
	assert_int_equal(reduction_awaits(a->modules.reduction), 0);
	/* Each slice is accepted once. Slices for another replica, and slices from a node outside
	 * the reduction, are refused. */
	assert_int_equal(receive(a, TENSOR_PART, 0, 2, NEXT, 3, 0), -EINVAL);
	assert_int_equal(receive(a, TENSOR_PART, 4, 1, NEXT, 3, 0), -EINVAL);
	assert_int_equal(a->tell.tally.dropped, 3);
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, NEXT, 3, 0), 0);
	assert_int_equal(a->tell.tally.dropped, 3);
	assert_int_equal(reduction_awaits(a->modules.reduction), 3);
	assert_int_equal(receive(a, TENSOR_PART, 0, 1, NEXT, 3, 0), 0);
	assert_int_equal(a->tell.tally.dropped, 4);
}

static void hold(struct agent *a, enum tensor_kind kind, uint64_t iteration, uint32_t attempt)
{
	struct parcel p = {
		.to = 3,
		.head = { .kind = (uint8_t)kind, .iteration = iteration, .attempt = attempt }
	};

	assert_int_equal(delay_queue_add(a->modules.delay_queue, &p), 0);
}

/* A new attempt drops the slices of older attempts that wait to be sent. Otherwise the old slices
 * would delay the slices of the new attempt. */
FIXTURE_TEST(an_attempt_drops_the_slices_of_older_ones)
{
	struct agent *a = *state;
	struct parcel p;

	hold(a, TENSOR_PART, NEXT, 1);
	hold(a, TENSOR_SUM, NEXT, 2);
	for (uint32_t stays = 0; stays < 2; stays++) {
		/* This sum stays, because a standby copy that is late may need it. */
		hold(a, TENSOR_SUM, COMMITTED, 1 + stays);
		hold(a, TENSOR_ACTIVATION, NEXT, stays);
		hold(a, TENSOR_PART, NEXT, 3 + stays);
	}
	order_three(a, 3);
	assert_int_equal(a->tell.tally.dropped, 2);
	assert_int_equal(delay_queue_count(a->modules.delay_queue), 6);
	while (delay_queue_take(a->modules.delay_queue, INT64_MAX, &p) == 0)
		assert_true(p.head.iteration == COMMITTED || p.head.kind == TENSOR_ACTIVATION ||
			    p.head.attempt >= 3);
}
