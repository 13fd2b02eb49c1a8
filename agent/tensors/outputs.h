/* outputs.h - keeps the tensors that this node has sent in an iteration until the iteration ends.
 *
 * If a node dies, its substitute receives these tensors again, so only the dead node's work is
 * recomputed. A route visits a node once, so a microbatch has at most OUTPUTS_OF_VISIT outputs
 * here. One output is an activation. The other output is the gradient that the backward task
 * gives; on the data node it is the gradient that the loss gives. needs.h checks the memory for
 * all outputs before the iteration begins, and again when a reroute leads a microbatch here. If a
 * microbatch restarts, outputs_drop drops its outputs.
 */
#ifndef AGENT_OUTPUTS_H
#define AGENT_OUTPUTS_H

#include <stdint.h>

#include "agent/tensors/body.h"
#include "wire/msg.h"

enum { OUTPUTS_OF_VISIT = 2 };

struct outputs; /* opaque */

struct outputs *outputs_new(void);     /* freed by outputs_free */
void outputs_free(struct outputs *o);  /* NULL is allowed */
/* Keeps the encoded output of a task, and becomes a user of the body. An earlier output of the same
 * task is dropped. */
void outputs_keep(struct outputs *o, uint32_t microbatch, enum task_kind kind, struct body *body);
/* Returns the output of the task, borrowed; NULL: the task has not ended, or its output is not
 * sent. */
struct body *outputs_find(const struct outputs *o, uint32_t microbatch, enum task_kind kind);
void outputs_drop(struct outputs *o, uint32_t microbatch);
void outputs_forget(struct outputs *o); /* drops all outputs */
uint32_t outputs_count(const struct outputs *o); /* for tests */

#endif
