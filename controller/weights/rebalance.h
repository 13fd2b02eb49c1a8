/* rebalance.h - back to the places that the first plan gave. */
#ifndef CONTROLLER_WEIGHTS_REBALANCE_H
#define CONTROLLER_WEIGHTS_REBALANCE_H

#include <stdbool.h>
#include <stdint.h>

struct weights;
struct member;

struct rebalance {
	struct member *pair[2]; /* who are to change places; NULL nobody */
	int64_t next_us;
};

/* Who stands where another belongs fetches that stage */
void rebalance_turn(struct weights *weights);
/* Between iterations: two change places once both can. Whether the next is to wait for that. */
bool rebalance_awaited(struct weights *weights);

#endif
