/* route.c - checks routes from messages and converts them to tasks. Other modules get only checked
 * routes, so they need no range checks. */
#include "agent/shared/route.h"

#include <assert.h>
#include <string.h>

#include "wire/chain.h"

const char *route_read(struct route *to, const struct route *from,
		       const struct route_limits *limits)
{
	uint64_t stages = 0;

	if (from->n_hops == 0 || from->n_hops > limits->n_stages || from->n_hops > MSG_STAGES)
		return "a route without hops, or with more hops than stages";
	if (from->microbatch >= MSG_MICROBATCHES)
		return "a microbatch number that is too large";
	if (from->since > from->attempt)
		return "a route that began after its attempt";
	if (from->shard >= limits->n_shards)
		return "a shard that does not exist";
	if (from->stages[0] != 0)
		return "a route that does not begin with stage 0";
	for (uint32_t i = 0; i < from->n_hops; i++) {
		if (from->nodes[i] >= limits->n_nodes || from->stages[i] >= limits->n_stages ||
		    from->stages[i] >= MSG_STAGES)
			return "a route through a node or stage that does not exist";
		if (stages >> from->stages[i] & 1)
			return "a route that visits a stage twice";
		stages |= (uint64_t)1 << from->stages[i];
		for (uint32_t k = 0; k < i; k++)
			if (from->nodes[k] == from->nodes[i])
				return "a route that visits a node twice";
	}
	*to = *from;
	return NULL;
}

bool route_equal(const struct route *a, const struct route *b)
{
	return a->microbatch == b->microbatch && a->attempt == b->attempt && a->since == b->since &&
	       a->shard == b->shard && a->wave == b->wave && a->n_hops == b->n_hops &&
	       memcmp(a->nodes, b->nodes, a->n_hops * sizeof(a->nodes[0])) == 0 &&
	       memcmp(a->stages, b->stages, a->n_hops) == 0;
}

bool route_continues(const struct route *a, const struct route *b)
{
	return a->n_hops > 0 && a->attempt >= b->since && a->microbatch == b->microbatch &&
	       a->shard == b->shard && a->wave == b->wave && a->n_hops == b->n_hops &&
	       memcmp(a->stages, b->stages, a->n_hops) == 0;
}

int route_find(const struct route *r, uint16_t node)
{
	return chain_find(r->nodes, r->n_hops, node);
}

uint32_t route_last(const struct route *r, bool evaluate)
{
	return evaluate ? r->n_hops : 2 * r->n_hops;
}

enum task_kind route_kind(const struct route *r, uint32_t t)
{
	assert(t <= 2 * r->n_hops);
	return chain_kind(r->n_hops, t);
}

uint16_t route_node(const struct route *r, uint32_t t)
{
	assert(t <= 2 * r->n_hops);
	return r->nodes[chain_hop(r->n_hops, t)];
}

uint8_t route_stage(const struct route *r, uint32_t t)
{
	assert(t <= 2 * r->n_hops);
	return r->stages[chain_hop(r->n_hops, t)];
}
