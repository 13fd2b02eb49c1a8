/* node_state.h - changes the state of a node, and records the change. */
#ifndef CONTROLLER_MEMBERS_NODE_STATE_H
#define CONTROLLER_MEMBERS_NODE_STATE_H

#include <stdbool.h>

#include "wire/msg.h"

struct members;
struct run;
struct member;

void members_gone(struct run *run, struct member *m, const char *why);
void members_mark(struct members *members, struct member *m, bool out); /* out: it takes no part */
void members_set(struct run *run, struct member *m, enum node_state state, const char *why);

#endif
