/* link_failures.h - links on which nothing comes through, and who is cut off. */
#ifndef CONTROLLER_MEMBERS_LINK_FAILURES_H
#define CONTROLLER_MEMBERS_LINK_FAILURES_H

#include <stdbool.h>

struct iteration;
struct members;

void link_failures_check(struct iteration *it);
/* There is no plan without some link that is cut: one of its ends is taken out. False: there is none. */
bool link_failures_give_way(struct members *members);

#endif
