/* slices.h - the sum of a stage's gradient over its replicas: who owns what, and what is in.
 *
 * With r replicas, slice j is floats [P*j/r, P*(j+1)/r) and belongs to nodes[j]. Everybody sends
 * its part of slice j to nodes[j], which adds the r parts in ascending order of node (so the sum
 * has the same bits wherever it is made) and sends the sum to everybody. Parts and sums come in pieces
 * of any size and in any order, each put where it belongs. A reduction is complete here when every
 * slice's sum is in the staging buffer.
 *
 * Bookkeeping and memory only: messages are the caller's. slices_sum is the heavy part; it may run
 * in another thread while the sums of other slices are put in.
 */
#ifndef AGENT_SLICES_H
#define AGENT_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

struct slices; /* opaque */

/* nodes (n), copied: ascending, `me` among them; floats: P. -EINVAL they are not; -ENOMEM. */
int slices_new(struct slices **out, uint64_t iteration, uint32_t attempt, const uint16_t *nodes,
	       uint32_t n, uint16_t me, size_t floats);
/* As seen by one that only gets the sums: all slices come with slices_put_sum. */
int slices_watch(struct slices **out, uint64_t iteration, uint32_t attempt,
		 const uint16_t *nodes, uint32_t n, size_t floats);
void slices_free(struct slices *r); /* NULL is allowed */

uint64_t slices_iteration(const struct slices *r);
uint32_t slices_attempt(const struct slices *r);
uint32_t slices_count(const struct slices *r);               /* r */
uint32_t slices_mine(const struct slices *r);                /* the slice this node owns */
uint16_t slices_owner(const struct slices *r, uint32_t slice); /* its owner */
/* Where slice j lies. */
void slices_range(const struct slices *r, uint32_t slice, size_t *from, size_t *floats);

/* A piece of a node's part of my slice, from float `offset` of it on. Taken once. -EINVAL another node
 * or slice, beyond its end, half of it there before, or too scattered; -EALREADY. */
int slices_put_part(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		    const void *body, size_t bytes);
bool slices_parts_in(const struct slices *r); /* all r of them: slices_sum may run */
/* Adds the parts up into the staging buffer, once. */
void slices_sum(struct slices *r);
/* Says that slices_sum has run: my slice is in. */
void slices_summed(struct slices *r);
/* A piece of the sum of another's slice, from its owner. Likewise. */
int slices_put_sum(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		   const void *body, size_t bytes);
bool slices_complete(const struct slices *r);
/* Of those whose part or sum is not in, the first; -1: all is. */
int slices_awaits(const struct slices *r);
/* Hashes each slice's sum, once complete: owners and receivers must have the same. (r), borrowed. */
void slices_hash(struct slices *r);
const uint64_t *slices_hashes(const struct slices *r);
const float *slices_staging(const struct slices *r); /* (P), borrowed; all of it once complete */

#endif
