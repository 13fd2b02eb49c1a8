/* assign.h - assigns a stage to a node. copies.h chooses the source of its weights. */
#ifndef CONTROLLER_WEIGHTS_ASSIGN_H
#define CONTROLLER_WEIGHTS_ASSIGN_H

#include <stdbool.h>

struct members;
struct member;

void members_assign(struct members *members, struct member *m, int stage, bool fetch);

#endif
