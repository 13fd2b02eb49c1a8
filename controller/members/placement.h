/* placement.h - which stage a node takes that joins. */
#ifndef CONTROLLER_MEMBERS_PLACEMENT_H
#define CONTROLLER_MEMBERS_PLACEMENT_H

#include <stdbool.h>

struct members;
struct run;
struct member;

/* Seconds to move a gradient, or an activation where that is not known; < 0: no link. */
double placement_distance_s(const struct run *run, const struct member *from,
			    const struct member *to);
/* Real seconds that so many bytes take from one to the other, as measured; 0: not known. */
double placement_transfer_s(const struct members *members, const struct member *from,
			    const struct member *to, double bytes);
/* Whether m's links to the stage's replicas do not hold up the sums. */
bool placement_near(const struct members *members, const struct member *m, int stage);
/* The stage that m, which is to join this one, takes: this one, another (its place is exchanged
 * with that of a node that is away), or -1 none. */
int placement_for(struct members *members, struct member *m, int stage);

#endif
