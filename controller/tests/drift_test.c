/* drift_test.c - the controller learns the real speed of links and nodes from reports, and corrects
 * the plan's times. A single odd report must not change the plan, and the controller must ignore
 * impossible values. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "controller/controller.h"
#include "controller/joining/agents.h"
#include "controller/members/members.h"
#include "controller/network/link_table.h"
#include "controller/planning/drift.h"
#include "controller/setup.h"

enum { NODES = 8, FROM = 2 };

/* Returns a controller in whose cluster every link takes one second. The node FROM has no link to
 * the last node. */
static struct controller *made(void)
{
	struct controller *c = controller_new();

	assert_non_null(c);
	c->run.cluster = cluster_alloc(NODES, 2, true);
	c->members.list = calloc(NODES, sizeof(*c->members.list));
	assert_true(c->run.cluster && c->members.list);
	for (int i = 0; i < NODES * NODES; i++)
		c->run.cluster->delay_s[i] = 1;
	c->run.cluster->delay_s[FROM * NODES + NODES - 1] = -1;
	c->run.cluster_as_given = cluster_copy(c->run.cluster);
	assert_non_null(c->run.cluster_as_given);
	c->members.n = NODES;
	c->run.unit_s = 0.1;
	for (uint16_t i = 0; i < NODES; i++) {
		c->members.list[i].id = i;
		c->members.list[i].links.ratio = 1;
	}
	return c;
}

static void unmake(struct controller *c)
{
	for (uint32_t i = 0; i < NODES; i++)
		free(c->members.list[i].links.list);
	free(c->run.journal.notes);
	free(c->members.list);
	cluster_free(c->run.cluster);
	cluster_free(c->run.cluster_as_given);
	free(c);
}

/* Makes the node FROM report its links to the nodes 3, 4, and so on. */
static void tell(struct controller *c, const double *measured, uint32_t n)
{
	struct msg_link links[NODES] = { { .from = 0 } };
	struct msg_links l = { n, links, FORMAT_FP32, 0, 0 };

	for (uint32_t i = 0; i < n; i++) {
		links[i].to = (uint16_t)(3 + i);
		links[i].measured_delay_s = (float)measured[i];
	}
	members_links(&c->planning, &c->members.list[FROM], &l);
}

static double believed(const struct controller *c, uint16_t to)
{
	return c->run.cluster->delay_s[FROM * NODES + to];
}

TEST(unused_links_follow_the_others)
{
	struct controller *c = made();
	const double slow[] = { 4, 4.2, 3.9, 4 }, normal[] = { 1, 1.1, 1, 0.95 };

	tell(c, slow, 4);
	assert_true(believed(c, 0) > 3.8 && believed(c, 0) < 4.3);
	/* the controller still knows that the link is missing */
	assert_true(believed(c, NODES - 1) < 0);
	assert_true(c->run.cluster->delay_s[0 * NODES + FROM] == 1);
	assert_true(c->planning.drift.links_corrected);
	tell(c, normal, 4);
	assert_true(believed(c, 0) == 1 && believed(c, 5) == 1);
	unmake(c);
}

TEST(few_reports_must_be_repeated)
{
	struct controller *c = made();
	const double slow[] = { 4, 4.2 };

	tell(c, slow, 2);
	assert_true(believed(c, 0) == 1);
	tell(c, slow, 2);
	assert_true(believed(c, 0) > 3.8);
	unmake(c);
}

/* Plans add the time in which the hosts at both ends encode and decode a tensor. Plans do not add
 * this time in an emulated run, or if the reported time is impossible. */
TEST(hosts_take_their_part_of_a_transfer)
{
	const double takes[] = { 1, 1 };
	const struct {
		float encode_s, decode_s;
		double time_scale, expected;
	} cases[] = { { 0.5f, 0.75f, 0, 2.25 },
		      { 0.5f, 0.75f, 1, 1 },
		      { NAN, INFINITY, 0, 1 },
		      { -1, 100, 0, 1 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct controller *c = made();
		struct msg_link links[2] = { { .to = 3 }, { .to = 4 } };

		c->run.options.cluster.time_scale = cases[i].time_scale;
		for (int k = 0; k < 2; k++)
			links[k].measured_delay_s = (float)takes[k];
		members_links(&c->planning, &c->members.list[3],
			      &(struct msg_links){ 0, NULL, FORMAT_FP32, 0, cases[i].decode_s });
		for (int k = 0; k < 2; k++)
			members_links(&c->planning, &c->members.list[FROM],
				      &(struct msg_links){ 2, links, FORMAT_FP32,
							   cases[i].encode_s, 0 });
		assert_true(fabs(believed(c, 3) - cases[i].expected) < 1e-6);
		assert_true(fabs(believed(c, 4) -
				 (cases[i].expected > 1 ? 1 + (double)cases[i].encode_s : 1)) <
			    1e-6);
		unmake(c);
	}
}

/* The time for which the host delays a task counts as part of the task's time. */
TEST(a_late_host_slows_its_tasks)
{
	struct controller *c = made();
	struct member *m = &c->members.list[1];

	m->state = MEMBER_LIVE;
	m->compute.pace = 1;
	c->run.cluster->nodes[1].forward_s = 1;
	for (int i = 0; i < 8; i++) {
		struct msg_task_event e = { .type = WORK_STARTS, .kind = TASK_FORWARD,
					    .at_us = c->run.now_us, .late_us = 100000 };

		drift_task(&c->planning, m, &e, 0);
		e = (struct msg_task_event){ .type = WORK_ENDS, .kind = TASK_FORWARD,
					     .at_us = c->run.now_us + 100000 };
		c->run.now_us = e.at_us;
		drift_task(&c->planning, m, &e, 0);
		if (i % 4 == 3)
			drift_turn(&c->planning);
	}
	assert_true(fabs(c->run.cluster->nodes[1].forward_s - 2) < 0.1);
	unmake(c);
}

/* If processes wait for a processor, this wait does not count as part of a transfer's time. */
TEST(a_shared_machine_is_not_a_slow_link)
{
	struct controller *c = made();
	const double late[] = { 2, 2.2, 2, 1.9 }, slow[] = { 6, 6, 6, 6 };

	for (uint16_t i = 0; i < NODES; i++)
		c->members.list[i].processor =
			(struct member_processor){ .waits = i == FROM ? 0.6 : 0,
						   .is_shared = i == FROM };
	for (int i = 0; i < 4; i++)
		tell(c, late, 4);
	assert_true(believed(c, 0) == 1 && believed(c, 3) == 1);
	assert_false(c->planning.drift.links_corrected);
	for (int i = 0; i < 4; i++)
		tell(c, slow, 4); /* these times are longer than the waits can explain */
	assert_true(believed(c, 3) > 4.3 && believed(c, 3) < 4.5);
	unmake(c);
}

TEST(one_link_is_corrected_alone)
{
	struct controller *c = made();
	const double odd[] = { 4, 1, 1.1, 1 }, alone[] = { 4 };

	for (int i = 0; i < 3; i++)
		tell(c, odd, 4);
	assert_true(believed(c, 3) > 3.8 && believed(c, 0) == 1 && believed(c, 4) == 1);
	for (int i = 0; i < 3; i++)
		tell(c, alone, 1);
	assert_true(believed(c, 0) == 1);
	unmake(c);
}

/* Reports a measurement of the link from node FROM to node 3. took_s: transfer time of an
 * activation; 0: none was sent. latency_s: half a round trip. Returns the delay that the controller
 * then assumes. */
static double travel(struct controller *c, double took_s, double latency_s)
{
	struct msg_link link = { .to = 3,
				 .measured_delay_s = (float)took_s,
				 .latency_s = (float)latency_s };

	members_links(&c->planning, &c->members.list[FROM],
		      &(struct msg_links){ 1, &link, FORMAT_FP32, 0, 0 });
	return believed(c, 3);
}

static struct controller *made_measured(void)
{
	struct controller *c = made();

	c->run.unit_s = 1;
	c->run.phase = PHASE_COMPUTING;
	c->members.links = link_table_new(NODES);
	assert_non_null(c->members.links);
	c->members.links->activation_bytes = 1e5;
	*link_table_at(c->members.links, FROM, 3) =
		(struct link_seen){ .known = true, .latency_s = 0.045f, .bandwidth = 2e7 };
	c->run.cluster->delay_s[FROM * NODES + 3] = 0.05;
	return c;
}

static void unmake_measured(struct controller *c)
{
	link_table_free(c->members.links);
	c->members.links = NULL;
	unmake(c);
}

/* Half of the activations lose a packet and take longer. The assumed delay must stay near the mean,
 * and change rarely, because changes can cause new plans. */
TEST(the_delay_of_a_lossy_link_is_its_mean)
{
	struct controller *c = made_measured();
	struct rng r;
	double last = 0;
	int changes = 0;

	rng_init(&r, 7);
	for (int i = 0; i < 300; i++) {
		double now;

		c->run.now_us += 1000000;
		now = travel(c, rng_below(&r, 2) ? 0.05 : 0.35, 0.045);
		changes += i >= 20 && fabs(now - last) > 1e-9;
		last = now;
		assert_true(i < 20 || (now > 0.1 && now < 0.32));
	}
	assert_in_range(changes, 0, 30);
	unmake_measured(c);
}

TEST(a_changed_link_is_soon_corrected)
{
	struct controller *c = made_measured();

	for (int i = 0; i < 20; i++)
		assert_true(travel(c, i % 2 ? 0.05 : 0.052, 0.045) < 0.06);
	for (int i = 0; i < 3; i++)
		travel(c, 0.25, 0.225);
	assert_true(believed(c, 3) > 0.12);
	/* The link has recovered. Only probes show this, because no activation uses the link. */
	for (int i = 0; i < 2; i++)
		travel(c, 0, 0.045);
	assert_true(believed(c, 3) < 0.07);
	unmake_measured(c);
}

TEST(impossible_reports_are_ignored)
{
	struct controller *c = made();
	struct msg_link links[] = { { .to = NODES, .measured_delay_s = 9 },
				    { .to = UINT16_MAX, .measured_delay_s = 9 } };
	struct msg_links l = { 2, links, FORMAT_FP32, 0, 0 };

	members_links(&c->planning, &c->members.list[FROM], &l);
	members_links(&c->planning, &c->members.list[FROM], &l);
	assert_true(believed(c, 0) == 1 && !c->planning.drift.links_corrected);
	unmake(c);
}

static void a_task(struct controller *c, uint16_t node, double took_s)
{
	struct member *m = &c->members.list[node];
	struct msg_task_event e = { .type = WORK_STARTS, .kind = TASK_FORWARD };

	c->run.now_us += 1000000;
	e.at_us = c->run.now_us;
	drift_task(&c->planning, m, &e, c->iteration.progress.started_us);
	e.type = WORK_ENDS;
	e.at_us += (int64_t)(took_s * c->run.unit_s * 1e6);
	drift_task(&c->planning, m, &e, c->iteration.progress.started_us);
}

/* One node is slower than all others. The controller corrects this node as soon as it knows that
 * the other nodes are fast, and does not wait for the iteration's end. */
TEST(a_node_slower_than_all_others_is_corrected_at_once)
{
	struct controller *c = made();

	c->run.options.cluster.time_scale = c->run.unit_s;
	for (uint16_t i = 0; i < NODES; i++) {
		c->run.cluster->nodes[i].forward_s = 1;
		c->members.list[i].state = MEMBER_LIVE;
	}
	a_task(c, 2, 1.1);
	a_task(c, 3, 1.1);
	a_task(c, 1, 4);
	a_task(c, 1, 4);
	/* not corrected yet, because the other nodes may be just as slow */
	assert_true(c->run.cluster->nodes[1].forward_s == 1);
	for (uint16_t i = 4; i < NODES; i++)
		a_task(c, i, 1.1);
	a_task(c, 1, 4);
	a_task(c, 1, 4);
	assert_true(fabs(c->run.cluster->nodes[1].forward_s - 4) < 1e-9 &&
		    c->planning.drift.compute_corrected);
	c->planning.drift.compute_corrected = false;
	a_task(c, 2, 1.8);
	a_task(c, 2, 1.8);
	assert_true(c->run.cluster->nodes[2].forward_s == 1 &&
		    !c->planning.drift.compute_corrected);
	a_task(c, 1, 1);
	a_task(c, 1, 1);
	assert_true(fabs(c->run.cluster->nodes[1].forward_s - 1) < 1e-9 &&
		    c->planning.drift.compute_corrected);
	unmake(c);
}

/* Under load, the report of a task's end is late, and the estimate of the node's clock changes. The
 * task's measured time must not change. */
TEST(a_new_clock_estimate_is_no_drift)
{
	struct controller *c = made();
	struct member *m = &c->members.list[1];
	struct msg_task_event e = { .kind = TASK_FORWARD };

	c->run.cluster->nodes[1].forward_s = 1;
	c->run.now_us = 9000000;
	e.type = WORK_STARTS;
	e.at_us = 1000000;
	drift_task(&c->planning, m, &e, c->iteration.progress.started_us);
	m->clock.offset_us = -700000;
	e.type = WORK_ENDS;
	e.at_us = 1100000 + m->clock.offset_us;
	drift_task(&c->planning, m, &e, c->iteration.progress.started_us);
	assert_true(fabs(m->tasks.took_s - 0.1) < 1e-9);
	unmake(c);
}

static void all_take(struct controller *c, double times)
{
	for (uint16_t i = 0; i < NODES; i++)
		for (int k = 0; k < 3; k++)
			a_task(c, i, times);
	drift_turn(&c->planning);
}

/* Agents share cores and slow each other down. The first measurement counts fully, because nothing
 * was known before. Later iterations have less weight, so that predictions do not change with each
 * of them. */
TEST(a_pace_is_a_mean)
{
	struct controller *c = made();
	double first;

	for (uint16_t i = 0; i < NODES; i++) {
		struct member *m = &c->members.list[i];

		snprintf(m->hello.machine, sizeof(m->hello.machine), "one");
		m->hello.cores = 2;
		m->state = MEMBER_LIVE;
		m->compute.pace = m->compute.alone_forward_s = 1;
		c->run.cluster->nodes[i].forward_s = 1;
	}
	all_take(c, 4);
	first = c->run.cluster->nodes[0].forward_s;
	assert_true(fabs(first - 4) < 0.1 && c->run.cluster->nodes[NODES - 1].forward_s == first);
	for (int k = 0; k < 4; k++)
		all_take(c, first);
	assert_true(fabs(c->run.cluster->nodes[0].forward_s - first) < 0.1);
	all_take(c, 2 * first);
	assert_true(c->run.cluster->nodes[0].forward_s > first &&
		    c->run.cluster->nodes[0].forward_s < 1.5 * first);
	unmake(c);
}

/* If a stage has three times the work, its tasks may take three times as long. */
TEST(the_work_of_a_stage_is_no_slowness)
{
	struct controller *c = made();

	c->run.cluster->work[1] = 3;
	for (uint16_t i = 0; i < NODES; i++) {
		struct member *m = &c->members.list[i];

		m->state = MEMBER_LIVE;
		m->compute.pace = m->compute.alone_forward_s = 1;
		c->run.cluster->nodes[i].forward_s = 1;
		c->run.cluster->nodes[i].stage = 1;
	}
	for (int k = 0; k < 4; k++)
		all_take(c, 3);
	assert_true(c->run.cluster->nodes[0].forward_s == 1);
	for (int k = 0; k < 4; k++)
		all_take(c, 9);
	assert_true(fabs(c->run.cluster->nodes[0].forward_s - 3) < 0.1);
	unmake(c);
}

/* An agent may report any number. The controller uses only possible times in plans. */
TEST(impossible_times_are_not_planned_with)
{
	struct controller *c = made();
	const double said[] = { -40, 1e12 };

	c->run.options.cluster.time_scale = c->run.unit_s;
	for (uint16_t i = 0; i < NODES; i++) {
		c->run.cluster->nodes[i].forward_s = 1;
		c->members.list[i].state = MEMBER_LIVE;
		a_task(c, i, 1);
	}
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 20; i++)
			a_task(c, 1, said[k]);
		assert_true(c->run.cluster->nodes[1].forward_s > 0);
		assert_true(c->run.cluster->nodes[1].forward_s * c->run.unit_s <=
			    (double)c->run.now_us * 1e-6 + 1);
	}
	unmake(c);
}
