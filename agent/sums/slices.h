/* slices.h - the slices of a stage's gradient that its replicas sum, and the parts received.
 *
 * With r replicas, slice j is floats [P*j/r, P*(j+1)/r) and belongs to nodes[j]. Every replica
 * encodes its part of slice j (model/codec/codec.h) and sends it to nodes[j]. That node decodes
 * the r parts, its own too, adds them in ascending order of node and encodes the sum, which it
 * sends to all. Every node, the owner too, decodes the sum. Therefore the sum has the same bits at
 * any node, whoever owns a slice. Parts and sums arrive in pieces of any size and in any order. A
 * reduction is complete at a node when the sums of all slices have arrived; slices_decode then
 * puts them into the staging buffer.
 *
 * This module only stores; the caller sends and receives. The functions with a pool are expensive,
 * and may run in another thread than the others. Their threads take blocks of a slice (struct
 * sum_block) in any order; results do not depend on the threads. pool NULL: the caller's thread
 * does all. slices_sum may run while the sums of other slices arrive.
 */
#ifndef AGENT_SLICES_H
#define AGENT_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/codec/codec.h"
#include "model/cpu/pool.h"
#include "wire/msg.h"

struct slices; /* opaque */

/* nodes (n): the replicas, copied; they must ascend and contain `me`, otherwise -EINVAL. floats:
 * number of parameters P. The codec's starts are borrowed until slices_free. -ENOMEM. */
int slices_new(struct slices **out, uint64_t iteration, uint32_t attempt, const uint16_t *nodes,
	       uint32_t n, uint16_t me, size_t floats, const struct sum_codec *codec);
/* Makes the slices for the holder of a standby copy, which adds no part and receives all sums by
 * slices_put_sum. */
int slices_watch(struct slices **out, uint64_t iteration, uint32_t attempt,
		 const uint16_t *nodes, uint32_t n, size_t floats, const struct sum_codec *codec);
void slices_free(struct slices *r); /* NULL is allowed */

enum tensor_format slices_format(const struct slices *r);
uint64_t slices_iteration(const struct slices *r);
uint32_t slices_attempt(const struct slices *r);
/* Returns the number of slices, which is that of the replicas. */
uint32_t slices_count(const struct slices *r);
/* Returns the slice that this node owns. */
uint32_t slices_mine(const struct slices *r);
/* Returns the node that owns the slice. */
uint16_t slices_owner(const struct slices *r, uint32_t slice);
/* Gives the first float of a slice and the slice's length. */
void slices_range(const struct slices *r, uint32_t slice, size_t *from, size_t *floats);
/* Returns the bytes of the encoded slice. */
size_t slices_bytes(const struct slices *r, uint32_t slice);
/* Encodes a slice of the gradient (P) into memory of slices_bytes. */
void slices_encode(const struct slices *r, uint32_t slice, void *to, const float *gradient,
		   struct pool *pool);
/* Returns where to encode this node's own part, of slices_bytes. */
void *slices_own_part(struct slices *r);
/* Records that this node's own part is encoded. -EALREADY. */
int slices_own_part_in(struct slices *r);

/* Stores a piece of a node's part of this node's slice, from byte `offset` of the encoded slice.
 * -EINVAL: another node or slice, out of range, partly stored before, or too many separate ranges;
 * -EALREADY: stored before; -EBADMSG: the whole part has arrived, and no correct computation gives
 * its scales. In fp32 there are no scales, and the caller checks the floats. */
int slices_put_part(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		    const void *body, size_t bytes);
/* Returns true if all r parts have arrived, so that slices_sum may run. */
bool slices_parts_in(const struct slices *r);
/* Adds the parts of this node's slice and encodes their sum. Call it once. */
void slices_sum(struct slices *r, struct pool *pool);
/* Returns the encoded sum of this node's slice, which has slices_bytes, after slices_sum;
 * borrowed. */
const void *slices_own_sum(const struct slices *r);
/* Records that slices_sum has run, so this node's slice is complete. */
void slices_summed(struct slices *r);
/* Stores a piece of the sum of another node's slice. Errors as slices_put_part. */
int slices_put_sum(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		   const void *body, size_t bytes);
bool slices_complete(const struct slices *r);
/* Decodes the sums of all slices into the staging buffer. Call it once, when all have arrived. */
void slices_decode(struct slices *r, struct pool *pool);
/* Returns the first node from which a part or a sum is missing; -1: none. */
int slices_awaits(const struct slices *r);
/* Hashes the sum of each slice, after slices_decode, and returns the sum of the squares of the
 * staging buffer (stage_sum_squares). All replicas must get the same result. */
double slices_hash(struct slices *r, struct pool *pool);
const uint64_t *slices_hashes(const struct slices *r);
/* Returns the staging buffer (P), borrowed; valid after slices_decode. */
const float *slices_staging(const struct slices *r);

#endif
