/* Fuzzes the checker and the simulator with plans. Both must end for any plan that is read, and
 * it must be possible to simulate a plan without breaches. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "schedule/execution/check.h"
#include "schedule/format/cluster.h"
#include "schedule/format/plan.h"
#include "schedule/execution/simulate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns a cluster of two data nodes and three other nodes in two stages, with one missing
 * link. */
static struct cluster *small_cluster(void)
{
	static const int stages[] = { 0, 0, 1, 2, 2 };
	struct cluster *c = cluster_alloc(5, 3, true);

	if (!c)
		abort();
	c->stages[0] = 2;
	c->stages[1] = 1;
	c->stages[2] = 2;
	c->microbatches_per_data_node = 2;
	for (int i = 0; i < 5; i++) {
		c->nodes[i].stage = stages[i];
		c->nodes[i].forward_s = 1;
		c->nodes[i].backward_s = 2;
		c->nodes[i].memory = 1 + i % 2;
		for (int j = 0; j < 5; j++)
			c->delay_s[i * 5 + j] = i == 1 && j == 4 ? -1 : 0.5;
	}
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cluster *c;
	struct plan *p = NULL;
	struct simulation *s = NULL;
	struct check_report report;
	struct error err;

	if (plan_parse((const char *)data, size, &p, &err) != 0)
		return 0;
	c = small_cluster();
	if (simulate(c, p, &s, &err) == 0 && s->n_tasks < p->n_microbatches)
		abort();
	check_plan(c, p, s, NULL, &report);
	/* A plan without breaches uses only existing nodes and links, so it can be simulated. */
	if (report.n_breaches == 0 && !s && simulate(c, p, &s, &err) == -EINVAL)
		abort();
	check_report_fini(&report);
	simulation_free(s);
	plan_free(p);
	cluster_free(c);
	return 0;
}
