/* slices.h - the slices of a stage's gradient, which the stage's replicas sum, and the received
 * parts.
 *
 * With r replicas, slice j consists of the floats [P*j/r, P*(j+1)/r) and belongs to nodes[j].
 * Every replica encodes its part of slice j (model/codec/codec.h) and sends it to nodes[j]. That
 * node decodes the r parts, including its own, adds them in ascending order of node and encodes
 * the sum. Then nodes[j] sends the encoded sum to all replicas. Every node decodes the sum, even
 * the node that encoded it. Therefore all nodes get the same bits. Parts and sums arrive in
 * pieces of any size and in any order. A reduction is complete at a node when the sums of all
 * slices have arrived. Then slices_decode writes the decoded sums to the staging buffer.
 *
 * This module only stores; the caller sends and receives. The functions that take a pool are
 * expensive, and may run in another thread than the other functions. The threads of the pool
 * process the blocks of a slice (struct sum_block) in any order, and the result does not depend
 * on the order. If the pool is NULL, the caller's thread does all the work. slices_sum may run
 * while the sums of other slices arrive. A stage on a GPU does this work itself, by the functions
 * at the end of this file.
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
struct stage;

/* Makes the slices for a replica. nodes (n): the replicas, in ascending order and including `me`;
 * copied. -EINVAL: the nodes do not ascend, or `me` is missing. floats: number of parameters P.
 * The codec's array of starts is borrowed until slices_free. -ENOMEM. */
int slices_new(struct slices **out, uint64_t iteration, uint32_t attempt, const uint16_t *nodes,
	       uint32_t n, uint16_t me, size_t floats, const struct sum_codec *codec);
/* Makes the slices for the holder of a standby copy. The holder adds no part, and receives all
 * sums by slices_put_sum. */
int slices_watch(struct slices **out, uint64_t iteration, uint32_t attempt,
		 const uint16_t *nodes, uint32_t n, size_t floats, const struct sum_codec *codec);
void slices_free(struct slices *r); /* NULL is allowed */

enum tensor_format slices_format(const struct slices *r);
uint64_t slices_iteration(const struct slices *r);
uint32_t slices_attempt(const struct slices *r);
/* Returns the number of slices. There is one for each replica. */
uint32_t slices_count(const struct slices *r);
/* Returns the slice that this node owns. */
uint32_t slices_mine(const struct slices *r);
/* Returns the node that owns the slice. */
uint16_t slices_owner(const struct slices *r, uint32_t slice);
/* Gives the first float of a slice and the slice's length. */
void slices_range(const struct slices *r, uint32_t slice, size_t *from, size_t *floats);
/* Returns the size of the encoded slice, bytes. */
size_t slices_bytes(const struct slices *r, uint32_t slice);
/* Encodes a slice of the gradient (P) into `to`, which has slices_bytes bytes. */
void slices_encode(const struct slices *r, uint32_t slice, void *to, const float *gradient,
		   struct pool *pool);
/* Returns the buffer for this node's own part, slices_bytes bytes. The caller encodes the part
 * into this buffer. */
void *slices_own_part(struct slices *r);
/* Records that this node's own part is encoded. -EALREADY: it was recorded before. */
int slices_own_part_in(struct slices *r);

/* Stores a piece of a node's part of this node's slice. offset: position of the piece in the
 * encoded slice, bytes. -EALREADY: the whole piece was stored before. -EINVAL: the node is
 * unknown, the slice is not this node's, the piece is out of range or was stored in part before,
 * or there are too many separate ranges. -EBADMSG: the part is complete, but no correct
 * computation gives its scales. In fp32 there are no scales, and the caller checks the floats. */
int slices_put_part(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		    const void *body, size_t bytes);
/* Returns true if the parts of all replicas have arrived, so that slices_sum may run. */
bool slices_parts_in(const struct slices *r);
/* Adds the parts of this node's slice and encodes their sum. Call it once. */
void slices_sum(struct slices *r, struct pool *pool);
/* After slices_sum: returns the encoded sum of this node's slice (slices_bytes bytes); borrowed. */
const void *slices_own_sum(const struct slices *r);
/* Records that slices_sum has run, so this node's slice is complete. */
void slices_summed(struct slices *r);
/* Stores a piece of the sum of another node's slice. The errors are those of slices_put_part. */
int slices_put_sum(struct slices *r, uint16_t from, uint32_t slice, uint64_t offset,
		   const void *body, size_t bytes);
bool slices_complete(const struct slices *r);
/* Decodes the sums of all slices into the staging buffer. Call it once, when all sums have
 * arrived. */
void slices_decode(struct slices *r, struct pool *pool);
/* Returns the first node whose part or sum has not arrived completely; -1: none. */
int slices_awaits(const struct slices *r);
/* To be called after slices_decode. Hashes the sum of each slice, and returns the sum of the
 * squares of the staging buffer (squares.h). All replicas must get the same result. */
double slices_hash(struct slices *r, struct pool *pool);
const uint64_t *slices_hashes(const struct slices *r);
/* Returns the staging buffer (P), borrowed; valid after slices_decode. */
const float *slices_staging(const struct slices *r);

/* ---- sums on the stage's device (stage_sums_on_device) ---- These functions replace the
 * functions above that take a pool, and give the same bits. This node's own part and the decoded
 * sum stay on the device, so slices_own_part and slices_staging are not used. The functions
 * return 0, or -EIO if the device has failed. */

/* Encodes another replica's slice of the stage's gradient, as slices_encode does. */
int slices_encode_on(const struct slices *r, uint32_t slice, void *to, struct stage *s);
/* Adds the parts and encodes their sum, as slices_sum does. */
int slices_sum_on(struct slices *r, struct stage *s);
/* Decodes and hashes all slices, and computes the sum of the squares, as slices_decode and
 * slices_hash do. Afterwards stage_summed(s) returns the sum of the gradients. */
int slices_check_on(struct slices *r, struct stage *s, double *squares);

#endif
