/* drift_decisions_test.c - which measurements make the controller correct a time, and which
 * corrections make it request a plan. Each row is one kind of measurement. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/joining/agents.h"
#include "controller/planning/drift.h"
#include "controller/tests/under_way.h"

enum { LATE = 4, OTHER = 3, LAST = 5 };

/* Machines of the agents: each on a machine of its own, together on a machine with fewer cores
 * than agents, or on a machine that the controller does not know. */
enum place { OWN, SHARED, UNKNOWN };
/* Origin of the task times: measured, emulated with a time scale, or emulated on a machine whose
 * processors other programs use. */
enum times { REAL, EMULATED, BESIDE_OTHERS };
/* Time of the controller's request for a plan: never, within the iteration, or after it. */
enum request { NEVER, WITHIN, AFTER };

static void prepare(struct controller *c, enum place place, uint32_t agents, enum times times,
		    bool is_settled)
{
	for (uint32_t i = 0; i < c->members.n; i++) {
		struct member *m = &c->members.list[i];

		if (place != UNKNOWN)
			snprintf(m->hello.machine, sizeof(m->hello.machine), "machine%u",
				 place == SHARED && (i >= c->members.n - agents) ? 99 : i);
		m->hello.cores = place == UNKNOWN ? 0 : place == SHARED && agents == 2 ? 1 : 2;
		m->processor.is_shared = times == BESIDE_OTHERS;
		m->compute.pace = 1;
		m->compute.alone_forward_s = c->run.cluster->nodes[i].forward_s;
		m->links.ratio = 1;
	}
	if (!c->run.cluster_as_given)
		c->run.cluster_as_given = cluster_copy(c->run.cluster);
	c->run.options.cluster.time_scale = times == REAL ? 0 : 1;
	c->run.plan->iteration = 1;
	c->run.committed = is_settled ? 10 : 9;
	c->run.iteration = c->run.committed + 1;
	c->run.now_us = 100 * (int64_t)SECOND;
	c->planning.wanted_id = 0;
	c->planning.drift = (struct drift){ .asked = 0 };
}

/* Returns a prepared controller, which the caller frees with under_way_end. */
static struct controller *controller_at(enum place place, uint32_t agents, enum times times,
					bool is_settled)
{
	struct controller *c = under_way_of(NODES, EACH, 2);

	prepare(c, place, agents, times, is_settled);
	return c;
}

static void do_task(struct controller *c, uint16_t node, double took_s)
{
	struct msg_task_event e = { .type = WORK_STARTS, .kind = TASK_FORWARD };

	e.at_us = c->run.now_us;
	drift_task(&c->planning, &c->members.list[node], &e, 0);
	e.type = WORK_ENDS;
	e.at_us += (int64_t)(took_s * c->run.unit_s * 1e6);
	drift_task(&c->planning, &c->members.list[node], &e, 0);
}

/* ---- tasks ---- */

static const struct {
	const char *what;
	enum place place;
	uint32_t agents; /* number of agents on the shared machine */
	enum times times;
	bool is_settled; /* the plan in force is old enough for small corrections to count */
	/* true: all agents take `ratio` times as long as planned; false: only LATE does */
	bool all;
	double planned_s, ratio;
	int tasks, iterations;  /* tasks in each iteration, and number of iterations */
	/* expected: the controller corrects the time of LATE, and the time of OTHER */
	bool corrected, others;
	enum request request;
} of_tasks[] = {
	{ "a fifth more", OWN, 0, REAL, true, false, 0.1, 1.2, 4, 4, false, false, NEVER },
	{ "a fifth less", OWN, 0, REAL, true, false, 0.1, 0.85, 4, 4, false, false, NEVER },
	{ "once", OWN, 0, REAL, true, false, 0.1, 1.3, 4, 1, false, false, NEVER },
	{ "twice", OWN, 0, REAL, true, false, 0.1, 1.3, 4, 2, true, false, AFTER },
	{ "faster", OWN, 0, REAL, true, false, 0.1, 0.7, 4, 2, true, false, AFTER },
	{ "in a new plan", OWN, 0, REAL, false, false, 0.1, 1.3, 4, 2, true, false, NEVER },
	{ "emulated", OWN, 0, EMULATED, true, false, 0.1, 1.3, 4, 2, true, false, AFTER },
	{ "three tasks", OWN, 0, REAL, true, false, 0.1, 1.9, 3, 2, true, false, AFTER },
	{ "two tasks", OWN, 0, REAL, true, false, 0.1, 1.9, 2, 4, false, false, NEVER },
	{ "6 ms", OWN, 0, REAL, true, false, 0.01, 1.6, 4, 2, true, false, AFTER },
	{ "4 ms", OWN, 0, REAL, true, false, 0.01, 1.4, 4, 4, false, false, NEVER },
	{ "far off", OWN, 0, REAL, false, false, 0.1, 4, 2, 1, true, false, WITHIN },
	{ "far off, one task", OWN, 0, REAL, false, false, 0.1, 4, 1, 1, true, false, AFTER },
	{ "far faster", OWN, 0, REAL, false, false, 0.1, 0.4, 2, 1, true, false, WITHIN },
	{ "all, once", OWN, 0, REAL, false, true, 0.1, 1.6, 4, 1, false, false, NEVER },
	{ "all, twice", OWN, 0, REAL, false, true, 0.1, 1.6, 4, 2, true, true, AFTER },
	{ "all, far off", OWN, 0, REAL, false, true, 0.1, 4, 2, 1, true, true, WITHIN },
	{ "unknown", UNKNOWN, 0, REAL, true, false, 0.1, 1.3, 4, 2, true, false, AFTER },
	{ "unknown, all far off", UNKNOWN, 0, REAL, true, true, 0.1, 4, 4, 1, false, false, NEVER },
	{ "unknown, far off", UNKNOWN, 0, REAL, true, false, 0.1, 4, 2, 1, true, false, WITHIN },
	/* Agents that share cores are compared with one another. Without emulation, differences
	 * of their times below 20 ms are noise. For other agents, differences below 5 ms are
	 * noise. */
	{ "shared", SHARED, 6, REAL, true, false, 0.1, 1.3, 4, 2, true, false, AFTER },
	{ "shared, once", SHARED, 6, REAL, true, false, 0.1, 1.3, 4, 1, false, false, NEVER },
	{ "shared, 15 ms", SHARED, 6, REAL, true, false, 0.03, 1.5, 4, 4, false, false, NEVER },
	{ "shared, 15 ms", SHARED, 6, EMULATED, true, false, 0.03, 1.5, 4, 2, true, false, AFTER },
	{ "shared, far off", SHARED, 6, REAL, true, false, 0.1, 4, 4, 1, false, false, NEVER },
	{ "shared, far off", SHARED, 6, REAL, true, false, 0.1, 4, 4, 2, true, false, AFTER },
	{ "shared, far off", SHARED, 6, EMULATED, true, false, 0.1, 4, 2, 1, true, false, WITHIN },
	{ "beside others", SHARED, 6, BESIDE_OTHERS, true, false, 0.03, 1.5, 4, 4, false, false,
	  NEVER },
	{ "beside others", SHARED, 6, BESIDE_OTHERS, true, false, 0.1, 4, 2, 1, false, false,
	  NEVER },
	/* All agents of the machine are late, so the machine's pace is corrected, and not the time
	 * of a single agent. */
	{ "machine, once", SHARED, 6, REAL, false, true, 0.1, 1.6, 4, 1, true, true, AFTER },
	{ "machine, 4%", SHARED, 6, REAL, true, true, 0.1, 1.04, 4, 4, false, false, NEVER },
	{ "machine, 10%", SHARED, 6, REAL, true, true, 0.1, 1.1, 4, 1, true, true, AFTER },
	{ "emulated machine", SHARED, 6, EMULATED, true, true, 0.1, 1.6, 4, 4, false, false,
	  NEVER },
	{ "machine, beside others", SHARED, 6, BESIDE_OTHERS, false, true, 0.1, 1.6, 4, 1, true,
	  true, AFTER },
	{ "two tasks", SHARED, 6, REAL, true, true, 0.1, 1.6, 2, 4, false, false, NEVER },
	{ "three agents", SHARED, 3, REAL, true, true, 0.1, 1.6, 4, 1, true, true, AFTER },
	{ "two agents", SHARED, 2, REAL, true, true, 0.1, 1.6, 4, 1, false, false, NEVER },
};

static double forward_s(const struct controller *c, int node)
{
	return c->run.cluster->nodes[node].forward_s;
}

/* Makes the agents report the tasks of one iteration. */
static void do_tasks(struct controller *c, size_t row, const double *planned_s)
{
	for (int t = 0; t < of_tasks[row].tasks; t++)
		for (uint16_t i = 0; i < NODES; i++)
			do_task(c, i,
				planned_s[i] *
					(of_tasks[row].all || i == LATE ? of_tasks[row].ratio : 1));
}

TEST(each_kind_of_task_has_one_decision)
{
	for (size_t r = 0; r < sizeof(of_tasks) / sizeof(of_tasks[0]); r++) {
		struct controller *c = controller_at(of_tasks[r].place, of_tasks[r].agents,
						     of_tasks[r].times, of_tasks[r].is_settled);
		double planned_s[NODES];
		enum request request = NEVER;
		bool corrected, others;
		void *fixture = c;

		c->run.unit_s = of_tasks[r].planned_s / forward_s(c, LATE);
		for (int i = 0; i < NODES; i++)
			planned_s[i] = forward_s(c, i);
		for (int k = 0; k < of_tasks[r].iterations; k++) {
			do_tasks(c, r, planned_s);
			request = c->planning.wanted_id && request == NEVER ? WITHIN : request;
			drift_turn(&c->planning);
			request = c->planning.wanted_id && request == NEVER ? AFTER : request;
		}
		corrected = forward_s(c, LATE) != planned_s[LATE];
		others = forward_s(c, OTHER) != planned_s[OTHER];
		if (corrected != of_tasks[r].corrected || others != of_tasks[r].others ||
		    request != of_tasks[r].request)
			fail_msg("row %zu (%s): corrected %d, others %d, request %d", r,
				 of_tasks[r].what, corrected, others, request);
		under_way_end(&fixture);
	}
}

/* ---- links ---- */

static const struct {
	const char *what;
	double planned_s, ratio;
	/* Number of links that LATE reports, and how many of these have the planned time */
	int links, odd;
	int reports;
	double wait; /* share of the time that LATE waits for a processor that other programs use */
	bool is_settled;
	/* expected: the controller corrects a reported link, and a link without a report */
	bool corrected, others;
	enum request request;
} of_links[] = {
	{ "a fifth more", 0.2, 1.2, 4, 0, 4, 0, true, false, false, NEVER },
	{ "once", 0.2, 1.4, 4, 0, 1, 0, true, false, false, NEVER },
	{ "twice", 0.2, 1.4, 4, 0, 2, 0, true, true, false, AFTER },
	{ "in a new plan", 0.2, 1.3, 1, 0, 2, 0, false, true, false, NEVER },
	{ "faster", 0.2, 0.7, 4, 0, 2, 0, true, true, false, AFTER },
	{ "25 ms", 0.05, 1.5, 1, 0, 2, 0, true, true, false, AFTER },
	{ "15 ms", 0.05, 1.3, 1, 0, 4, 0, true, false, false, NEVER },
	/* A factor that all reported links have in common also corrects links that were not
	 * reported. */
	{ "four links", 0.2, 2.5, 4, 0, 1, 0, false, true, true, WITHIN },
	{ "three links", 0.2, 2.5, 3, 0, 1, 0, false, false, false, NEVER },
	{ "three links, twice", 0.2, 2.5, 3, 0, 2, 0, false, true, true, WITHIN },
	{ "two links, twice", 0.2, 2.5, 2, 0, 2, 0, false, true, true, WITHIN },
	{ "one link, twice", 0.2, 2.5, 1, 0, 2, 0, true, true, false, AFTER },
	{ "three of four", 0.2, 2.5, 4, 1, 1, 0, false, true, true, WITHIN },
	{ "two of four", 0.2, 2.5, 4, 2, 1, 0, false, false, false, NEVER },
	/* LATE is on a shared machine. A part of a transfer's time is therefore not blamed on the
	 * link: 0.1 s, and the share `wait` of the planned time. */
	{ "waits", 0.05, 3, 4, 0, 4, 0.6, true, false, false, NEVER },
	{ "waits, and slow", 0.05, 9, 4, 0, 4, 0.6, false, true, true, WITHIN },
};

static double *delay(const struct controller *c, int to)
{
	return &c->run.cluster->delay_s[LATE * NODES + to];
}

/* Predicts the time of the plan in force with the present delays. */
static void predict_plan(struct controller *c)
{
	struct simulation *s;

	assert_int_equal(simulate(c->run.cluster, c->run.plan->plan, &s, NULL), 0);
	c->run.plan->plan->predicted.iteration_s = s->iteration_s;
	simulation_free(s);
}

static void report_links(struct controller *c, size_t row)
{
	struct msg_link links[NODES] = { { .from = 0 } };
	int n = of_links[row].links;

	for (int i = 0; i < n; i++) {
		links[i].to = (uint16_t)i;
		links[i].measured_delay_s =
			(float)(of_links[row].planned_s *
				(i >= n - of_links[row].odd ? 1 : of_links[row].ratio));
	}
	members_links(&c->planning, &c->members.list[LATE],
		      &(struct msg_links){ (uint32_t)n, links, FORMAT_FP32, 0, 0 });
}

TEST(each_kind_of_link_has_one_decision)
{
	for (size_t r = 0; r < sizeof(of_links) / sizeof(of_links[0]); r++) {
		struct controller *c = controller_at(OWN, 0, REAL, of_links[r].is_settled);
		enum request request = NEVER;
		bool corrected, others;
		void *fixture = c;

		for (int i = 0; i < NODES * NODES; i++)
			c->run.cluster->delay_s[i] = c->run.cluster_as_given->delay_s[i] =
				of_links[r].planned_s;
		predict_plan(c);
		for (uint32_t i = 0; i < NODES && of_links[r].wait > 0; i++)
			c->members.list[i].processor = (struct member_processor){
				.waits = i == LATE ? of_links[r].wait : 0, .is_shared = i == LATE
			};
		for (int k = 0; k < of_links[r].reports; k++) {
			report_links(c, r);
			request = c->planning.wanted_id && request == NEVER ? WITHIN : request;
			drift_turn(&c->planning);
			request = c->planning.wanted_id && request == NEVER ? AFTER : request;
		}
		corrected = *delay(c, 0) != of_links[r].planned_s;
		others = *delay(c, LAST) != of_links[r].planned_s;
		if (corrected != of_links[r].corrected || others != of_links[r].others ||
		    request != of_links[r].request)
			fail_msg("row %zu (%s): corrected %d, others %d, request %d", r,
				 of_links[r].what, corrected, others, request);
		under_way_end(&fixture);
	}
}

/* ---- plans ---- */

/* All nodes become far slower during an iteration. The first three corrections each cause a
 * request for a plan; later corrections wait for the iteration's end. */
TEST(an_iteration_requests_three_plans)
{
	struct controller *c = controller_at(OWN, 0, REAL, false);
	void *fixture = c;
	uint64_t newest = 0, requests = 0;

	for (uint16_t i = 0; i < NODES; i++)
		do_task(c, i, forward_s(c, i));
	for (uint16_t i = 0; i < NODES; i++) {
		double late_s = 8 * forward_s(c, i);

		do_task(c, i, late_s);
		requests += c->planning.wanted_id != newest;
		newest = c->planning.wanted_id;
	}
	assert_int_equal(requests, 3);
	under_way_end(&fixture);
}

/* If small corrections have caused a request for a plan, further small corrections cause no request
 * for 15 s. */
TEST(small_corrections_request_a_plan_now_and_then)
{
	struct controller *c = controller_at(OWN, 0, REAL, true);
	void *fixture = c;

	for (int s = 0; s <= 16; s += 8) {
		double planned_s = forward_s(c, LATE);

		for (int k = 0; k < 8; k++) {
			do_task(c, LATE, 1.3 * planned_s);
			if (k % 4 == 3)
				drift_turn(&c->planning);
		}
		assert_true(forward_s(c, LATE) > planned_s);
		assert_int_equal(c->planning.wanted_id != 0, s != 8);
		c->planning.wanted_id = 0;
		c->run.now_us += 8 * (int64_t)SECOND;
	}
	under_way_end(&fixture);
}
