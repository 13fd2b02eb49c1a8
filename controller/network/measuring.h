/* measuring.h - every link measured before anything is planned. */
#ifndef CONTROLLER_NETWORK_MEASURING_H
#define CONTROLLER_NETWORK_MEASURING_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct planning;
struct run;
struct member;
struct msg_measured;

/* Nothing is emulated, and it is no embedded cluster */
bool measuring_wanted(const struct run *run);
void measuring_begin(struct members *members); /* all that are welcome here */
bool measuring_turn(struct members *members);  /* whether all is measured */
void measuring_answer(struct members *members, struct member *m, const struct msg_measured *r);
/* Before the first iteration: the round under way, from 1, of so many; 0 none. Returns the seconds that are left. */
double measuring_round(const struct members *members, uint32_t *round, uint32_t *rounds);
/* Whether the links between m and those at work are known; what was known is no longer true. */
bool measuring_knows(const struct members *members, const struct member *m);
void measuring_forget(struct members *members, const struct member *m);
void measuring_free(struct members *members);
/* Every turn: who joins is measured in the background */
void measuring_joiners(struct planning *planning);

#endif
