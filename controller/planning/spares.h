/* spares.h - spares: nodes that plans use only as a last resort, because they failed often. */
#ifndef CONTROLLER_PLANNING_SPARES_H
#define CONTROLLER_PLANNING_SPARES_H

#include <stdbool.h>

struct member;
struct members;
struct planned;

/* Returns true if plans do not use m, because m failed often and its stage has another replica that
 * plans can use. */
bool spares_wait(const struct members *members, const struct member *m);
/* Returns true if any replica waits as a spare. */
bool spares_any(const struct members *members);
/* Marks the spares that wait in excluded (n entries). */
void spares_exclude(const struct members *members, bool *excluded);
/* Notes that plans use the spares in this plan from now on, until these fail again. */
void spares_use(struct members *members, const struct planned *p);
/* Lets plans use all spares. Returns false if none waits. */
bool spares_use_all(struct members *members);

#endif
