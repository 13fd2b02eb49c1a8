/* peers.h - what agents are told of one another: addresses and keys, and whose they are to forget. */
#ifndef CONTROLLER_MEMBERS_PEERS_H
#define CONTROLLER_MEMBERS_PEERS_H

#include <stdbool.h>

struct members;
struct member;

/* Who is to be known, and whose key to be forgotten */
void members_tell_peers(struct members *members);
/* No agent may come to the others as this node, until one has said hello. */
void member_disown(struct members *members, struct member *m);
/* Until told otherwise the others do not let it in. */
void member_shun(struct members *members, struct member *m, bool shunned);

#endif
