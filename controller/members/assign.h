/* assign.h - a node is told which stage to hold; from whom it has the weights: copies.h. */
#ifndef CONTROLLER_MEMBERS_ASSIGN_H
#define CONTROLLER_MEMBERS_ASSIGN_H

#include <stdbool.h>

struct members;
struct member;

void members_assign(struct members *members, struct member *m, int stage, bool fetch);

#endif
