/* outputs.h - keeps the tensors that this node has sent in an iteration until the iteration ends.
 *
 * If a node dies, its substitute receives these tensors again, so only the work of the dead node is
 * recomputed. A microbatch has at most OUTPUTS_OF_VISIT outputs here, an activation and a gradient,
 * because a route visits a node once (a data node once more, for the loss). needs.h checks that
 * there is memory for all outputs, before the iteration begins and again when a visit is added. The
 * outputs of a microbatch are dropped when it restarts (outputs_drop).
 */
#ifndef AGENT_OUTPUTS_H
#define AGENT_OUTPUTS_H

#include <stdint.h>

#include "agent/tensors/body.h"
#include "wire/msg.h"

enum { OUTPUTS_OF_VISIT = 2 };

struct outputs; /* opaque */

struct outputs *outputs_new(void); /* outputs_free */
void outputs_free(struct outputs *o);  /* NULL is allowed */
/* Keeps a task's output in the encoding in which it is sent, and replaces an earlier output of the
 * task. Adds a user of the body. */
void outputs_keep(struct outputs *o, uint32_t microbatch, enum task_kind kind, struct body *body);
/* Returns the output of the task, borrowed; NULL: the task has not ended. */
struct body *outputs_find(const struct outputs *o, uint32_t microbatch, enum task_kind kind);
void outputs_drop(struct outputs *o, uint32_t microbatch);
void outputs_forget(struct outputs *o); /* drops all outputs */
uint32_t outputs_count(const struct outputs *o); /* for tests */

#endif
