/* route.h - a microbatch's route as a chain of tasks (wire/chain.h).
 *
 * The task at position t + 1 gets the output of position t. An evaluation ends with its loss: it
 * has positions 0 .. n. Pure functions on plain data.
 */
#ifndef AGENT_ROUTE_H
#define AGENT_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/route.h"
#include "wire/msg.h"

/* Limits that every route must keep. */
struct route_limits {
	uint32_t n_nodes, n_stages, n_shards;
};

/* Checks and copies a route: the first stage is 0, no node or stage occurs twice, and all are in
 * range. Returns NULL, or a description of the fault; *to must then not be used. */
const char *route_read(struct route *to, const struct route *from,
		       const struct route_limits *limits);
/* Returns true if both have the same nodes, the same data and the same attempt. */
bool route_equal(const struct route *a, const struct route *b);
/* Returns true if b differs from a only in that some nodes are replaced. The work of the remaining
 * nodes stays valid, because the substitutes compute the same bits. */
bool route_continues(const struct route *a, const struct route *b);
/* Returns the index of the node's hop; -1: the node is not in the route. */
int route_find(const struct route *r, uint16_t node);

/* Returns the last position of the chain. */
uint32_t route_last(const struct route *r, bool evaluate);
/* Properties of the task at position t, t <= route_last(r, false). */
enum task_kind route_kind(const struct route *r, uint32_t t);
uint16_t route_node(const struct route *r, uint32_t t);
uint8_t route_stage(const struct route *r, uint32_t t);

#endif
