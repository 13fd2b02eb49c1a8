/* slots_test.c - a node holds as many microbatches at once as its memory permits, also if it joins
 * late. */
#include "base/tests/test.h"
#include "controller/joining/slots.h"
#include "controller/members/capacity.h"
#include "controller/tests/under_way.h"

enum { NODE = 4, MOST = 8 };

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* Prepares a run whose network is measured, with a model of two stages. */
static void measure(struct controller *c)
{
	assert_int_equal(model_preset("tiny", &c->run.training.model, &c->run.training.hyper, NULL),
			 0);
	c->run.training.model.n_stages = 2;
	c->run.training.stage_parameters[0] = 400000;
	c->run.training.stage_parameters[1] = 500000;
	c->run.options.cluster.time_scale = 0;
	c->run.cluster_as_given = cluster_copy(c->run.cluster);
	for (uint32_t i = 0; i < c->members.n; i++)
		c->members.list[i].hello.memory_bytes = 0;
}

/* Sets the node's free memory so that the stage, n microbatches and the share for other uses
 * fit. */
static void have_room(struct controller *c, double n)
{
	double bytes = capacity_stage_bytes(500000) +
		       n * capacity_slot_bytes(&c->run.training.model, &c->run.training.hyper);

	c->members.list[NODE].hello.memory_bytes = (uint64_t)(bytes / 0.7);
}

FIXTURE_TEST(slots_follow_the_memory_of_the_node)
{
	struct controller *c = *state;
	const struct cluster_node *nodes;

	measure(c);
	nodes = c->run.cluster->nodes;
	for (int n = 1; n <= MOST + 2; n++) {
		have_room(c, n + 0.5);
		slots_settle(&c->members, &c->members.list[NODE]);
		assert_int_equal(nodes[NODE].memory, n < MOST ? n : MOST);
		assert_int_equal(c->run.cluster_as_given->nodes[NODE].memory, nodes[NODE].memory);
		/* the number that the fixture has set */
		assert_int_equal(nodes[NODE - 1].memory, 4);
	}
	have_room(c, 2.5);
	slots_settle_all(&c->members);
	assert_int_equal(nodes[NODE].memory, 2);
	/* the node has not reported its memory, so its number stays */
	assert_int_equal(nodes[NODE - 1].memory, 4);
}

/* Lets m join the machine "one", which has this much free memory. */
static void join(struct member *m, uint64_t bytes)
{
	m->state = MEMBER_JOINING;
	m->assigned.is_welcomed = true;
	m->assigned.number = 7;
	snprintf(m->hello.machine, sizeof(m->hello.machine), "one");
	snprintf(m->hello.device, sizeof(m->hello.device), "cpu");
	m->hello.memory_bytes = m->hello.machine_bytes = bytes;
}

/* When the second agent joins, both agents have fewer slots. The controller withdraws the first
 * agent's order, and will send the agent its new number of slots with another welcome. */
FIXTURE_TEST(two_late_agents_share_the_memory_of_their_machine)
{
	struct controller *c = *state;
	struct member *first = &c->members.list[NODE], *second = &c->members.list[NODE + 1];
	const struct cluster_node *nodes = c->run.cluster->nodes;
	double stage = capacity_stage_bytes(500000), slot;
	uint64_t bytes;

	measure(c);
	slot = capacity_slot_bytes(&c->run.training.model, &c->run.training.hyper);
	bytes = (uint64_t)((2 * stage + 4.5 * slot) / 0.7);
	join(first, bytes);
	slots_settle_late(&c->members, first);
	assert_in_range(nodes[NODE].memory, 4, MOST);
	join(second, bytes);
	slots_settle_late(&c->members, second);
	assert_int_equal(nodes[NODE + 1].memory, 2);
	assert_int_equal(nodes[NODE].memory, 2);
	assert_false(first->assigned.is_welcomed);
	assert_int_equal(first->assigned.number, 0); /* an answer to the old order does not count */
	assert_true(second->assigned.is_welcomed);

	/* An agent that works already has taken its memory, and keeps its number. */
	first->state = MEMBER_LIVE;
	c->run.cluster->nodes[NODE].memory = 5;
	slots_settle_late(&c->members, second);
	assert_int_equal(nodes[NODE].memory, 5);

	/* While the run gathers agents, the numbers stay, because the first plan relies on them. */
	first->state = MEMBER_SYNCING;
	first->assigned.is_welcomed = true;
	c->run.phase = PHASE_GATHERING;
	slots_settle_late(&c->members, second);
	assert_int_equal(nodes[NODE].memory, 5);
	assert_true(first->assigned.is_welcomed);
}

FIXTURE_TEST(numbers_that_are_given_stay)
{
	struct controller *c = *state;

	measure(c);
	have_room(c, 2.5);
	c->run.options.cluster.file = "a file";
	slots_settle(&c->members, &c->members.list[NODE]);
	assert_int_equal(c->run.cluster->nodes[NODE].memory, 4);
	c->run.options.cluster.file = NULL;
	c->run.options.cluster.time_scale = 1; /* the network is emulated */
	slots_settle(&c->members, &c->members.list[NODE]);
	assert_int_equal(c->run.cluster->nodes[NODE].memory, 4);
}
