/* peers.h - sends each agent the addresses and keys of all other agents. */
#ifndef CONTROLLER_MEMBERS_PEERS_H
#define CONTROLLER_MEMBERS_PEERS_H

#include <stdbool.h>

struct members;
struct member;

/* Sends every node the changes that it has not been sent yet, including withdrawn keys. */
void members_tell_peers(struct members *members);
/* Withdraws the node's key: the other agents admit no process as this node until a process has sent
 * HELLO for it. */
void member_disown(struct members *members, struct member *m);
/* Withdraws the node's key while it is excluded, and publishes it again afterwards. */
void member_shun(struct members *members, struct member *m, bool is_excluded);

#endif
