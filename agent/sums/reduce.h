/* reduce.h - the sum of a stage's gradient over its replicas: who owns what, and what is in.
 *
 * With r replicas, slice j is floats [P*j/r, P*(j+1)/r) and belongs to nodes[j]. Everybody sends
 * its part of slice j to nodes[j], which adds the r parts in ascending order of node (so the sum
 * has the same bits wherever it is made) and sends the sum to everybody. Parts and sums come in pieces
 * of any size and in any order, each put where it belongs. A reduction is complete here when every
 * slice's sum is in the staging buffer.
 *
 * Bookkeeping and memory only: messages are the caller's. reduce_sum is the heavy part; it may run
 * in another thread while the sums of other slices are put in.
 */
#ifndef AGENT_REDUCE_H
#define AGENT_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

struct reduce; /* opaque */

/* nodes (n), copied: ascending, `me` among them; floats: P. -EINVAL they are not; -ENOMEM. */
int reduce_new(struct reduce **out, uint64_t iteration, uint32_t attempt, const uint16_t *nodes,
	       uint32_t n, uint16_t me, size_t floats);
/* As seen by one that only gets the sums: all slices come with reduce_put_sum. */
int reduce_watch(struct reduce **out, uint64_t iteration, uint32_t attempt,
		 const uint16_t *nodes, uint32_t n, size_t floats);
void reduce_free(struct reduce *r); /* NULL is allowed */

uint64_t reduce_iteration(const struct reduce *r);
uint32_t reduce_attempt(const struct reduce *r);
uint32_t reduce_count(const struct reduce *r);               /* r */
uint32_t reduce_mine(const struct reduce *r);                /* the slice this node owns */
uint16_t reduce_node(const struct reduce *r, uint32_t slice); /* its owner */
/* Where slice j lies. */
void reduce_slice(const struct reduce *r, uint32_t slice, size_t *from, size_t *floats);

/* A piece of a node's part of my slice, from float `offset` of it on. Taken once. -EINVAL another node
 * or slice, beyond its end, half of it there before, or too scattered; -EALREADY. */
int reduce_put_part(struct reduce *r, uint16_t from, uint32_t slice, uint64_t offset,
		    const void *body, size_t bytes);
bool reduce_parts_in(const struct reduce *r); /* all r of them: reduce_sum may run */
/* Adds the parts up into the staging buffer, once. */
void reduce_sum(struct reduce *r);
/* Says that reduce_sum has run: my slice is in. */
void reduce_summed(struct reduce *r);
/* A piece of the sum of another's slice, from its owner. Likewise. */
int reduce_put_sum(struct reduce *r, uint16_t from, uint32_t slice, uint64_t offset,
		   const void *body, size_t bytes);
bool reduce_complete(const struct reduce *r);
/* Of those whose part or sum is not in, the first; -1: all is. */
int reduce_awaits(const struct reduce *r);
/* Hashes each slice's sum, once complete: owners and receivers must have the same. (r), borrowed. */
void reduce_hash(struct reduce *r);
const uint64_t *reduce_hashes(const struct reduce *r);
const float *reduce_staging(const struct reduce *r); /* (P), borrowed; all of it once complete */

#endif
