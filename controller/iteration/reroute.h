/* reroute.h - reroutes microbatches of the iteration under way around a node that died or a link
 * that is cut. */
#ifndef CONTROLLER_ITERATION_REROUTE_H
#define CONTROLLER_ITERATION_REROUTE_H

#include <stdint.h>

struct iteration;
struct member;

void reroute_show(struct iteration *it); /* sends the routes to consoles */
/* Announces the new routes of `changed` (n ids) to the agents, and the node that died (NULL: none).
 */
void reroute_announce(struct iteration *it, const uint32_t *changed, uint32_t n,
		      const struct member *gone);
/* Announces all routes that differ from the plan; agents that know them ignore the message. */
void reroute_announce_all(struct iteration *it);
/* Reroutes the microbatches that visit the node over other replicas of its stage. Returns how many
 * run again. -ENOENT: the stage has no other replica. */
int reroute_without(struct iteration *it, struct member *gone);
/* Reroutes the microbatches that still need the cut link between a and b over another node. Returns
 * how many. -ENOENT: one of them has no substitute, and nothing was changed. */
int reroute_around(struct iteration *it, const struct member *a, const struct member *b);

#endif
