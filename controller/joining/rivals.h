/* rivals.h - decides which process has a node if two processes have its key. */
#ifndef CONTROLLER_JOINING_RIVALS_H
#define CONTROLLER_JOINING_RIVALS_H

#include <stdbool.h>

#include "wire/post.h"

struct members;
struct msg_hello;

/* Returns true if the HELLO is that of another process with the key of a connected agent. It then
 * waits here until rivals_next gives it, or is refused. */
bool rivals_wait(struct members *members, post_peer_id peer, const struct msg_hello *hello);
/* Gives the next HELLO whose process gets the node, because the process before does not answer.
 * Refuses processes whose rival answers. Returns false if there is none. */
bool rivals_next(struct members *members, post_peer_id *peer, struct msg_hello *hello);
/* Forgets an agent's process that has no node and whose session has ended. */
void rivals_down(struct members *members, post_peer_id peer);

#endif
