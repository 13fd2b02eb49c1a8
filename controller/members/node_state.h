/* node_state.h - a node's state, and who is gone. */
#ifndef CONTROLLER_MEMBERS_NODE_STATE_H
#define CONTROLLER_MEMBERS_NODE_STATE_H

#include <stdbool.h>

#include "wire/msg.h"

struct members;
struct run;
struct member;

void members_gone(struct run *run, struct member *m, const char *why);
void members_mark(struct members *members, struct member *m, bool out); /* it is to take no part */
void members_set(struct run *run, struct member *m, enum node_state state, const char *why);

#endif
