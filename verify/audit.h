/* audit.h - checks that the record of a committed iteration keeps the rules.
 *
 * The audit computes no gradients. A node counts a gradient if it adds the gradient to its sum. The
 * rules are:
 *
 *   - The microbatches read every wave (index in its shard) of every data shard exactly once.
 *   - Every path starts in stage 0 and visits no stage twice.
 *   - In every stage of a microbatch's path, exactly one node counts the microbatch's gradient, and
 *     this node holds the stage. Exactly one node of stage 0 counts the gradient of the loss.
 *   - A node that counted a gradient takes part in the sum of its stage.
 *   - The nodes of a sum are in ascending order, because sums are added in this order.
 */
#ifndef VERIFY_AUDIT_H
#define VERIFY_AUDIT_H

#include <stdint.h>

#include "base/error.h"
#include "model/files/run_parts.h"
#include "store/store.h"

/* Returns 0 if no rule is broken. -EPROTO: a rule is broken, and the error describes the first
 * broken rule; -ENOMEM. */
int audit_commit(const struct run_part *part, const struct store_commit *c, uint32_t n_stages,
		 struct error *err);

#endif
