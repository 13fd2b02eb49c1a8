/* history_test.c - a long run in compressed time. The controller runs real iterations from the
 * first task to the commit, and the test makes up the agents' reports from the plan. The record and
 * the memory in use must not grow with old history. A restarted controller must not have to read
 * all of the history.
 *
 * HISTORY_ITERATIONS=N runs N iterations and prints measurements (`make history`). If the variable
 * is 0 or missing, the test runs A_FEW iterations. */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/iteration_record.h"
#include "controller/joining/resume.h"
#include "controller/loop.h"
#include "controller/members/saved_state.h"
#include "controller/run/journal.h"
#include "controller/run/record.h"
#include "controller/setup.h"
#include "controller/tests/under_way.h"
#include "base/rng.h"

enum {
	/* MEMBERS / 2 data nodes with PER_NODE microbatches each: 30 microbatches, as in the
	 * embedded cluster */
	MEMBERS = 20,
	PER_NODE = 3,
	/* Settings of the short test; a long run uses the program's own value for KEEP_TASKS */
	A_FEW = 1200,
	KEEP_TASKS = 100,
	/* most bytes of run.db for each iteration; a million iterations then take 2 GB */
	MOST_BYTES = 2000
};

static uint64_t wanted(void)
{
	const char *text = getenv("HISTORY_ITERATIONS");

	return text ? strtoull(text, NULL, 10) : 0;
}

/* ---- the agents ---- */

static void report_task(struct controller *c, const struct sim_task *t)
{
	uint32_t id = (uint32_t)c->run.plan->plan->microbatches[t->microbatch].id;
	struct msg_task_event events[2] = {
		{ .type = WORK_STARTS,
		  .kind = (uint8_t)t->kind,
		  .microbatch = id,
		  .attempt = c->iteration.routes.microbatches[id].route.attempt,
		  .blocker = UINT32_MAX,
		  .arrived_us = c->run.now_us + (int64_t)(t->arrival_s * SECOND),
		  .at_us = c->run.now_us + (int64_t)(t->start_s * SECOND),
		  .loss = 3 },
	};
	struct msg_report r = { .iteration = c->run.iteration, .n_events = 2, .events = events };

	events[1] = events[0];
	events[1].type = WORK_ENDS;
	events[1].at_us = c->run.now_us + (int64_t)(t->end_s * SECOND);
	events[1].counted = t->kind == TASK_LOSS || t->kind == TASK_BACKWARD;
	iteration_report(&c->iteration, &c->members.list[t->node], &r);
}

static void report_sums(struct controller *c)
{
	uint64_t slices[MSG_NODES] = { 7 };

	for (uint32_t i = 0; i < c->members.n && c->run.phase == PHASE_REDUCING; i++) {
		uint8_t stage = (uint8_t)c->run.cluster->nodes[i].stage;
		struct msg_reduced sum = { .iteration = c->run.iteration,
					   .attempt = c->iteration.reduce_attempt,
					   .stage = stage,
					   .sum_squares = 1,
					   .n_slices = c->iteration.summing[stage],
					   .slices = slices };

		iteration_reduced(&c->iteration, &c->members.list[i], &sum);
	}
}

static void report_weights(struct controller *c)
{
	for (uint32_t i = 0; i < c->members.n; i++) {
		uint8_t stage = (uint8_t)c->run.cluster->nodes[i].stage;
		/* Makes up 64-bit hashes that look like those of weights. */
		struct msg_committed m = { c->run.committed, stage,
					   (c->run.committed * MSG_STAGES + stage) *
						   UINT64_C(0x9e3779b97f4a7c15),
					   0, { { 0 } } };

		iteration_committed(&c->members, &c->members.list[i], &m);
	}
}

/* Writes the rarer records: a checkpoint, a validation, a plan. */
static void now_and_then(struct controller *c)
{
	struct msg_see_validation v = { c->run.committed, 3, 0 };

	if (c->run.committed % 50 == 0)
		note(&c->run, NOTE_LOG, -1, 0, "checkpoint of it%llu: 12.3 MB on disk",
		     (unsigned long long)c->run.committed);
	if (c->run.committed % 10 == 0)
		record_validation(&c->run, &v);
	if (c->run.committed % 400 == 0) {
		struct planned *p = calloc(1, sizeof(*p));
		char *text = plan_format(c->run.plan->plan);

		assert_true(p && text);
		assert_int_equal(plan_parse(text, strlen(text), &p->plan, NULL), 0);
		assert_int_equal(simulate(c->run.cluster, p->plan, &p->trace, NULL), 0);
		p->epoch = ++c->run.epoch;
		p->iteration = c->run.committed + 1;
		strcpy(p->reason, "a better plan");
		assert_int_equal(record_plan(&c->run, p, NULL), 0);
		free(text);
		planned_free(c->run.plan);
		c->run.plan = p;
	}
}

static double vary(struct rng *r, double seconds)
{
	return seconds * (1 + 0.02 * rng_normal(r));
}

/* Copies the cluster and changes all of its times a little, differently in each iteration. */
static struct cluster *vary_times(const struct controller *c)
{
	struct cluster *to = cluster_copy(c->run.cluster);
	struct rng r;

	assert_non_null(to);
	rng_init(&r, c->run.committed);
	for (int i = 0; i < to->n_nodes; i++) {
		to->nodes[i].forward_s = vary(&r, to->nodes[i].forward_s);
		to->nodes[i].loss_s = vary(&r, to->nodes[i].loss_s);
		to->nodes[i].backward_s = vary(&r, to->nodes[i].backward_s);
	}
	for (int i = 0; i < to->n_nodes * to->n_nodes; i++)
		to->delay_s[i] = vary(&r, to->delay_s[i]);
	return to;
}

/* Runs an iteration. Tasks and transfers take a little more or less time than planned, so nodes
 * count gradients in another order in every iteration. The difference is too small for a new
 * plan. */
static void iterate(struct controller *c)
{
	struct cluster *varied = vary_times(c);
	struct simulation *t;
	uint64_t before = c->run.committed;

	for (int i = 0; i < 4 && c->run.phase != PHASE_COMPUTING; i++)
		loop_phase(c);
	assert_int_equal(c->run.phase, PHASE_COMPUTING);
	assert_int_equal(simulate(varied, c->run.plan->plan, &t, NULL), 0);
	for (int i = 0; i < t->n_tasks; i++)
		report_task(c, &t->tasks[i]);
	c->run.now_us += (int64_t)(t->iteration_s * SECOND);
	simulation_free(t);
	cluster_free(varied);
	assert_int_equal(c->run.phase, PHASE_REDUCING);
	report_sums(c);
	assert_int_equal(c->run.committed, before + 1);
	report_weights(c);
	now_and_then(c);
}

/* ---- the run ---- */

static struct cluster *make_cluster(void)
{
	static const int stages[] = { 10, 4, 3, 3 };
	struct cluster *c = cluster_alloc(MEMBERS, 4, false);
	int node = 0;

	assert_non_null(c);
	c->microbatches_per_data_node = PER_NODE;
	for (int s = 0; s < 4; s++) {
		c->stages[s] = stages[s];
		for (int i = 0; i < stages[s]; i++, node++) {
			c->nodes[node].stage = s;
			c->nodes[node].forward_s = c->nodes[node].backward_s = 0.1;
			c->nodes[node].loss_s = 0.02;
			c->nodes[node].memory = 4;
		}
	}
	for (int i = 0; i < MEMBERS * MEMBERS; i++)
		c->delay_s[i] = 0.05;
	return c;
}

static struct controller *begin(void)
{
	struct controller *c = under_way_begun(make_cluster(), 4);

	c->run.options.keep_tasks = wanted() ? 10000 : KEEP_TASKS;
	c->run.training.hyper.adamw.lr = 1e-3f;
	for (uint32_t i = 0; i < c->members.n; i++) {
		strcpy(c->members.list[i].hello.device, "cpu:v4 oneDNN 2.6.3");
		c->members.list[i].weights.stage = (uint8_t)c->run.cluster->nodes[i].stage;
	}
	assert_int_equal(resume_save(&c->members), 0);
	return c;
}

/* Returns the bytes of the file whose name is "run.db" followed by this tail. */
static double size_of(const struct controller *c, const char *tail)
{
	struct stat st;
	char path[128];

	snprintf(path, sizeof(path), "%s/run.db%s", c->run.options.run_dir, tail);
	return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

static double in_use(void)
{
	return (double)mallinfo2().uordblks;
}

/* Starts another controller, which resumes the run. Returns the seconds in which the new controller
 * reads the record. */
static double take_over(struct controller *c, struct controller **next)
{
	int64_t begun = clock_monotonic_us();
	struct controller *n = under_way_knowing(cluster_copy(c->run.cluster));

	n->run.options.run_dir = c->run.options.run_dir;
	assert_int_equal(store_resume(&n->run.record.store, c->run.options.run_dir, NULL), 0);
	assert_int_equal(resume_begin(&n->backups, NULL), 0);
	*next = n;
	return (double)(clock_monotonic_us() - begun) * 1e-6;
}

static void remember_nothing_of(struct controller *c)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", c->run.options.run_dir);
	free((char *)c->run.options.run_dir);
	assert_int_equal(system(command), 0);
}

static int count_plan(void *context, const struct store_plan *p)
{
	(void)p;
	++*(int *)context;
	return 0;
}

TEST(a_long_run_does_not_grow)
{
	uint64_t long_run = wanted(), most = long_run ? long_run : A_FEW, settled = most / 2;
	struct controller *c = begin(), *next;
	double bytes = 0, memory = 0, resume_s;
	int64_t begun = clock_monotonic_us();
	struct error err;
	int plans = 0;

	for (uint64_t i = 1; i <= most; i++) {
		iterate(c);
		if (i == settled) {
			bytes = size_of(c, "");
			memory = in_use();
		}
		if (long_run && i % (most / 10) == 0)
			printf("%9llu: run.db %7.1f MB, in use %5.2f MB, %.2f ms an iteration\n",
			       (unsigned long long)i, size_of(c, "") * 1e-6, in_use() * 1e-6,
			       (double)(clock_monotonic_us() - begun) * 1e-3 / (double)i);
	}
	bytes = (size_of(c, "") - bytes) / (double)(most - settled);
	memory = (in_use() - memory) / (double)(most - settled);
	store_close(c->run.record.store);
	c->run.record.store = NULL;
	resume_s = take_over(c, &next);
	assert_int_equal(store_each_plan(next->run.record.store, 0, count_plan, &plans, &err), 0);
	if (long_run)
		printf("an iteration is %.0f bytes, of the controller's memory %.1f; "
		       "it is taken over in %.3f s, with %d plans\n",
		       bytes, memory, resume_s, plans);
	assert_int_equal(next->run.committed, most);
	assert_true(next->run.record.curves.n_iterations <= 2 * KEPT_CURVE);
	assert_int_equal(next->run.epoch, c->run.epoch);
	if (bytes > MOST_BYTES)
		fail_msg("an iteration is %.0f bytes in run.db", bytes);
	next->run.options.run_dir = NULL;
	controller_fini(next);
	free(next);
	remember_nothing_of(c);
	controller_fini(c);
	free(c);
}

static uint64_t first_kept(const struct controller *c)
{
	return c->run.record.curves.n_iterations ? c->run.record.curves.iterations[0].iteration : 0;
}

/* The controller stores only the newest iterations for consoles, but at least as many as it sends
 * to a new console. */
TEST(the_newest_iterations_are_kept)
{
	struct controller *c = begin();
	const struct curves *curves = &c->run.record.curves;
	enum { MANY = 5 * KEPT_CURVE };

	for (uint64_t i = 1; i <= MANY; i++) {
		struct msg_see_iteration see = { .iteration = i };
		struct msg_see_validation v = { .iteration = i };

		record_keep(&c->run, &see);
		record_keep_validation(&c->run, &v);
		assert_true(curves->n_iterations <= 2 * KEPT_CURVE &&
			    curves->n_validations <= 2 * KEPT_CURVE);
		assert_int_equal(curves->iterations[curves->n_iterations - 1].iteration, i);
		assert_int_equal(first_kept(c), i + 1 - curves->n_iterations);
		assert_true(i < KEPT_CURVE || curves->n_iterations >= KEPT_CURVE);
	}
	assert_int_equal(curves->validations[curves->n_validations - 1].iteration, MANY);
	for (int i = 1; i <= 5 * KEPT_NOTES; i++)
		note(&c->run, NOTE_LOG, -1, 0, "note %d", i);
	assert_true(c->run.journal.n_notes >= KEPT_NOTES &&
		    c->run.journal.n_notes <= 2 * KEPT_NOTES);
	assert_string_equal(c->run.journal.notes[c->run.journal.n_notes - 1].text, "note 2500");
	store_close(c->run.record.store);
	c->run.record.store = NULL;
	remember_nothing_of(c);
	controller_fini(c);
	free(c);
}

/* The controller also writes the newest plans to files, for other tools. If it cannot write the
 * folder, the run continues. */
TEST(the_newest_plans_have_files)
{
	struct controller *c = begin();
	char path[160];

	assert_int_equal(record_folder(&c->run, NULL), 0);
	for (uint64_t i = 1; i <= 250; i++)
		record_plan_file(&c->run, i, "{}");
	for (int i = 1; i <= 250; i++) {
		snprintf(path, sizeof(path), "%s/plans/%04d.json", c->run.options.run_dir, i);
		assert_int_equal(access(path, F_OK), i > 150 ? 0 : -1);
	}
	snprintf(path, sizeof(path), "rm -rf '%s/plans'", c->run.options.run_dir);
	assert_int_equal(system(path), 0);
	record_plan_file(&c->run, 251, "{}");
	assert_int_not_equal(c->run.phase, PHASE_FINISHED);
	store_close(c->run.record.store);
	c->run.record.store = NULL;
	remember_nothing_of(c);
	controller_fini(c);
	free(c);
}
