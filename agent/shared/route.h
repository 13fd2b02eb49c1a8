/* route.h - a microbatch's route as a chain of tasks (wire/chain.h).
 *
 * The task at position t + 1 gets the output of the task at position t. A route with n hops has an
 * F at each of the positions 0 to n - 1, and its loss at position n. In training, a B at each hop
 * follows; an evaluation ends with the loss. Pure functions on plain data.
 */
#ifndef AGENT_ROUTE_H
#define AGENT_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/route.h"
#include "wire/msg.h"

/* Numbers of stages, nodes and shards of the run, which every route must respect. */
struct route_limits {
	uint32_t n_nodes, n_stages, n_shards;
};

/* Checks and copies a route. The first stage must be 0, no node or stage may occur twice, and all
 * numbers must be in range. Returns NULL, or a description of the fault; then *to is not set. */
const char *route_read(struct route *to, const struct route *from,
		       const struct route_limits *limits);
/* Returns true if both routes have the same nodes, the same data and the same attempt. */
bool route_equal(const struct route *a, const struct route *b);
/* Returns true if route b differs from route a only in replaced nodes. The work of the other nodes
 * then stays valid, because the substitutes compute the same bits. */
bool route_continues(const struct route *a, const struct route *b);
/* Returns the index of the node's hop; -1: the node is not in the route. */
int route_find(const struct route *r, uint16_t node);

/* Returns the last position of the chain. */
uint32_t route_last(const struct route *r, bool evaluate);
/* These functions return properties of the task at position t, t <= route_last(r, false). */
enum task_kind route_kind(const struct route *r, uint32_t t);
uint16_t route_node(const struct route *r, uint32_t t);
uint8_t route_stage(const struct route *r, uint32_t t);

#endif
