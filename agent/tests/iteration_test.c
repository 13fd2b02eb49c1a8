/* Tests one agent's iteration from START to commit: the orders that it accepts, and their
 * effects. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/execution/compute.h"
#include "agent/execution/queue.h"
#include "agent/execution/tasks.h"
#include "agent/sums/reduction.h"
#include "agent/sums/slices.h"
#include "agent/tensors/delay_queue.h"
#include "agent/tensors/outputs.h"
#include "agent/tests/lone_agent.h"
#include "agent/weights/standby_private.h"
#include "base/tests/test.h"

enum { NODES = 6, ME = 1, P = 8, COMMITTED = 4, NEXT = 5, EPOCH = 7, ACTIVATION = 4 };

/* Makes an agent that has no worker and no controller. The tests check only how many messages the
 * agent sends. */
static int begin(void **state)
{
	struct agent *a = lone_agent_new(ME, NODES);

	a->run.limits = (struct route_limits){ NODES, 3, 2 };
	a->held.standing = STAND_READY;
	a->held.stage = 0;
	a->held.parameters = P;
	a->held.activation = ACTIVATION;
	a->held.committed = COMMITTED;
	assert_int_equal(tasks_begin_run(a->modules.tasks, 1), 0);
	*state = a;
	return 0;
}

static int end(void **state)
{
	lone_agent_free(*state);
	return 0;
}

/* Returns a route through a data node and a node of stage 1. */
static struct route route(uint32_t microbatch, uint32_t attempt, uint16_t nodes[2],
			  uint32_t wave)
{
	return (struct route){ .microbatch = microbatch,
			       .attempt = attempt,
			       .shard = microbatch % 2,
			       .wave = wave,
			       .n_hops = 2,
			       .nodes = { nodes[0], nodes[1] },
			       .stages = { 0, 1 } };
}

static void take_plan(struct agent *a, uint64_t epoch, uint32_t n, const struct route *routes)
{
	plans_take(&a->modules.plans, &(struct msg_plan){ epoch, n, routes, 0, NULL });
}

static void start(struct agent *a, uint64_t iteration, uint64_t epoch)
{
	iteration_start(&a->iteration, &(struct msg_start){ iteration, epoch, 2, 0, FORMAT_FP32 },
			0);
}

/* Starts an iteration with three microbatches. Microbatches 0 and 1 begin at this node, and
 * microbatch 2 visits it later. */
static void start_three(struct agent *a)
{
	const struct route routes[] = { route(0, 0, (uint16_t[]){ ME, 3 }, 0),
					    route(1, 0, (uint16_t[]){ ME, 3 }, 1),
					    route(2, 0, (uint16_t[]){ 0, ME }, 0) };

	take_plan(a, EPOCH, 3, routes);
	start(a, NEXT, EPOCH);
	assert_int_equal(a->progress.iteration, NEXT);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 2);
	assert_int_equal(a->tell.tally.sequence, 0);
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, end)

/* ---- start ---- */

FIXTURE_TEST(a_start_without_a_plan_changes_nothing)
{
	struct agent *a = *state;

	start(a, NEXT, EPOCH); /* the agent has no plan of this epoch */
	assert_int_equal(a->tell.tally.sequence, 1);
	take_plan(a, EPOCH, 0, NULL);
	start(a, COMMITTED, EPOCH);
	start(a, NEXT + 1, EPOCH);
	assert_int_equal(a->tell.tally.sequence, 3);
	assert_int_equal(a->progress.iteration, 0);
	assert_false(a->requests.zero);
	start(a, NEXT, EPOCH);
	assert_int_equal(a->tell.tally.sequence, 3);
	assert_int_equal(a->progress.iteration, NEXT);
	assert_int_equal(a->progress.epoch, EPOCH);
	assert_int_equal(a->progress.per_shard, 2);
}

FIXTURE_TEST(a_repeated_start_is_ignored)
{
	struct agent *a = *state;

	start_three(a);
	assert_false(a->requests.zero);
	queue_start(tasks_queue(a->modules.tasks), 0);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 1);
	start(a, NEXT, EPOCH);
	assert_int_equal(a->tell.tally.dropped, 1);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 1);
	assert_false(a->requests.zero);
}

/* If a new plan arrives, the gradients that were added under the previous plan become void. */
FIXTURE_TEST(another_plan_restarts_it)
{
	const struct route one = route(0, 1, (uint16_t[]){ ME, 4 }, 0);
	struct agent *a = *state;
	struct job job;

	start_three(a);
	take_plan(a, EPOCH + 1, 1, &one);
	start(a, NEXT, EPOCH + 1);
	assert_int_equal(a->progress.epoch, EPOCH + 1);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 1);
	assert_int_equal(a->iteration.routes[0].nodes[1], 4);
	assert_int_equal(a->iteration.routes[2].n_hops, 0);
	assert_true(a->requests.zero);
	/* While the stage is being loaded, there is no gradient to zero. */
	a->held.standing = STAND_LOADING;
	assert_false(iteration_next_job(&a->iteration, &job));
	a->held.standing = STAND_READY;
	assert_true(iteration_next_job(&a->iteration, &job));
	assert_int_equal(job.kind, JOB_ZERO);
	iteration_job_done(&a->iteration, &job, 0);
	assert_false(iteration_next_job(&a->iteration, &job));
	assert_int_equal(a->held.committed, COMMITTED);
	assert_int_equal(a->progress.iteration, NEXT);
}

FIXTURE_TEST(a_wave_without_a_shard_is_reported)
{
	const struct route routes[] = { route(0, 0, (uint16_t[]){ ME, 3 }, 1),
					    route(1, 0, (uint16_t[]){ ME, 3 }, 2),
					    route(2, 0, (uint16_t[]){ 0, ME }, 2) };
	struct agent *a = *state;

	take_plan(a, EPOCH, 3, routes);
	start(a, NEXT, EPOCH);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 1);
	assert_int_equal(a->tell.tally.sequence, 1);
}

FIXTURE_TEST(a_plan_is_stored_whole_or_not_at_all)
{
	struct route routes[] = { route(0, 0, (uint16_t[]){ ME, 3 }, 0),
				      route(1, 0, (uint16_t[]){ 2, ME }, 0),
				      route(2, 0, (uint16_t[]){ 2, NODES }, 0) };
	struct agent *a = *state;

	take_plan(a, EPOCH, 3, routes);
	assert_int_equal(a->tell.tally.sequence, 1);
	assert_null(plans_find(&a->modules.plans, EPOCH));
	take_plan(a, EPOCH, 2, routes);
	assert_int_equal(plans_find(&a->modules.plans, EPOCH)->n_routes, 2);
	assert_int_equal(plans_find(&a->modules.plans, EPOCH)->visits, 2);
	/* The plan is invalid. It is refused, and the valid plan stays. */
	take_plan(a, EPOCH, 3, routes);
	assert_int_equal(plans_find(&a->modules.plans, EPOCH)->n_routes, 2);
	/* The agent keeps the plans of the two newest epochs, whatever their order of arrival. */
	take_plan(a, EPOCH + 2, 1, routes);
	take_plan(a, EPOCH + 1, 0, routes);
	assert_null(plans_find(&a->modules.plans, EPOCH));
	assert_int_equal(plans_find(&a->modules.plans, EPOCH + 2)->n_routes, 1);
	assert_int_equal(plans_find(&a->modules.plans, EPOCH + 1)->n_routes, 0);
	assert_int_equal(plans_most_visits(&a->modules.plans), 1);
	take_plan(a, EPOCH + 1, 2, routes); /* replaces the kept plan of this epoch */
	assert_int_equal(plans_find(&a->modules.plans, EPOCH + 2)->n_routes, 1);
	assert_int_equal(plans_most_visits(&a->modules.plans), 2);
}

/* ---- reroutes ---- */

static void reroute(struct agent *a, uint64_t iteration, uint32_t n, const struct route *routes)
{
	iteration_reroute(
		&a->iteration,
		&(struct msg_reroute){ iteration, EPOCH, n, routes, 0, NULL, FORMAT_FP32 }, 0);
}

FIXTURE_TEST(dead_nodes_are_forgotten)
{
	static const uint16_t gone[] = { 3, ME, NODES, 4 };
	struct agent *a = *state;

	for (int i = 0; i <= NODES; i++)
		a->peers.list[i].link_free_us = 9;
	iteration_reroute(&a->iteration,
			  &(struct msg_reroute){ COMMITTED, EPOCH, 0, NULL, 4, gone, FORMAT_FP32 },
			  0);
	for (int i = 0; i <= NODES; i++)
		assert_int_equal(a->peers.list[i].link_free_us, i == 3 || i == 4 ? 0 : 9);
	assert_int_equal(a->progress.iteration, 0);
}

/* A node that joined after the order to reduce has received no START. If this node replaces a
 * node that died later, it begins the iteration with the reroute. */
FIXTURE_TEST(a_joiner_replaces_a_dead_node)
{
	const struct route by_me = route(0, 1, (uint16_t[]){ 0, ME }, 0);
	struct agent *a = *state;

	reroute(a, NEXT + 1, 1, &by_me);
	assert_int_equal(a->progress.iteration, 0);
	reroute(a, NEXT, 1, &by_me);
	assert_int_equal(a->progress.iteration, NEXT);
	assert_int_equal(a->progress.epoch, EPOCH);
	assert_int_equal(a->iteration.routes[0].n_hops, 2);
}

/* Keeps an output of this node for microbatch 0. */
static void keep_output(struct agent *a, const float done[ACTIVATION])
{
	float *copy = malloc(ACTIVATION * sizeof(*copy));
	struct body *body;

	assert_non_null(copy);
	memcpy(copy, done, ACTIVATION * sizeof(*copy));
	body = body_new(copy, ACTIVATION * sizeof(*copy), true);
	outputs_keep(a->modules.outputs, 0, TASK_FORWARD, body);
	body_drop(body);
}

/* The substitute gets the outputs that this node has finished. No task runs again. */
FIXTURE_TEST(the_substitute_receives_finished_outputs)
{
	static const float done[ACTIVATION] = { 1, 2, 3, 4 };
	const struct route routes[] = { route(0, 1, (uint16_t[]){ ME, 4 }, 0),
					    route(1, 1, (uint16_t[]){ ME, 4 }, 1) };
	struct agent *a = *state;
	struct parcel p;

	start_three(a);
	keep_output(a, done);
	reroute(a, COMMITTED, 2, routes); /* a reroute of a committed iteration is ignored */
	assert_int_equal(a->iteration.routes[0].nodes[1], 3);
	reroute(a, NEXT, 2, routes);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 2);
	assert_int_equal(a->iteration.routes[0].nodes[1], 4);
	assert_int_equal(a->iteration.routes[1].nodes[1], 4);
	assert_int_equal(delay_queue_take(a->modules.delay_queue, INT64_MAX, &p), 0);
	assert_int_equal(p.to, 4);
	assert_int_equal(p.head.kind, TENSOR_ACTIVATION);
	assert_int_equal(p.head.index, 1);
	assert_int_equal(p.route.microbatch, 0);
	assert_int_equal(p.route.attempt, 1);
	assert_memory_equal(p.body->data, done, sizeof(done));
	parcel_free(&p);
	/* Microbatch 1 has no output yet. */
	assert_int_equal(delay_queue_count(a->modules.delay_queue), 0);
	assert_int_equal(outputs_count(a->modules.outputs), 1);
	reroute(a, NEXT, 2, routes); /* an order that repeats an earlier order changes nothing */
	assert_int_equal(delay_queue_count(a->modules.delay_queue), 0);
	assert_int_equal(a->tell.tally.sequence, 0);
}

/* If a microbatch restarts, or this node's position in its route changes, the node discards its
 * tasks and outputs of the microbatch. */
FIXTURE_TEST(a_restarted_microbatch_is_discarded)
{
	static const float done[ACTIVATION] = { 1, 2, 3, 4 };
	struct route again = route(0, 1, (uint16_t[]){ ME, 3 }, 0);
	struct route broken = route(1, 1, (uint16_t[]){ ME, ME }, 0);
	struct agent *a = *state;

	again.since = 1;
	start_three(a);
	keep_output(a, done);
	queue_start(tasks_queue(a->modules.tasks), 0);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 1);
	reroute(a, NEXT, 2, (struct route[]){ broken, again });
	assert_int_equal(a->tell.tally.sequence, 1); /* the invalid route is reported */
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 2);
	assert_int_equal(outputs_count(a->modules.outputs), 0);
	assert_int_equal(a->iteration.routes[0].attempt, 1);
	assert_int_equal(a->iteration.routes[1].attempt, 0);
	reroute(a, NEXT, 1, &again); /* an order that repeats an earlier order changes nothing */
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 2);
	/* This node now has another position in the route, so its old tasks are void. */
	again = route(2, 1, (uint16_t[]){ ME, 0 }, 0);
	reroute(a, NEXT, 1, &again);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 3);
}

/* ---- reductions that are ordered with START ---- */

/* Delivers the input of the task at this position of the microbatch's route, and ends the task. */
static void do_task(struct agent *a, uint32_t microbatch, uint32_t position)
{
	bool reads_corpus = position == 0;
	struct tensor_bytes input = { .at = reads_corpus ? NULL
							 : calloc(ACTIVATION, sizeof(float)) };
	struct task *t;

	if (!reads_corpus)
		tasks_arrive(a->modules.tasks, &a->iteration.routes[microbatch], position, false,
			     input, 0);
	t = queue_start(tasks_queue(a->modules.tasks), 0);
	assert_non_null(t);
	assert_int_equal(t->route.microbatch, microbatch);
	assert_int_equal(t->position, position);
	task_free(queue_end(tasks_queue(a->modules.tasks)));
}

static bool wants_gradient(struct agent *a)
{
	struct job job = { 0 };

	iteration_begin_sum(&a->iteration);
	if (!reduction_next_job(a->modules.reduction, &job))
		return false;
	assert_int_equal(job.kind, JOB_GRADIENT);
	return true;
}

/* The sum waits for F, loss and B of microbatches 0 and 1, which begin at this node, and for F
 * and B of microbatch 2. */
FIXTURE_TEST(a_sum_waits_for_all_counts)
{
	const uint16_t both[] = { ME, 2 };
	struct agent *a = *state;

	start_three(a);
	reduction_begin(a->modules.reduction,
			&(struct msg_reduce){ NEXT, 1, 0, 2, both, 0, NULL, 1, FORMAT_FP32 },
			queue_counts(tasks_queue(a->modules.tasks)), 0);
	for (uint32_t i = 0; i < 2; i++) {
		do_task(a, i, 0);
		assert_false(wants_gradient(a));
		do_task(a, i, 2);
		assert_false(wants_gradient(a));
		do_task(a, i, 4);
		assert_false(wants_gradient(a));
	}
	do_task(a, 2, 1);
	assert_false(wants_gradient(a));
	assert_int_equal(reduction_awaits(a->modules.reduction),
			 -1); /* the sum waits for no other node */
	do_task(a, 2, 3);
	assert_true(wants_gradient(a));
	assert_int_equal(a->tell.tally.sequence, 0);
}

/* A slowed task is still running, although the worker has computed it. The sum waits until the task
 * ends. */
FIXTURE_TEST(a_sum_waits_for_the_end_of_the_last_task)
{
	const uint16_t both[] = { ME, 2 };
	struct agent *a = *state;

	start_three(a);
	reduction_begin(a->modules.reduction,
			&(struct msg_reduce){ NEXT, 1, 0, 2, both, 0, NULL, 1, FORMAT_FP32 },
			queue_counts(tasks_queue(a->modules.tasks)), 0);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t position = 0; position <= 4; position += 2)
			do_task(a, i, position);
	do_task(a, 2, 1);
	tasks_arrive(a->modules.tasks, &a->iteration.routes[2], 3, false,
		     (struct tensor_bytes){ .at = calloc(ACTIVATION, sizeof(float)) }, 0);
	assert_non_null(queue_start(tasks_queue(a->modules.tasks), 0));
	assert_false(wants_gradient(a));
	task_free(queue_end(tasks_queue(a->modules.tasks)));
	assert_true(wants_gradient(a));
}

FIXTURE_TEST(a_sum_without_work_starts_at_once)
{
	const uint16_t both[] = { ME, 2 };
	struct agent *a = *state;

	take_plan(a, EPOCH, 0, NULL);
	start(a, NEXT, EPOCH);
	reduction_begin(a->modules.reduction,
			&(struct msg_reduce){ NEXT, 1, 0, 2, both, 0, NULL, 1, FORMAT_FP32 },
			queue_counts(tasks_queue(a->modules.tasks)), 0);
	assert_true(wants_gradient(a));
}

/* An order that waits for gradients is replaced by a newer order. The newer order does not wait,
 * because its field when_counted is 0. */
FIXTURE_TEST(a_newer_order_does_not_wait)
{
	const uint16_t both[] = { ME, 2 };
	struct agent *a = *state;

	start_three(a);
	reduction_begin(a->modules.reduction,
			&(struct msg_reduce){ NEXT, 1, 0, 2, both, 0, NULL, 1, FORMAT_FP32 },
			queue_counts(tasks_queue(a->modules.tasks)), 0);
	assert_false(wants_gradient(a));
	reduction_begin(a->modules.reduction,
			&(struct msg_reduce){ NEXT, 2, 0, 2, both, 0, NULL, 0, FORMAT_FP32 },
			queue_counts(tasks_queue(a->modules.tasks)), 0);
	assert_true(wants_gradient(a));
}

/* ---- commit ---- */

static const struct msg_commit good = { .iteration = NEXT,
					.attempt = 2,
					.scale = 0.5f,
					.lr = 0.1f,
					.beta1 = 0.2f,
					.beta2 = 0.3f,
					.eps = 0.4f,
					.weight_decay = 0.6f };

/* Runs a reduction whose only replica is this node, until its norm is computed. */
static void reduce_alone(struct agent *a)
{
	static const uint16_t me[] = { ME };
	struct job job;

	reduction_begin(a->modules.reduction,
			&(struct msg_reduce){ NEXT, 2, 0, 1, me, 0, NULL, 0, FORMAT_FP32 },
			queue_counts(tasks_queue(a->modules.tasks)), 0);
	assert_true(reduction_next_job(a->modules.reduction, &job));
	job.bodies = calloc(1, sizeof(job.bodies[0]));
	assert_non_null(job.bodies);
	memset(slices_own_part(job.slices), 0, P * sizeof(float));
	reduction_job_done(a->modules.reduction, &job, 0);
	job_clear(&job);
	assert_true(reduction_next_job(a->modules.reduction, &job));
	slices_sum(job.slices, NULL);
	job.bodies = calloc(1, sizeof(job.bodies[0]));
	assert_non_null(job.bodies);
	reduction_job_done(a->modules.reduction, &job, 0);
	job_clear(&job);
	assert_true(reduction_next_job(a->modules.reduction, &job));
	reduction_job_done(a->modules.reduction, &job, 0);
	assert_true(reduction_ready(a->modules.reduction, NEXT, 2));
	a->tell.tally.sequence = 0;
}

FIXTURE_TEST(a_commit_of_an_absent_sum_is_reported)
{
	struct agent *a = *state;
	struct msg_commit m = good;

	start_three(a);
	iteration_commit(&a->iteration, &m, 0);
	assert_int_equal(a->tell.tally.sequence, 1);
	reduce_alone(a);
	m.attempt = 1;
	iteration_commit(&a->iteration, &m, 0);
	m = good;
	m.iteration = NEXT + 1;
	iteration_commit(&a->iteration, &m, 0);
	assert_int_equal(a->tell.tally.sequence, 2);
	assert_false(a->requests.step);
}

FIXTURE_TEST(a_commit_for_the_copy_alone_is_accepted)
{
	struct agent *a = *state;

	a->modules.standby->standing = STANDBY_WHOLE;
	iteration_commit(&a->iteration, &good, 0);
	assert_int_equal(a->tell.tally.sequence, 0);
	assert_false(a->requests.step);
	/* The node also has a complete reduction, so the commit concerns its stage too. */
	reduce_alone(a);
	struct msg_commit later = good;

	/* The reduction is not of this iteration, so the commit is for the copy only. */
	later.iteration++;
	iteration_commit(&a->iteration, &later, 0);
	assert_int_equal(a->tell.tally.sequence, 0);
	assert_false(a->requests.step);
	iteration_commit(&a->iteration, &good, 0);
	assert_true(a->requests.step);
	a->modules.standby->standing = STANDBY_NONE;
}

FIXTURE_TEST(the_visits_of_the_stage_divide_its_gradient)
{
	struct agent *a = *state;
	struct msg_commit m = good;

	m.visits.n = a->held.stage + 1u;
	m.visits.of[a->held.stage] = 4;
	reduce_alone(a);
	iteration_commit(&a->iteration, &m, 0);
	assert_true(a->iteration.commit.scale == good.scale / 4);
}

FIXTURE_TEST(a_commit_with_non_finite_numbers_is_refused)
{
	struct agent *a = *state;

	reduce_alone(a);
	for (int i = 0; i < 6; i++) {
		struct msg_commit m = good;
		float *field[] = { &m.scale, &m.lr, &m.beta1, &m.beta2, &m.eps, &m.weight_decay };

		*field[i] = i % 2 ? NAN : INFINITY;
		iteration_commit(&a->iteration, &m, 0);
		assert_int_equal(a->tell.tally.sequence, i + 1);
		assert_false(a->requests.step);
	}
}

FIXTURE_TEST(a_repeated_commit_is_ignored)
{
	struct agent *a = *state;
	struct job job;

	start_three(a);
	reduce_alone(a);
	assert_false(iteration_next_job(&a->iteration, &job));
	iteration_commit(&a->iteration, &good, 0);
	assert_true(iteration_next_job(&a->iteration, &job));
	assert_int_equal(job.kind, JOB_STEP);
	assert_ptr_equal(job.slices, reduction_slices(a->modules.reduction));
	assert_int_equal(job.iteration, NEXT);
	assert_true(job.step.scale == good.scale && job.step.adamw.lr == good.lr &&
		    job.step.adamw.beta1 == good.beta1 && job.step.adamw.beta2 == good.beta2 &&
		    job.step.adamw.eps == good.eps &&
		    job.step.adamw.weight_decay == good.weight_decay);
	job.hash = 77;
	iteration_job_done(&a->iteration, &job, 0);
	assert_int_equal(a->held.committed, NEXT);
	assert_int_equal(a->held.hash, 77);
	assert_int_equal(a->tell.tally.sequence, 1);
	assert_int_equal(a->progress.iteration, 0);
	assert_null(reduction_slices(a->modules.reduction));
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 0);
	assert_true(a->requests.look_again);
	assert_false(iteration_next_job(&a->iteration, &job));
	/* An order that repeats an earlier order is answered again, but the step is not
	 * repeated. */
	iteration_commit(&a->iteration, &good, 0);
	assert_int_equal(a->tell.tally.sequence, 2);
	assert_false(iteration_next_job(&a->iteration, &job));
}

/* ---- evaluation ---- */

FIXTURE_TEST(an_evaluation_needs_the_committed_weights)
{
	const struct route routes[] = { route(0, 0, (uint16_t[]){ ME, NODES }, 0),
					    route(1, 0, (uint16_t[]){ ME, 3 }, 9),
					    route(2, 0, (uint16_t[]){ 0, ME }, 0) };
	struct agent *a = *state;

	iteration_evaluate(&a->iteration, &(struct msg_evaluate){ NEXT, 3, routes, FORMAT_FP32 },
			   0);
	assert_int_equal(a->tell.tally.sequence, 1);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 0);
	iteration_evaluate(&a->iteration,
			   &(struct msg_evaluate){ COMMITTED, 3, routes, FORMAT_FP32 }, 0);
	assert_int_equal(a->tell.tally.sequence, 2); /* the invalid route is skipped */
	assert_int_equal(a->iteration.evaluation.iteration, COMMITTED);
	assert_int_equal(a->iteration.evaluation.n, 2);
	assert_int_equal(a->iteration.evaluation.routes[0].microbatch, 1);
	assert_int_equal(a->iteration.evaluation.routes[1].microbatch, 2);
	assert_int_equal(queue_waiting(tasks_queue(a->modules.tasks)), 1);
}
