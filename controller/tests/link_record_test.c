/* link_record_test.c - a resumed run knows the links and slots of nodes that joined late. */
#include <math.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/network/link_record.h"
#include "controller/network/link_table.h"
#include "controller/tests/under_way.h"

enum { LATE = 4 };

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* Records a run whose links are measured, except those of the late node. */
static void record_first(struct controller *c)
{
	struct link_table *t = c->members.links = link_table_new(NODES);

	assert_int_equal(model_preset("tiny", &c->run.training.model, &c->run.training.hyper, NULL),
			 0);
	c->run.training.model.n_stages = 2;
	c->run.training.stage_parameters[0] = c->run.training.stage_parameters[1] = 500000;
	for (uint32_t i = 0; i < NODES; i++)
		for (uint32_t j = 0; j < NODES; j++)
			*link_table_at(t, i, j) = (struct link_seen){
				.known = i != j && i != LATE && j != LATE,
				.latency_s = 0.01f,
				.bandwidth = 1e6,
			};
	assert_int_equal(record_cluster(&c->members, NULL), 0);
}

FIXTURE_TEST(late_nodes_are_added_to_the_recorded_cluster)
{
	struct controller *c = *state;
	const struct store_run *run = store_run_of(c->run.record.store);
	struct cluster *recorded;
	struct link_table *links;
	struct error err = { "" };

	record_first(c);
	for (uint32_t i = 0; i < NODES; i++)
		link_table_at(c->members.links, i, LATE)->known = i != LATE;
	*link_table_at(c->members.links, LATE, 0) =
		(struct link_seen){ .known = true, .unreachable = true, .latency_s = -1 };
	c->run.cluster->nodes[LATE].memory = 7;
	/* a correction, which is in other rows of the record and must not be written here */
	c->run.cluster->nodes[0].forward_s = 5;
	record_late_nodes(&c->members);
	links = link_table_parse(run->cluster);
	/* the late node's links are not recorded, because has_unrecorded_nodes is not set */
	assert_false(link_table_at(links, 0, LATE)->known);
	link_table_free(links);

	c->members.has_unrecorded_nodes = true;
	record_late_nodes(&c->members);
	assert_false(c->members.has_unrecorded_nodes);
	links = link_table_parse(run->cluster);
	if (cluster_parse(run->cluster, strlen(run->cluster), &recorded, &err) != 0)
		fail_msg("%s", err.text);
	assert_true(fabs((double)link_table_at(links, 0, LATE)->latency_s - 0.01) < 1e-6);
	assert_true(recorded->delay_s[LATE] > 0.01 && recorded->sync_pair_s[LATE] > 0.01);
	assert_true(link_table_at(links, LATE, 0)->unreachable);
	assert_false(link_table_at(links, LATE, 1)->known);
	assert_int_equal(recorded->nodes[LATE].memory, 7);
	assert_true(fabs(recorded->nodes[0].forward_s - 0.1) < 1e-9);
	cluster_free(recorded);
	link_table_free(links);
}
