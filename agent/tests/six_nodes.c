/* Sets up the cluster of six nodes that most tests of complete agents use. */
#include "agent/tests/cluster.h"
#include "base/tests/test.h"

#include <stdlib.h>

/* Two data nodes with stage 0, two replicas of stage 1, two replicas of stage 2. */
const uint8_t cluster_six[6] = { 0, 0, 1, 1, 2, 2 };

void cluster_route_six(struct cluster *c)
{
	cluster_route(c, 0, 2, (uint16_t[]) { 0, 2 });
	cluster_route(c, 1, 2, (uint16_t[]) { 1, 5 });
	cluster_route(c, 2, 3, (uint16_t[]) { 0, 3, 4 });
	cluster_route(c, 3, 3, (uint16_t[]) { 1, 2, 5 });
	cluster_route(c, 4, 3, (uint16_t[]){ 0, 4, 3 }); /* visits stage 2 before stage 1 */
	cluster_route(c, 5, 1, (uint16_t[]) { 1 });
	cluster_route(c, 6, 2, (uint16_t[]) { 0, 3 });
	cluster_route(c, 7, 2, (uint16_t[]) { 1, 3 });
}

struct cluster *cluster_make(uint32_t n, const uint8_t *stages)
{
	struct cluster *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	cluster_init(c, n, stages);
	return c;
}

struct cluster *cluster_of_six(void)
{
	struct cluster *c = cluster_make(6, cluster_six);

	cluster_gather(c);
	cluster_route_six(c);
	return c;
}

void cluster_unmake(struct cluster *c)
{
	cluster_fini(c);
	free(c);
}

void cluster_finish(struct cluster *c)
{
	cluster_until(c, cluster_all_through, "all microbatches");
	cluster_reduce(c, 1);
	cluster_check_twins(c);
	cluster_commit(c, 1);
}

void cluster_iterate(struct cluster *c)
{
	cluster_start(c);
	cluster_finish(c);
}

uint32_t cluster_troubles(const struct cluster *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_nodes; i++)
		n += c->nodes[i].troubles;
	return n;
}

bool cluster_any_trouble(struct cluster *c)
{
	return cluster_troubles(c) > 0;
}

/* ---- node 3 dies ---- */

bool cluster_three_has_counted(struct cluster *c)
{
	for (uint32_t i = 0; i < c->now.n_events; i++)
		if (c->now.events[i].node == 3 && c->now.events[i].counted)
			return true;
	return false;
}

bool cluster_three_is_ready(struct cluster *c)
{
	return c->nodes[3].ready;
}

uint32_t cluster_without_three(struct cluster *c)
{
	uint32_t which = 0;

	for (uint32_t m = 0; m < c->now.n_batches; m++)
		for (uint32_t i = 0; i < c->now.routes[m].n_hops; i++)
			if (c->now.routes[m].nodes[i] == 3) {
				c->now.routes[m].nodes[i] = 2;
				which |= 1u << m;
			}
	return which;
}
