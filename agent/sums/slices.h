/* slices.h - the slices of a stage's gradient that its replicas sum, and the parts received.
 *
 * With r replicas, slice j is floats [P*j/r, P*(j+1)/r) and belongs to nodes[j]. Every replica
 * sends its part of slice j to nodes[j]. That node adds the r parts in ascending order of node,
 * so that the sum has the same bits at any node, and sends the sum to all. Parts and sums arrive
 * in pieces of any size and in any order. A reduction is complete at a node when the sums of all
 * slices are in its staging buffer.
 *
 * This module only stores; the caller sends and receives. slices_sum is the expensive function.
 * It may run in another thread while the sums of other slices arrive.
 */
#ifndef AGENT_SLICES_H
#define AGENT_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

struct slices; /* opaque */

/* nodes (n), copied: must ascend and contain `me`, otherwise -EINVAL. floats: P. -ENOMEM. */
int slices_new(struct slices **out, uint64_t iteration, uint32_t attempt, const uint16_t *nodes,
	       uint32_t n, uint16_t me, size_t floats);
/* Does this for the holder of a standby copy, which receives all sums by slices_put_sum. */
int slices_watch(struct slices **out, uint64_t iteration, uint32_t attempt,
		 const uint16_t *nodes, uint32_t n, size_t floats);
void slices_free(struct slices *r); /* NULL is allowed */

uint64_t slices_iteration(const struct slices *r);
uint32_t slices_attempt(const struct slices *r);
uint32_t slices_count(const struct slices *r);               /* r */
uint32_t slices_mine(const struct slices *r);                /* the slice this node owns */
uint16_t slices_owner(const struct slices *r, uint32_t slice); /* its owner */
/* Gives the first float of a slice and the slice's length. */
void slices_range(const struct slices *r, uint32_t slice, size_t *from, size_t *floats);

/* Stores a piece of a node's part of this node's slice, from float `offset` of the slice. -EINVAL:
 * another node or slice, out of range, partly stored before, or too scattered; -EALREADY: stored
 * before. */
int slices_put_part(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		    const void *body, size_t bytes);
bool slices_parts_in(const struct slices *r); /* all r parts have arrived: slices_sum may run */
/* Adds the parts into the staging buffer, once. */
void slices_sum(struct slices *r);
/* Records that slices_sum has run, so this node's slice is complete. */
void slices_summed(struct slices *r);
/* Stores a piece of the sum of another node's slice. Errors as slices_put_part. */
int slices_put_sum(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		   const void *body, size_t bytes);
bool slices_complete(const struct slices *r);
/* Returns the first node whose part or sum is missing; -1 none. */
int slices_awaits(const struct slices *r);
/* Hashes the sum of each slice, once complete. All nodes must get the same hashes. */
void slices_hash(struct slices *r);
const uint64_t *slices_hashes(const struct slices *r);
const float *slices_staging(const struct slices *r); /* (P), borrowed; all of it once complete */

#endif
