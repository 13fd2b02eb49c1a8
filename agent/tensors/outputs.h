/* outputs.h - what this node has sent in the iteration, kept until its end: a node that stands in for
 * one that died gets it too, and so nothing but what the dead one did is computed again.
 *
 * The bound: a route visits no node twice, and its data node twice (F and L), so of a microbatch
 * whose route comes by there are OUTPUTS_OF_VISIT at most: the activation, and the gradient. They
 * are counted as such before the iteration begins (needs.h), and again when a visit is added.
 * What a microbatch gave goes when it begins again (outputs_drop), the rest with the iteration.
 */
#ifndef AGENT_OUTPUTS_H
#define AGENT_OUTPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

enum { OUTPUTS_OF_VISIT = 2 };

struct outputs; /* opaque */

struct outputs *outputs_new(void); /* outputs_free */
void outputs_free(struct outputs *o);  /* NULL is allowed */
/* A copy of floats (floats), in the place of what the same work gave before. -ENOMEM. */
int outputs_keep(struct outputs *o, uint32_t microbatch, enum task_kind kind, const float *out,
		 size_t floats);
/* What that work gave, borrowed; NULL: it is not done. */
const float *outputs_find(const struct outputs *o, uint32_t microbatch, enum task_kind kind);
void outputs_drop(struct outputs *o, uint32_t microbatch);
void outputs_forget(struct outputs *o); /* all */
uint32_t outputs_count(const struct outputs *o); /* that are kept; for tests */

#endif
