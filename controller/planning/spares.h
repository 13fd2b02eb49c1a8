/* spares.h - nodes that wait as spares: plans do not use them until they are needed. */
#ifndef CONTROLLER_PLANNING_SPARES_H
#define CONTROLLER_PLANNING_SPARES_H

#include <stdbool.h>

struct member;
struct members;
struct planned;

/* The spares that a plan may use. */
enum spares_kind {
	SPARES_NONE,
	SPARES_LATE, /* spares that joined when enough nodes worked, and did not fail often */
	SPARES_ALL
};

/* Returns true if plans do not use m because it is a spare and its stage has another replica that
 * plans use. */
bool spares_wait(const struct members *members, const struct member *m);
/* Returns true if some spare of this kind waits. */
bool spares_any(const struct members *members, enum spares_kind kind);
/* Sets to true, in `excluded`, the waiting spares that the plan must not use. excluded: array of
 * n nodes. used: the spares that the plan may use. */
void spares_exclude(const struct members *members, enum spares_kind used, bool *excluded);
/* Decides whether m, which is about to become a replica, waits as a spare. The decision is saved,
 * so that a resumed run does not use the spare at once. */
void spares_admit(struct members *members, struct member *m);
/* Returns the spare that replaces `gone` when `gone` is lost, if the plan in force uses `gone`
 * (spares_replace). NULL: the stage has no spare. */
const struct member *spares_for(const struct members *members, const struct member *gone);
/* Lets plans use a spare instead of `gone`, a node that the next plan cannot use. Changes nothing
 * if the plan in force does not use `gone`, or if a spare has already replaced `gone` under this
 * plan. While a resumed run has no plan, `gone` counts as used unless it was a spare. */
void spares_replace(struct members *members, struct member *gone);
/* Records that plans use the spares in this plan from now on. If such a spare fails again and has
 * failed often, plans avoid it again. */
void spares_use(struct members *members, const struct planned *p);
/* Lets plans use all spares. Returns false if none waits. */
bool spares_use_all(struct members *members);

#endif
