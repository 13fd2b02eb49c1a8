/* shared_machines_test.c - what the controller concludes from the processor times in heartbeats:
 * whether other programs share a machine. The controller reports a shared machine once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/controller.h"
#include "controller/joining/agents.h"
#include "controller/members/members.h"
#include "controller/operator/console_messages.h"
#include "controller/tests/under_way.h"

enum { AGENTS = 4, CORES = 2 };

/* Returns a controller whose first AGENTS agents are on one machine. */
static struct controller *on_one_machine(void **state)
{
	struct controller *c = *state;

	for (int i = 0; i < AGENTS; i++) {
		strcpy(c->members.list[i].hello.machine, "one");
		c->members.list[i].hello.cores = CORES;
	}
	return c;
}

/* Lets some seconds pass. For the share `runs` of this time, each agent of the machine runs. For
 * the share `waits`, it waits for a processor. */
static void pass(struct controller *c, double runs, double waits, int seconds)
{
	for (int i = 0; i < 10 * seconds; i++) {
		c->run.now_us += SECOND / 10;
		for (int k = 0; k < AGENTS; k++) {
			struct member *m = &c->members.list[k];
			struct msg_heartbeat h = m->beat;

			h.beat++;
			h.now_us = c->run.now_us;
			h.ran_us += (uint64_t)(runs * SECOND / 10) + 1;
			h.waited_us += (uint64_t)(waits * SECOND / 10);
			h.n_stuck = 0;
			members_heartbeat(&c->iteration, m, &h);
		}
	}
}

static int notes(const struct controller *c, const char *text)
{
	int n = 0;

	for (uint32_t i = 0; i < c->run.journal.n_notes; i++)
		n += strstr(c->run.journal.notes[i].text, text) != NULL;
	return n;
}

static unsigned shown(const struct controller *c, int node)
{
	struct msg m;

	node_message(&m, &c->members.list[node], &c->run.cluster->nodes[node], 1, 0, 0);
	return m.u.see_node.waits_percent;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* Each agent has its own GPU of 140 GB, on a machine with 1,000 GB. */
FIXTURE_TEST(agents_of_a_machine_divide_the_memory_of_what_they_share)
{
	struct controller *c = on_one_machine(state);
	const struct member *first = &c->members.list[0];

	for (int i = 0; i < AGENTS; i++) {
		struct msg_hello *h = &c->members.list[i].hello;

		snprintf(h->device, sizeof(h->device), "cuda:%d sm_90 H200", i);
		h->memory_bytes = 140000000000;
		h->machine_bytes = 1000000000000;
	}
	assert_true(members_memory(&c->members, first) == 140e9);
	/* Two agents share a GPU. */
	strcpy(c->members.list[1].hello.device, first->hello.device);
	assert_true(members_memory(&c->members, first) == 70e9);
	/* The machine has less memory than its GPUs together. */
	for (int i = 0; i < AGENTS; i++)
		c->members.list[i].hello.machine_bytes = 120000000000;
	assert_true(members_memory(&c->members, first) == 120e9 / AGENTS);
	/* An agent on another machine does not share this machine's memory. */
	strcpy(c->members.list[3].hello.machine, "two");
	assert_true(members_memory(&c->members, first) == 120e9 / (AGENTS - 1));
}

FIXTURE_TEST(agents_beside_other_programs_wait)
{
	struct controller *c = on_one_machine(state);

	pass(c, 0.2, 0.02, 20);
	assert_int_equal(notes(c, "is shared"), 0);
	assert_false(shared_machines_any(&c->members));
	pass(c, 0.2, 0.5, 40);
	assert_int_equal(notes(c, "is shared: its agents wait for a processor"), 1);
	assert_true(shared_machines_any(&c->members));
	assert_in_range(shown(c, 0), 45, 50);
	assert_int_equal(shown(c, AGENTS), 0); /* agent AGENTS is on another machine */
	assert_true(shared_machines_share(&c->members, AGENTS, 0) > 0.4);
	assert_true(shared_machines_share(&c->members, AGENTS, AGENTS + 1) == 0);
	pass(c, 0.2, 0.02, 40);
	assert_int_equal(notes(c, "have its processors again"), 1);
	assert_int_equal(notes(c, "is shared"), 1);
	assert_int_equal(shown(c, 0), 0);
}

/* Agents that use the whole machine wait for one another. The pace in the plan already includes
 * this wait, so the machine does not count as shared with other programs. */
FIXTURE_TEST(agents_that_fill_their_machine_do_not_share_it)
{
	struct controller *c = on_one_machine(state);

	pass(c, 0.48, 0.5, 60);
	assert_int_equal(notes(c, "is shared"), 0);
	assert_int_equal(shown(c, 0), 0);
}

/* Agents that use almost all processors do not make the report change back and forth. */
FIXTURE_TEST(a_shared_machine_stays_shared_until_its_agents_fill_it)
{
	struct controller *c = on_one_machine(state);

	pass(c, 0.3, 0.5, 20);
	assert_int_equal(notes(c, "is shared"), 1);
	for (int i = 0; i < 5; i++) {
		pass(c, 0.42, 0.5, 20);
		pass(c, 0.35, 0.5, 20);
	}
	assert_int_equal(notes(c, "is shared"), 1);
	assert_int_equal(notes(c, "have its processors again"), 0);
	pass(c, 0.48, 0.5, 40);
	assert_int_equal(notes(c, "have its processors again"), 1);
}

/* A restarted process counts its times from zero, and some systems do not count them at all. The
 * controller must not conclude from such counts that other programs share the machine. */
FIXTURE_TEST(odd_counts_are_ignored)
{
	struct controller *c = on_one_machine(state);

	pass(c, 0.2, 0.02, 10);
	for (int i = 0; i < AGENTS; i++)
		c->members.list[i].beat.ran_us = c->members.list[i].beat.waited_us = 0;
	pass(c, 0.2, 0.02, 10);
	assert_int_equal(notes(c, "is shared"), 0);
	for (int i = 0; i < AGENTS; i++)
		c->members.list[i].beat.waited_us = UINT64_MAX - 100 * SECOND;
	pass(c, 0.2, 0.02, 1);
	assert_true(shown(c, 0) <= 100);
}

/* Containers of one machine that have quotas do not slow each other down. Agents of one container
 * share its quota. */
FIXTURE_TEST(containers_with_quotas_share_no_processors)
{
	struct controller *c = on_one_machine(state);
	struct msg_hello *a = &c->members.list[0].hello, *b = &c->members.list[1].hello;
	const struct member *x = &c->members.list[0], *y = &c->members.list[1];

	a->network = 7;
	b->network = 8;
	assert_true(members_share_processors(x, y));
	a->quota = b->quota = 1500;
	assert_false(members_share_processors(x, y));
	assert_true(members_share_processors(x, x));
	b->network = a->network;
	assert_true(members_share_processors(x, y));
	b->quota = 500;
	assert_false(members_share_processors(x, y));
	b->quota = 0;
	assert_false(members_share_processors(x, y));
	a->quota = 0;
	b->network = 8;
	assert_true(members_share_processors(x, y));
}
