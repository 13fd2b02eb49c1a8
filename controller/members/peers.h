/* peers.h - sends each agent the addresses and keys of all other agents. */
#ifndef CONTROLLER_MEMBERS_PEERS_H
#define CONTROLLER_MEMBERS_PEERS_H

#include <stdbool.h>

struct members;
struct member;

/* Sends every node the changes that it has not received yet, including withdrawn keys. */
void members_tell_peers(struct members *members);
/* Withdraws the node's key. After this, the other agents admit no process as this node, until a
 * process sends HELLO for it. */
void member_disown(struct members *members, struct member *m);
/* Withdraws the node's key while the node is excluded, and publishes the key again afterwards. */
void member_shun(struct members *members, struct member *m, bool is_excluded);

#endif
