/* reroute.h - reroutes microbatches of the iteration under way around a node that died or a link
 * that is cut. */
#ifndef CONTROLLER_ITERATION_REROUTE_H
#define CONTROLLER_ITERATION_REROUTE_H

#include <stdint.h>

struct iteration;
struct member;

void reroute_show(struct iteration *it); /* to consoles */
/* Agents hear the new routes of `changed` (n ids), and who is gone (NULL nobody). */
void reroute_announce(struct iteration *it, const uint32_t *changed, uint32_t n,
		      const struct member *gone);
/* All that is not as planned; who knows it passes over it */
void reroute_announce_all(struct iteration *it);
/* Microbatches that visit the node are rerouted over others of its stage. Returns how many run
 * again; -ENOENT: nobody else is left of its stage; -ENOMEM. */
int reroute_without(struct iteration *it, struct member *gone);
/* What is still to use the link between them, which is not there, goes by another node. Returns how
 * many microbatches; -ENOENT: for one of them there is nobody, and nothing was changed; -ENOMEM. */
int reroute_around(struct iteration *it, const struct member *a, const struct member *b);

#endif
