/* sums.c - orders the replicas of a stage to sum its gradient.
 *
 * The order names the replicas and the standby copies that take part, so that every agent knows how
 * many slices to wait for. If the replicas or the copies change, the order is void, and the next
 * order has a higher attempt. */
#include "controller/iteration/sums.h"

#include <string.h>

#include "controller/iteration/iteration.h"
#include "controller/members/member.h"
#include "controller/weights/copies.h"

void sums_forget(struct iteration *it)
{
	it->reduce_attempt++;
	memset(it->summing, 0, sizeof(it->summing));
	for (uint32_t i = 0; i < it->members->n; i++)
		it->members->list[i].sum.counts = false;
	copies_forget_sums(it->members);
}

/* Sends MSG_REDUCE with the present attempt number to the replicas of the stage and to the nodes
 * that hold its standby copies. */
static void order_stage(struct iteration *it, int stage, bool when_counted)
{
	struct msg m = { .type = MSG_REDUCE };
	uint16_t nodes[MSG_NODES], copies[MSG_NODES];
	uint32_t n = 0, k = copies_of(it->members, stage, copies);

	for (uint32_t i = 0; i < it->members->n; i++)
		if (member_is_replica(&it->members->list[i]) &&
		    member_stage(it->run, &it->members->list[i]) == stage)
			nodes[n++] = (uint16_t)i;
	m.u.reduce = (struct msg_reduce){
		.iteration = it->run->iteration,
		.attempt = it->reduce_attempt,
		.stage = (uint8_t)stage,
		.when_counted = when_counted,
		.sum_wire = (uint8_t)it->run->cluster->formats.sum_wire,
		.n_nodes = n,
		.nodes = nodes,
		.n_copies = k,
		.copies = copies,
	};
	for (uint32_t i = 0; i < k; i++)
		member_send(it->run, &it->members->list[copies[i]], &m);
	for (uint32_t i = 0; i < n; i++) {
		it->members->list[nodes[i]].sum.is_done = false;
		it->members->list[nodes[i]].sum.slice = i;
		it->members->list[nodes[i]].sum.counts = true;
		it->members->list[nodes[i]].sum.stage = (uint8_t)stage;
		member_send(it->run, &it->members->list[nodes[i]], &m);
	}
	it->summing[stage] = n;
}

void sums_order_ahead(struct iteration *it)
{
	if (!it->members->links)
		/* Emulated sums are not ordered ahead of time, because they begin after the last
		 * task of their stage (overlap_sync) or of the iteration. */
		return;
	for (int s = 0; s < it->run->cluster->n_stages; s++)
		order_stage(it, s, true);
}

void sums_order_counted(struct iteration *it)
{
	for (int s = 0; s < it->run->cluster->n_stages; s++)
		if (it->summing[s] == 0 && routes_stage_counted(&it->routes, (uint8_t)s))
			order_stage(it, s, false);
}

void sums_order_rest(struct iteration *it)
{
	for (int s = 0; s < it->run->cluster->n_stages; s++)
		if (it->summing[s] == 0)
			order_stage(it, s, false);
}
