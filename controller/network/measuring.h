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

/* Returns true if links have to be measured because nothing is emulated and each agent is a process
 * of its own. */
bool measuring_wanted(const struct run *run);
void measuring_begin(struct members *members); /* Measures the links between all welcomed agents */
/* Continues the measurement; returns true when all links are measured */
bool measuring_turn(struct members *members);
void measuring_answer(struct members *members, struct member *m, const struct msg_measured *r);
/* Sets *round to the current round, counted from 1, and *rounds to the number of rounds; 0: not
 * known yet. Returns the seconds left. For use before the first iteration. */
double measuring_round(const struct members *members, uint32_t *round, uint32_t *rounds);
/* Returns true if the links between m and the replicas are known. */
bool measuring_knows(const struct members *members, const struct member *m);
/* Returns true if m can have no stage, because m and the other nodes cannot connect to each
 * other. */
bool measuring_isolates(const struct members *members, const struct member *m);
void measuring_forget(struct members *members, const struct member *m);
void measuring_free(struct members *members);
/* Measures the links of joining nodes in the background; called in every turn. Returns true if this
 * changed delays in the cluster. */
bool measuring_joiners(struct members *members);

#endif
