/* measuring.h - measures every link before the first plan, and the links of nodes that join later.
 */
#ifndef CONTROLLER_NETWORK_MEASURING_H
#define CONTROLLER_NETWORK_MEASURING_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct run;
struct member;
struct msg_measured;

/* Returns true if links have to be measured: nothing is emulated, and each agent is a process of
 * its own. */
bool measuring_wanted(const struct run *run);
void measuring_begin(struct members *members); /* Measures the links between all welcomed agents */
/* Continues the measurement; returns true when all links are measured */
bool measuring_turn(struct members *members);
void measuring_answer(struct members *members, struct member *m, const struct msg_measured *r);
/* Before the first iteration: sets the current round, counted from 1, and the number of rounds; 0:
 * no rounds yet. Returns the seconds left. */
double measuring_round(const struct members *members, uint32_t *round, uint32_t *rounds);
/* Returns true if the links between m and the replicas are known. */
bool measuring_knows(const struct members *members, const struct member *m);
/* Returns true if the other nodes and m do not reach each other, so that m can have no stage. */
bool measuring_isolates(const struct members *members, const struct member *m);
void measuring_forget(struct members *members, const struct member *m);
void measuring_free(struct members *members);
/* Measures the links of joining nodes in the background; called in every turn. Returns true if the
 * cluster has new delays. */
bool measuring_joiners(struct members *members);

#endif
