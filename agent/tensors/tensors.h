/* tensors.h - what peers send: checked against the state, and given to whom it belongs.
 *
 * What does not fit is counted and dropped; what is only too early is kept (early.h), and looked at
 * again when the loop says so.
 */
#ifndef AGENT_TENSORS_H
#define AGENT_TENSORS_H

#include <stdint.h>

#include "wire/post.h"

struct agent;

/* A message of the tensor plane. */
void tensors_arrived(struct agent *a, struct post_message *message, int64_t now_us);
/* Takes what came early and belongs here by now. */
void tensors_look_again(struct agent *a, int64_t now_us);
/* Drops what came early, but for the copy's sums: the stage begins anew. */
void tensors_forget(struct agent *a);
void tensors_forget_peer(struct agent *a, uint16_t node); /* what came early of it */
void tensors_let_in(struct agent *a, uint16_t node);      /* its sums are taken again, if they were not */

#endif
