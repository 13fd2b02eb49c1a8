/* reroute.h - reroutes microbatches of the iteration under way around a node that died or a link
 * that is cut. */
#ifndef CONTROLLER_ITERATION_REROUTE_H
#define CONTROLLER_ITERATION_REROUTE_H

#include <stdint.h>

struct iteration;
struct member;

void reroute_show(struct iteration *it); /* Sends the iteration's present routes to consoles */
/* Announces to the agents the new routes of the microbatches `changed` (n ids), and the node that
 * died (NULL: none). */
void reroute_announce(struct iteration *it, const uint32_t *changed, uint32_t n,
		      const struct member *gone);
/* Announces all routes that differ from the plan. Agents ignore the routes that they know
 * already. */
void reroute_announce_all(struct iteration *it);
/* Reroutes the microbatches that visit the node over other replicas of its stage. Returns how many
 * microbatches run again. -ENOENT: the stage has no other replica. */
int reroute_without(struct iteration *it, struct member *gone);
/* Reroutes the microbatches that still need the cut link between a and b. Each of them gets a
 * substitute for one of its nodes. Returns how many microbatches were rerouted. -ENOENT: a
 * microbatch has no substitute, and no route was changed. */
int reroute_around(struct iteration *it, const struct member *a, const struct member *b);

#endif
