/* placement.h - chooses the stage of a node that joins. */
#ifndef CONTROLLER_MEMBERS_PLACEMENT_H
#define CONTROLLER_MEMBERS_PLACEMENT_H

#include <stdbool.h>

struct members;
struct run;
struct member;

/* Plan seconds to move a gradient, or an activation if the gradient's time is unknown; < 0: no
 * link. */
double placement_distance_s(const struct run *run, const struct member *from,
			    const struct member *to);
/* Measured real seconds to move so many bytes between the two; 0: unknown. */
double placement_transfer_s(const struct members *members, const struct member *from,
			    const struct member *to, double bytes);
/* Returns true if m's links to the stage's replicas do not delay the sums. */
bool placement_near(const struct members *members, const struct member *m, int stage);
/* Returns the stage that m takes when it is to join `stage`: that stage, another one (m exchanges
 * stages with an absent node), or -1 for none. */
int placement_for(struct members *members, struct member *m, int stage);

#endif
