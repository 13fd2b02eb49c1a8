/* audit.h - checks that the record of a committed iteration keeps the rules.
 *
 * The audit computes no numbers. The rules are:
 *
 *   - The microbatches read every wave of every data shard exactly once.
 *   - Every path starts in stage 0 and visits no stage twice.
 *   - Exactly one node counts a microbatch's gradient in every stage of its path, and exactly one
 *     node counts its loss. The node holds the stage.
 *   - A node that counted a contribution takes part in the sum of its stage.
 *   - The nodes of a sum are in ascending order, because the order of the additions follows from
 *   it.
 */
#ifndef VERIFY_AUDIT_H
#define VERIFY_AUDIT_H

#include <stdint.h>

#include "base/error.h"
#include "model/files/run_parts.h"
#include "store/store.h"

/* Returns 0, -EPROTO with a description of the first broken rule, or -ENOMEM. */
int audit_commit(const struct run_part *part, const struct store_commit *c, uint32_t n_stages,
		 struct error *err);

#endif
