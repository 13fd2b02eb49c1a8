/* drain.h - lets a node leave after a notice, so that none of its work must be repeated. */
#ifndef CONTROLLER_ITERATION_DRAIN_H
#define CONTROLLER_ITERATION_DRAIN_H

#include <stdbool.h>

struct iteration;
struct member;
struct members;
struct backups;

/* If m's newest heartbeat announces that m drains, records this. */
void drain_hear(struct members *members, struct member *m);
/* Keeps `stage` working with a draining replica if no other replica is left. That replica then runs
 * all tasks of the stage, although plans exclude it. */
void drain_keep(struct members *members, int stage);
/* Excludes draining nodes from the next plan. When a draining node is not needed any more, orders
 * the node to stop. */
void drain_turn(struct iteration *it);
/* Called between two iterations. Returns true while the controller waits for a draining node to
 * report that it holds the last commit. The node is its stage's last replica. The wait ends after a
 * short time even without a report. */
bool drain_awaited(const struct backups *backups);
/* Called between two iterations. Retires a draining node that is its stage's last replica if
 * another node can take the stage over. Returns the retired node, whose stage then has no replica.
 * NULL: no node was retired. */
const struct member *drain_last_replica(struct backups *backups);

#endif
