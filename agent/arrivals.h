/* arrivals.h - checks the tensors of peers and passes each to the module that needs it.
 *
 * A tensor that fits nothing is counted and dropped. One that arrives too early is kept (early.h)
 * and checked again when the loop asks for it.
 */
#ifndef AGENT_ARRIVALS_H
#define AGENT_ARRIVALS_H

#include <stdint.h>

#include "agent/tensors/codec_threads.h"
#include "wire/post.h"

struct agent;

/* Handles a message from a peer. */
void arrivals_take(struct agent *a, struct post_message *message, int64_t now_us);
/* Takes the result of a thread's decoding. */
void arrivals_decoded(struct agent *a, const struct codec_job *job);
/* Passes on the early tensors that are no longer too early. */
void arrivals_look_again(struct agent *a, int64_t now_us);
/* Drops the early tensors, except sums for the standby copy, when the stage changes. */
void arrivals_forget(struct agent *a);
void arrivals_forget_peer(struct agent *a, uint16_t node); /* drops the peer's early tensors */
void arrivals_let_in(struct agent *a, uint16_t node);      /* accepts sums from the peer again */

#endif
