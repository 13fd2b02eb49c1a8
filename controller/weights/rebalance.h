/* rebalance.h - returns nodes to the stages that the first plan gave them. */
#ifndef CONTROLLER_WEIGHTS_REBALANCE_H
#define CONTROLLER_WEIGHTS_REBALANCE_H

#include <stdbool.h>
#include <stdint.h>

struct backups;
struct member;

struct rebalance {
	struct member *pair[2]; /* the two nodes that are to exchange stages; NULL: none */
	int64_t next_us;
};

/* Makes a node that is not in its home stage fetch that stage in the background. */
void rebalance_turn(struct backups *backups);
/* Called between two iterations. Exchanges the stages of the pair once both nodes have their
 * copies. Returns true if the next iteration has to wait for the exchange. */
bool rebalance_awaited(struct backups *backups);

#endif
