/* bare.c - builds a controller for tests, with the nodes of a cluster as its members (bare.h). */
#include "controller/tests/bare.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/tests/test.h"
#include "controller/iteration/evaluate.h"
#include "controller/operator/consoles.h"
#include "controller/setup.h"

struct controller *bare_controller(struct cluster *cluster, uint32_t path_length)
{
	struct controller *c = controller_new();
	struct post_options o = { 0 };

	assert_non_null(cluster);
	c->run.cluster = cluster;
	assert_int_equal(keys_generate(&c->run.keys.own, NULL), 0);
	o.identity = c->run.keys.own;
	assert_int_equal(post_open(&c->run.post, &o, NULL), 0);
	assert_int_equal(planner_start(&c->planning.planner, NULL), 0);
	c->run.supervisor = -1;
	c->run.unit_s = c->run.options.cluster.time_scale = 1;
	c->run.wanted.path_length = path_length;
	c->members.n = (uint32_t)cluster->n_nodes;
	c->members.list = alloc_array(c->members.n, sizeof(*c->members.list));
	for (uint16_t i = 0; i < c->members.n; i++)
		c->members.list[i] = (struct member){ .id = i,
						      .peer = i + 1u,
						      .state = MEMBER_LIVE,
						      .copy.stage = -1,
						      .assigned.is_welcomed = true };
	return c;
}

void bare_free(struct controller *c)
{
	planner_stop(c->planning.planner);
	planned_free(c->planning.pending);
	planned_free(c->run.plan);
	post_close(c->run.post);
	keys_free(c->run.keys.own);
	evaluation_fini(&c->iteration);
	consoles_fini(&c->run);
	cluster_free(c->run.cluster);
	free(c->run.faults.list);
	free(c->members.failed_links.of);
	free(c->members.list);
	free(c);
}
