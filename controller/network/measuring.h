/* measuring.h - every link measured before anything is planned. */
#ifndef CONTROLLER_NETWORK_MEASURING_H
#define CONTROLLER_NETWORK_MEASURING_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct member;
struct msg_measured;

bool measuring_wanted(const struct controller *c); /* nothing is emulated, and it is no embedded cluster */
void measuring_begin(struct controller *c); /* all that are welcome here */
bool measuring_turn(struct controller *c);  /* whether all is measured */
void measuring_answer(struct controller *c, struct member *m, const struct msg_measured *r);
/* Before the first iteration: the round under way, from 1, of so many; 0 none. Returns the seconds that are left. */
double measuring_round(const struct controller *c, uint32_t *round, uint32_t *rounds);
/* Whether the links between m and those at work are known; what was known is no longer true. */
bool measuring_knows(const struct controller *c, const struct member *m);
void measuring_forget(struct controller *c, const struct member *m);
void measuring_free(struct controller *c);
void measuring_joiners(struct controller *c); /* every turn: who joins is measured in the background */

#endif
