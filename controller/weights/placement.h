/* placement.h - chooses the stage of a node that joins. */
#ifndef CONTROLLER_WEIGHTS_PLACEMENT_H
#define CONTROLLER_WEIGHTS_PLACEMENT_H

#include <stdbool.h>

/* Numbers of floats and bytes that a node fetches for each parameter: the weight and AdamW's two
 * moments. */
enum { STATE_FLOATS = 3, STATE_BYTES = 12 };

struct members;
struct run;
struct member;

/* Returns the plan seconds in which a gradient is sent from one node to the other. If this time is
 * unknown, returns the time for an activation. < 0: there is no link. */
double placement_distance_s(const struct run *run, const struct member *from,
			    const struct member *to);
/* Returns the measured real seconds in which the bytes are sent from one node to the other; 0:
 * unknown. */
double placement_transfer_s(const struct members *members, const struct member *from,
			    const struct member *to, double bytes);
/* Returns true if m's links to the stage's replicas do not delay the sums. */
bool placement_near(const struct members *members, const struct member *m, int stage);
/* Returns the stage that m should take. This is `stage` if m's links to it are fast enough.
 * Otherwise m and an absent node exchange their stages, and m takes the absent node's former stage.
 * -1: no absent node has a stage that suits m. */
int placement_for(struct members *members, struct member *m, int stage);

#endif
