/* early.h - stores tensors that arrive before the controller's order to which they belong.
 *
 * Each peer has a share: the bytes that a correct peer can send early (early_share). All peers
 * compete for one half of the room. The other half is divided equally among the peers, so no peer
 * can exclude another. EARLY_PLACE_BYTES is added to the size of each tensor. This limits the
 * number of small tensors.
 *
 * The gradient's sums are as long as the stage and may arrive while this node is busy. Before a
 * peer's share is full, the peer is asked to hold back further sums (early_crowded).
 *
 * This module only stores and counts. arrivals.c takes the tensors and informs the peers.
 */
#ifndef AGENT_EARLY_H
#define AGENT_EARLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/codec/codec.h"
#include "wire/post.h"

enum { EARLY_PLACE_BYTES = 4096 };
#define EARLY_MOST_BYTES ((size_t)1 << 30) /* limit of the bytes of all tensors */

struct early; /* opaque */

/* The decoding of a stored tensor by a thread. If the tensor is dropped meanwhile (is_orphan), the
 * decoding owns the message until the thread has ended. */
struct decoding {
	struct post_message message; /* kept by post_keep; set only if is_orphan */
	/* Result, from malloc: the input in the format that the stage takes. */
	struct tensor_bytes input;
	bool has_ended, is_plausible, is_orphan;
};

/* Records that the thread has ended. If the tensor was dropped meanwhile, frees the decoding. */
void decoding_end(struct decoding *d, bool is_plausible);

struct early_tensor {
	struct post_message message; /* kept by post_keep */
	uint16_t from;
	bool looked_at;   /* the numbers of this tensor were checked */
	/* The tensor has passed all checks but the check of its numbers. A thread can decode
	 * it. */
	bool is_due;
	int64_t due_us;            /* time at which `is_due` became true */
	struct decoding *decoding; /* owned; NULL: no thread has begun to decode it */
};

/* The tensors that a node receives in an iteration. */
struct early_traffic {
	/* Microbatches and validations that visit the node; each has two inputs. */
	size_t visits;
	size_t input_bytes; /* size of the message with an input */
	/* Size of the stage's gradient, bytes. A replica sends no more bytes than this: it sends
	 * its part of this node's slice, and the sum of its own slice. */
	size_t sum_bytes;
	size_t piece_bytes; /* size of each message of the gradient, > 0 */
};

/* Returns the size of a peer's share, bytes. The share has room for what a correct peer sends in
 * two iterations, and for at least 8 inputs and 16 MiB. The share is never more than `most`. */
size_t early_share(const struct early_traffic *t, size_t most);

/* Makes an empty store for the peers 0 to n_peers - 1 (early_free). */
struct early *early_new(uint32_t n_peers);
void early_free(struct early *e); /* drops the tensors too; NULL is allowed */
/* Sets two limits: room_bytes for all tensors together, and share_bytes for the tensors of each
 * peer. Stored tensors stay, even above the limits. */
void early_bound(struct early *e, size_t room_bytes, size_t share_bytes);

/* Returns true if a message of this size from this peer may be stored. Reserves memory for its
 * entry. */
bool early_fits(struct early *e, uint16_t from, size_t bytes);
/* Stores a tensor for which early_fits returned true. The store owns its message (post_keep) from
 * now on. */
void early_keep(struct early *e, const struct early_tensor *t);
/* Returns true if the peer's share is so full that the peer should send no more sums. */
bool early_crowded(const struct early *e, uint16_t from);

size_t early_count(const struct early *e);
/* Returns tensor i, where 0 is the oldest and i < early_count; borrowed until the store changes. */
struct early_tensor *early_at(struct early *e, size_t i);
/* Drops tensor i. The other tensors keep their numbers until early_close_up. */
void early_drop(struct early *e, size_t i);
/* Removes the entries of dropped tensors. Returns their number. */
size_t early_close_up(struct early *e);

/* ---- for tests ---- */

/* Returns the present size of a peer's share, bytes. */
size_t early_share_of(const struct early *e);
/* Returns the bytes of all stored tensors. */
size_t early_bytes(const struct early *e);
/* Returns the bytes of a peer's stored tensors. */
size_t early_bytes_of(const struct early *e, uint16_t from);

#endif
