/* arrivals.h - checks the tensors of peers and passes each to the module that needs it.
 *
 * A tensor that no module needs is counted and dropped. A tensor that arrives too early is stored
 * (early.h), and is checked again when the loop calls arrivals_look_again.
 */
#ifndef AGENT_ARRIVALS_H
#define AGENT_ARRIVALS_H

#include <stdint.h>

#include "agent/tensors/codec_threads.h"
#include "wire/post.h"

struct agent;
struct peers;

/* Handles a message from a peer. */
void arrivals_take(struct agent *a, struct post_message *message, int64_t now_us);
/* Takes the result of a thread that decoded a stored tensor. */
void arrivals_decoded(struct agent *a, const struct codec_job *job);
/* Checks the early tensors again, and passes on the tensors that a module needs now. */
void arrivals_look_again(struct agent *a, int64_t now_us);
/* Drops the early tensors because the stage changes, but keeps sums for the standby copy. */
void arrivals_forget(struct agent *a);
void arrivals_forget_peer(struct agent *a, uint16_t node); /* drops the peer's early tensors */
/* If the peer was asked to hold sums back, accepts sums from the peer again. */
void arrivals_let_in(struct peers *peers, uint16_t node);

#endif
