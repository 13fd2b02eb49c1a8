/* audit.h - whether one committed iteration keeps the rules, before any number is computed.
 *
 *   - every shard's every wave is there once; no microbatch twice;
 *   - every route starts in stage 0, visits no stage twice, and has nodes for its stages;
 *   - every microbatch's gradient is counted exactly once in every stage of its route, and the
 *     head's exactly once, on nodes of those stages (exactly once);
 *   - whoever counted anything takes part in the sum of its stage (nothing is lost), and the
 *     nodes of a sum ascend (its order is known);
 *   - every stage that was visited has a sum.
 */
#ifndef VERIFY_AUDIT_H
#define VERIFY_AUDIT_H

#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

/* 0, or -EPROTO with the first broken rule in words; -ENOMEM. */
int audit_commit(const struct store_run *run, const struct store_commit *c, uint32_t n_stages,
		 struct error *err);

#endif
