/* link_failures.h - detects links that no longer transfer anything, and routes around them. */
#ifndef CONTROLLER_MEMBERS_LINK_FAILURES_H
#define CONTROLLER_MEMBERS_LINK_FAILURES_H

#include <stdbool.h>

struct iteration;
struct members;

void link_failures_check(struct iteration *it);
/* Removes one end of a cut link because no plan is possible without that link. Returns false if no
 * cut link has an end that can be removed. */
bool link_failures_give_way(struct members *members);

#endif
