/* drain.h - lets a node leave after a notice, so that none of its work runs again. */
#ifndef CONTROLLER_ITERATION_DRAIN_H
#define CONTROLLER_ITERATION_DRAIN_H

#include <stdbool.h>

struct iteration;
struct member;
struct members;
struct backups;

/* Notices that m's newest heartbeat announces that m drains. */
void drain_hear(struct members *members, struct member *m);
/* Lets a draining replica of `stage` take over the stage's tasks if plans exclude it and no other
 * replica is left. */
void drain_keep(struct members *members, int stage);
/* Excludes draining nodes from the next plan, and lets nodes go that are not needed any more. */
void drain_turn(struct iteration *it);
/* Between two iterations: returns true while a draining node that is its stage's last replica has
 * not yet reported that it holds the last commit. The wait is short. */
bool drain_awaited(const struct backups *backups);
/* Between two iterations: retires a draining node that is its stage's last replica, if another node
 * can take the stage over, and returns the node. Its stage then has no replica. NULL: none. */
const struct member *drain_last_replica(struct backups *backups);

#endif
