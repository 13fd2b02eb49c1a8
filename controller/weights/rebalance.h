/* rebalance.h - back to the places that the first plan gave. */
#ifndef CONTROLLER_WEIGHTS_REBALANCE_H
#define CONTROLLER_WEIGHTS_REBALANCE_H

#include <stdbool.h>
#include <stdint.h>

struct controller;
struct member;

struct rebalance {
	struct member *pair[2]; /* who are to change places; NULL nobody */
	int64_t next_us;
};

void rebalance_turn(struct controller *c); /* who stands where another belongs fetches that stage */
/* Between iterations: two change places once both can. Whether the next is to wait for that. */
bool rebalance_awaited(struct controller *c);

#endif
