/* join_requests.h - admits the keys of peers that have an invitation
 * (wire/invite/invitations.h). */
#ifndef CONTROLLER_JOINING_JOIN_REQUESTS_H
#define CONTROLLER_JOINING_JOIN_REQUESTS_H

#include <stdbool.h>

#include "wire/post.h"

struct members;
struct msg;

/* Returns true if the peer has proven that it knows the secret of an invitation, and has no rights
 * beyond the invitation. */
bool join_requests_is_invited(const struct members *members, post_peer_id peer);
/* Handles a message of an invited peer. If the message is a JOIN, admits the key that it contains,
 * or refuses this key. Any other message is a violation of the protocol. */
void join_requests_take(struct members *members, post_peer_id peer, const struct msg *m);

#endif
