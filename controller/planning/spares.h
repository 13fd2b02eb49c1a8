/* spares.h - nodes that plans use last, because they failed often. */
#ifndef CONTROLLER_PLANNING_SPARES_H
#define CONTROLLER_PLANNING_SPARES_H

#include <stdbool.h>

struct member;
struct members;
struct planned;

/* Returns true if plans do not use m: m failed often, and its stage has another replica that plans
 * use. */
bool spares_wait(const struct members *members, const struct member *m);
/* Returns true if any replica waits as a spare. */
bool spares_any(const struct members *members);
/* Marks the waiting spares in excluded (n). */
void spares_exclude(const struct members *members, bool *excluded);
/* Notes that plans use the spares of this plan from now on, until they fail again. */
void spares_use(struct members *members, const struct planned *p);
/* Lets plans use all spares. Returns false if none waits. */
bool spares_use_all(struct members *members);

#endif
