/* predict.c - predicts how long an iteration of a plan takes on measured links.
 *
 * The search predicts tasks and transfers. This module adds the controller's messages and the sums:
 *
 *     START travels | tasks and transfers | slices to their owners | sums back | REDUCED travels
 *
 * A message to or from the controller takes half of the node's round trip. START reaches the data
 * nodes at different times, which the simulation gets as release_s of the microbatches. Each node
 * begins its sum after its own last task, because the controller sends the order to sum together
 * with START (sums.h). A sum is two exchanges. In each exchange, every one of the r replicas
 * sends slices of 1 / r of the stage's gradient. The slices are in the format of sums, and travel
 * at LINK_TABLE_SUM_PART of the link's bandwidth. */
#include "controller/planning/predict.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "controller/members/members.h"
#include "controller/members/heartbeat_timeout.h"
#include "controller/network/formats.h"
#include "controller/network/link_table.h"
#include "controller/planning/planner.h"

static double one_way_delay_s(const struct members *members, int node)
{
	return (double)timeout_round_trip(&members->list[node].heard.rounds) * 0.5e-6;
}

/* Returns the time at which the REDUCED of the stage's last replica arrives. counted_s[node]: the
 * time at which the node has added its last gradient. */
static double stage_summed_s(const struct members *members, const struct plan *p, int stage,
			     enum tensor_format sum_wire, const double *counted_s)
{
	const int *nodes = p->assigned + p->stage_start[stage];
	const struct link_table *links = members->links;
	int r = p->stage_start[stage + 1] - p->stage_start[stage];
	double bytes = (double)tensor_format_sum_bytes(
		sum_wire, members->run->training.stage_parameters[stage] / (uint32_t)r);
	double last = 0;
	double *summed = alloc_array((size_t)r, sizeof(*summed));

	for (int owner = 0; owner < r; owner++)
		for (int from = 0; from < r; from++)
			summed[owner] = fmax(summed[owner],
					     counted_s[nodes[from]] +
						     link_table_sum_s(links, (uint32_t)nodes[from],
								      (uint32_t)nodes[owner],
								      bytes));
	for (int to = 0; to < r; to++)
		for (int owner = 0; owner < r; owner++)
			last = fmax(last, summed[owner] + one_way_delay_s(members, nodes[to]) +
						  link_table_sum_s(links, (uint32_t)nodes[owner],
								   (uint32_t)nodes[to], bytes));
	free(summed);
	return last;
}

/* For each node, returns the time at which its last task ends or, if the node has no task, the
 * time at which START arrives. */
static double *find_last_tasks(const struct members *members, const struct plan *p,
			       const struct simulation *s)
{
	double *counted_s = alloc_array((size_t)members->run->cluster->n_nodes, sizeof(*counted_s));

	for (int i = 0; i < p->stage_start[p->n_stages]; i++)
		counted_s[p->assigned[i]] = one_way_delay_s(members, p->assigned[i]);
	for (int k = 0; k < s->n_tasks; k++)
		counted_s[s->tasks[k].node] = fmax(counted_s[s->tasks[k].node], s->tasks[k].end_s);
	return counted_s;
}

void predict(struct members *members, struct planned *a)
{
	struct plan_predicted *d = a->plan ? &a->plan->predicted : NULL;
	struct simulation *s;
	struct error err;
	struct cluster *c;
	double summed_s = 0, *counted_s;
	int rc;

	if (!d || !members->links)
		return;
	for (int i = 0; i < a->plan->n_microbatches; i++)
		a->plan->microbatches[i].release_s =
			one_way_delay_s(members, a->plan->microbatches[i].data_node);
	c = formats_cluster(members, &a->formats);
	rc = simulate(c ? c : members->run->cluster, a->plan, &s, &err);
	cluster_free(c);
	if (rc != 0)
		return; /* a link has failed; callers check for this themselves */
	d->iteration_s = s->iteration_s;
	d->collisions = s->collisions;
	d->collision_wait_s = s->collision_wait_s;
	d->idle_fraction = s->idle_fraction;
	counted_s = find_last_tasks(members, a->plan, s);
	for (int stage = 0; stage < a->plan->n_stages; stage++)
		summed_s = fmax(summed_s, stage_summed_s(members, a->plan, stage,
							 a->formats.sum_wire, counted_s));
	free(counted_s);
	d->sync_s = fmax(0, summed_s - s->iteration_s);
	d->total_s = s->iteration_s + d->sync_s;
	simulation_free(a->trace);
	a->trace = s;
}
