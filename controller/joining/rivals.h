/* rivals.h - decides which of two processes with the same key is a node's agent. */
#ifndef CONTROLLER_JOINING_RIVALS_H
#define CONTROLLER_JOINING_RIVALS_H

#include <stdbool.h>

#include "wire/post.h"

struct members;
struct msg_hello;

/* Returns true if the HELLO is from a second process with the key of a connected agent. This module
 * then stores the HELLO until rivals_next returns it or the process is refused. */
bool rivals_wait(struct members *members, post_peer_id peer, const struct msg_hello *hello);
/* Returns true and sets *peer and *hello if a waiting process gets its node, because the node's
 * previous process does not answer. If the previous process answers, refuses the waiting process.
 * Returns false if no process gets its node. */
bool rivals_next(struct members *members, post_peer_id *peer, struct msg_hello *hello);
/* Forgets a waiting process, which has no node, when its session has ended. */
void rivals_down(struct members *members, post_peer_id peer);

#endif
