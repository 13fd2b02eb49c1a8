/* planner_test.c - the planning thread. Answers arrive, newer requests cancel older requests, and
 * stopping never hangs. */

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "controller/planning/planner.h"

enum { NODES = 9 };

static struct cluster *make_cluster(void)
{
	struct cluster *c = cluster_alloc(NODES, 3, false);

	assert_non_null(c);
	c->microbatches_per_data_node = 2;
	for (int s = 0; s < 3; s++)
		c->stages[s] = 3;
	for (int i = 0; i < NODES; i++) {
		c->nodes[i].stage = i / 3;
		c->nodes[i].forward_s = 0.1;
		c->nodes[i].backward_s = 0.2;
		c->nodes[i].loss_s = 0.05;
		c->nodes[i].memory = 3;
	}
	for (int i = 0; i < NODES * NODES; i++)
		c->delay_s[i] = 0.05;
	return c;
}

static struct planned *wait_for(struct planner *p)
{
	for (;;) {
		struct planned *a = planner_take(p);
		struct pollfd fd = { planner_fd(p), POLLIN, 0 };

		if (a)
			return a;
		assert_true(poll(&fd, 1, 120000) > 0);
	}
}

TEST(an_answer_comes_with_its_trace)
{
	struct cluster *c = make_cluster();
	struct planner_request q = { .kind = PLANNER_RUN, .path_length = 2, .budget_s = 0.02,
				     .seed = 1, .reason = "why" };
	struct planner *p;
	struct planned *a;
	uint64_t id;

	assert_int_equal(planner_start(&p, NULL), 0);
	assert_null(planner_take(p));
	id = planner_ask(p, c, &q);
	assert_true(id > 0);
	a = wait_for(p);
	assert_int_equal(a->request, id);
	assert_non_null(a->plan);
	assert_string_equal(a->reason, "why");
	assert_int_equal(a->plan->n_microbatches, 6);
	assert_true(a->trace->iteration_s == a->plan->predicted.iteration_s);
	planned_free(a);
	planner_stop(p);
	cluster_free(c);
}

/* A plan does not use an excluded data node. The other data nodes take over its microbatches. */
TEST(excluded_nodes_stay_out)
{
	struct cluster *c = make_cluster();
	bool excluded[NODES] = { [1] = true, [4] = true };
	struct planner_request q = { .kind = PLANNER_RUN, .path_length = 3, .budget_s = 0.02,
				     .seed = 1, .excluded = excluded };
	struct planner *p;
	struct planned *a;

	assert_int_equal(planner_start(&p, NULL), 0);
	planner_ask(p, c, &q);
	a = wait_for(p);
	assert_non_null(a->plan);
	assert_int_equal(a->plan->n_microbatches, 6);
	for (int i = 0; i < a->plan->n_microbatches; i++)
		for (int h = 0; h < a->plan->microbatches[i].length; h++)
			assert_false(excluded[a->plan->microbatches[i].path[h]]);
	/* No stage may be skipped, so every path visits all stages in order. */
	for (int i = 0; i < a->plan->n_microbatches; i++)
		for (int h = 1; h < a->plan->microbatches[i].length; h++)
			assert_int_equal(a->plan->microbatches[i].path[h] / 3, h);
	planned_free(a);
	for (int i = 3; i < 6; i++)
		/* all nodes of one stage are excluded, so no plan exists, and the answer says so */
		excluded[i] = true;
	planner_ask(p, c, &q);
	a = wait_for(p);
	assert_null(a->plan);
	assert_true(a->infeasible[0] != '\0');
	planned_free(a);
	planner_stop(p);
	cluster_free(c);
}

TEST(the_newest_request_is_answered_and_stopping_cancels)
{
	struct cluster *c = make_cluster();
	struct planner_request q = {
		.kind = PLANNER_RUN, .path_length = 2, .budget_s = 600, .seed = 1
	};
	struct planner *p;
	struct planned *a;
	uint64_t last = 0;

	assert_int_equal(planner_start(&p, NULL), 0);
	for (int i = 0; i < 20; i++)
		last = planner_ask(p, c, &q);
	q.budget_s = 0.01;
	last = planner_ask(p, c, &q); /* this request cancels the long searches */
	do {
		a = wait_for(p);
		if (a->request != last) {
			planned_free(a);
			a = NULL;
		}
	} while (!a);
	assert_non_null(a->plan);
	planned_free(a);
	q.budget_s = 600;
	planner_ask(p, c, &q);
	/* planner_stop must return long before the ten minutes of the search's budget have
	 * passed */
	planner_stop(p);
	cluster_free(c);
}

/* Returns a cluster of unequal nodes without stages. DT-FM needs some time to place them. */
static struct cluster *make_unplaced(void)
{
	struct cluster *c = cluster_alloc(40, 4, true);

	assert_non_null(c);
	c->microbatches_per_data_node = 2;
	for (int s = 0; s < 4; s++)
		c->stages[s] = 10;
	for (int i = 0; i < 40; i++) {
		c->nodes[i].stage = -1;
		c->nodes[i].forward_s = 0.1;
		c->nodes[i].backward_s = 0.2;
		c->nodes[i].memory = 3;
	}
	for (int i = 0; i < 40 * 40; i++) {
		c->delay_s[i] = 0.01 * (1 + i * 7919 % 97);
		c->sync_pair_s[i] = 0.1;
	}
	return c;
}

/* A request for the run interrupts the search for the plain pipeline. That search then restarts or
 * continues, and is not lost. */
TEST(a_run_does_not_wait_for_a_baseline_and_loses_none)
{
	struct cluster *c = make_unplaced();
	struct planner_request baseline = { .kind = PLANNER_BASELINE,
					    .algorithm = PLAN_DTFM,
					    .path_length = 4,
					    .free_assignment = true,
					    .budget_s = 600,
					    .seed = 1 };
	struct planner_request run = { .kind = PLANNER_RUN,
				       .path_length = 2,
				       .free_assignment = true,
				       .budget_s = 0.01,
				       .seed = 1 };
	const struct timespec begins = { .tv_nsec = 20000000 };
	struct planned *alone, *a;
	struct planner *p;

	assert_int_equal(planner_start(&p, NULL), 0);
	planner_ask(p, c, &baseline);
	alone = wait_for(p);
	assert_non_null(alone->plan);
	planner_ask(p, c, &baseline);
	nanosleep(&begins, NULL);
	planner_ask(p, c, &run);
	a = wait_for(p);
	assert_int_equal(a->kind, PLANNER_RUN);
	assert_non_null(a->plan);
	planned_free(a);
	a = wait_for(p);
	assert_int_equal(a->kind, PLANNER_BASELINE);
	assert_non_null(a->plan);
	assert_true(a->plan->predicted.iteration_s == alone->plan->predicted.iteration_s);
	planned_free(a);
	planned_free(alone);
	planner_stop(p);
	cluster_free(c);
}

static struct planned *plan_once(const struct cluster *c, const struct planner_request *q)
{
	struct planned *a;
	struct planner *p;

	assert_int_equal(planner_start(&p, NULL), 0);
	planner_ask(p, c, q);
	a = wait_for(p);
	planner_stop(p);
	return a;
}

static int count_swaps(const struct plan *p)
{
	int n = 0;

	for (int i = 0; i < p->n_microbatches; i++)
		for (int h = 1; h < p->microbatches[i].length; h++)
			n += p->microbatches[i].path[h] < p->microbatches[i].path[h - 1];
	return n;
}

/* Node s is the only node of stage s, and links are short only in the order of stages 0, 2, 1, 3.
 * Half of the microbatches visit all stages, and visit stage 2 before stage 1 unless this order
 * is forbidden. */
TEST(paths_swap_stages_unless_that_is_forbidden)
{
	static const int near[] = { 0, 2, 1, 3 };
	struct cluster *c = cluster_alloc(4, 4, false);
	struct planner_request q = { .kind = PLANNER_RUN, .path_length = 2, .skip_share = 50,
				     .budget_s = 0.05, .seed = 1 };
	struct planned *a;

	assert_non_null(c);
	c->microbatches_per_data_node = 4;
	for (int i = 0; i < 4; i++) {
		c->stages[i] = 1;
		c->nodes[i] = (struct cluster_node){ .stage = i, .forward_s = 0.1, .memory = 4,
						     .backward_s = 0.1,
						     .location = c->nodes[i].location };
	}
	for (int i = 0; i < 16; i++)
		c->delay_s[i] = 1;
	for (int i = 1; i < 4; i++)
		c->delay_s[near[i - 1] * 4 + near[i]] = c->delay_s[near[i] * 4 + near[i - 1]] = 0.1;
	a = plan_once(c, &q);
	assert_non_null(a->plan);
	assert_true(count_swaps(a->plan) > 0);
	planned_free(a);
	q.no_swaps = true;
	a = plan_once(c, &q);
	assert_non_null(a->plan);
	assert_int_equal(count_swaps(a->plan), 0);
	planned_free(a);
	cluster_free(c);
}

static void is_by(const struct planned *a, const char *algorithm)
{
	assert_non_null(a->plan);
	assert_string_equal(a->plan->search.algorithm, algorithm);
}

/* Checks that each data node sends all its microbatches through one pipeline, which visits every
 * stage in order. */
static void assert_straight(const struct plan *p)
{
	for (int i = 0; i < p->n_microbatches; i++) {
		const struct plan_microbatch *a = &p->microbatches[i];

		assert_int_equal(a->length, 3);
		for (int h = 0; h < 3; h++)
			assert_int_equal(a->path[h] / 3, h);
		for (int k = 0; k < i; k++)
			if (p->microbatches[k].data_node == a->data_node)
				assert_memory_equal(p->microbatches[k].path, a->path,
						    3 * sizeof(int));
	}
}

/* Every baseline finds a plan for a run, even if some nodes are excluded. Requests are answered in
 * order. */
TEST(baselines_plan_a_run)
{
	static const enum plan_algorithm all[] = { PLAN_DTFM, PLAN_DTFM_SKIP, PLAN_NO_TC2,
						   PLAN_CBS };
	struct cluster *c = make_cluster();
	bool excluded[NODES] = { [4] = true };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct planner_request q = { .kind = PLANNER_RUN,
					     .algorithm = all[i],
					     .budget_s = 60,
					     .path_length = all[i] == PLAN_DTFM ? 3 : 2,
					     .seed = 1,
					     .substitute = SUBSTITUTE_BEST,
					     .excluded = excluded };
		struct planned *a = plan_once(c, &q);

		is_by(a, plan_algorithm_name(all[i]));
		assert_string_equal(a->instead, "");
		assert_int_equal(a->plan->n_orders, 0);
		assert_int_equal(a->plan->path_length, q.path_length);
		if (all[i] == PLAN_DTFM)
			assert_straight(a->plan);
		planned_free(a);
	}
	cluster_free(c);
}

/* Returns a cluster in which stage 1 has links to only one node of stage 2. Paths through all
 * stages exist, but not a separate straight pipeline for each data node. */
static struct cluster *make_narrow(void)
{
	struct cluster *c = make_cluster();

	for (int i = 3; i < 6; i++)
		for (int j = 7; j < NODES; j++)
			c->delay_s[i * NODES + j] = c->delay_s[j * NODES + i] = -1;
	return c;
}

/* A baseline finds no plan of its own. If the request allows a substitute algorithm, the answer has
 * the substitute's plan and name. */
TEST(the_answer_names_the_substitute_algorithm)
{
	struct cluster *c = make_narrow();
	struct planner_request q = { .kind = PLANNER_RUN,
				     .algorithm = PLAN_DTFM,
				     .path_length = 3,
				     .budget_s = 0.05,
				     .seed = 1,
				     .substitute = SUBSTITUTE_BEST };
	struct planned *a;

	a = plan_once(c, &q);
	is_by(a, "best");
	assert_string_equal(a->instead, "dtfm has no paths of its own: the plan of best is used");
	planned_free(a);
	q.substitute = SUBSTITUTE_RANDOM;
	a = plan_once(c, &q);
	assert_null(a->plan);
	assert_string_equal(a->infeasible, "dtfm has no paths of its own");
	planned_free(a);
	q.substitute = SUBSTITUTE_ANY;
	a = plan_once(c, &q);
	is_by(a, "dtfm");
	planned_free(a);
	cluster_free(c);
}

/* When a baseline's budget is used up, the answer is its best plan so far, or a plan with random
 * paths. */
TEST(a_budget_ends_a_baseline)
{
	struct cluster *c = make_cluster(), *unplaced = make_unplaced();
	struct planner_request q = { .kind = PLANNER_RUN,
				     .algorithm = PLAN_CBS,
				     .path_length = 2,
				     .budget_s = 1e-9,
				     .seed = 1,
				     .substitute = SUBSTITUTE_RANDOM };
	struct planned *a = plan_once(c, &q);

	is_by(a, "dtfm-skip");
	assert_string_equal(
		a->instead,
		"cbs finds no paths of its own in 1e-09 s: the plan of dtfm-skip is used");
	planned_free(a);
	q.algorithm = PLAN_DTFM;
	q.path_length = 4;
	q.free_assignment = true;
	a = plan_once(unplaced, &q);
	is_by(a, "dtfm");
	assert_string_equal(a->instead,
			    "dtfm used up its 1e-09 s (--budget): its best plan so far is used");
	planned_free(a);
	cluster_free(c);
	cluster_free(unplaced);
}

enum { BUSY = 16, SOON_US = 15000000 };

/* Restricts this process and BUSY children to one processor. The children compute without a
 * pause. */
static void make_busy(cpu_set_t *was, pid_t children[BUSY])
{
	cpu_set_t one;

	assert_int_equal(sched_getaffinity(0, sizeof(*was), was), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	for (int i = 0; i < BUSY; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				(void)clock_monotonic_us();
		}
		assert_true(children[i] > 0);
	}
}

/* The planner's thread gets almost no processor time, and still must not delay the end of the
 * program. */
TEST(an_idle_planner_on_a_busy_processor_stops_soon)
{
	struct cluster *c = make_unplaced();
	struct planner_request q = { .kind = PLANNER_PREVIEW,
				     .path_length = 4,
				     .free_assignment = true,
				     .budget_s = 600,
				     .seed = 1 };
	const struct timespec begins = { .tv_nsec = 300000000 };
	struct planner *p;
	pid_t children[BUSY];
	cpu_set_t was;
	int64_t stopped_us;

	make_busy(&was, children);
	assert_int_equal(planner_start_idle(&p, NULL), 0);
	planner_ask(p, c, &q);
	nanosleep(&begins, NULL);
	stopped_us = clock_monotonic_us();
	planner_stop(p);
	stopped_us = clock_monotonic_us() - stopped_us;
	for (int i = 0; i < BUSY; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	sched_setaffinity(0, sizeof(was), &was);
	cluster_free(c);
	assert_true(stopped_us < SOON_US);
}
