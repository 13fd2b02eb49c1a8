/* route.h - a microbatch's route as a chain of tasks (wire/chain.h).
 *
 * An evaluation ends with its loss: positions 0 .. n. Position t + 1 gets the output of t.
 * Pure; plain data.
 */
#ifndef AGENT_ROUTE_H
#define AGENT_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/route.h"
#include "wire/msg.h"

/* What every route must fit into. */
struct route_limits {
	uint32_t n_nodes, n_stages, n_shards;
};

/* Copies and checks: NULL, or in words what is wrong with it (then *to is not to be used). The
 * first stage is 0, no node and no stage comes twice, all are in range. */
const char *route_read(struct route *to, const struct route *from,
		       const struct route_limits *limits);
/* Whether both go through the same nodes with the same data, attempt included. */
bool route_equal(const struct route *a, const struct route *b);
/* Whether b only has other nodes stand in for some of a's: all that a's others have done stays good, for
 * the bits are the same. */
bool route_goes_on(const struct route *a, const struct route *b);
int route_find(const struct route *r, uint16_t node); /* its hop; -1 none */

uint32_t route_last(const struct route *r, bool evaluate); /* its last position */
/* t <= route_last(r, false) for these three. */
enum task_kind route_kind(const struct route *r, uint32_t t);
uint16_t route_node(const struct route *r, uint32_t t);
uint8_t route_stage(const struct route *r, uint32_t t);

#endif
