/* early.h - stores tensors that arrive before the controller's order that they belong to.
 *
 * Each peer has a share: the bytes that a correct peer can send early (early_share). No peer can
 * exclude another: half of the room is common, and each peer has a part of the other half. A tensor
 * counts EARLY_PLACE_BYTES more than its size, which limits the number of small tensors.
 *
 * Sums are as long as the stage and may arrive while this node is busy. Before a peer's share is
 * full, its further sums wait at the peer (early_crowded).
 *
 * This module only stores and counts; arrivals.c takes tensors and informs the peers.
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

/* The decoding of a tensor by a thread. If the tensor is dropped meanwhile, the decoding owns the
 * message until the thread has ended. */
struct decoding {
	struct post_message message; /* kept (post_keep); set only if is_orphan */
	struct tensor_bytes input;   /* malloc; the input as the stage takes it */
	bool has_ended, is_plausible, is_orphan;
};

/* Takes the result of the thread, or frees everything if the tensor was dropped. */
void decoding_end(struct decoding *d, bool is_plausible);

struct early_tensor {
	struct post_message message; /* kept (post_keep) */
	uint16_t from;
	bool looked_at;   /* the numbers of this tensor were checked */
	/* Everything but the tensor's numbers was checked: a thread can decode it. */
	bool is_due;
	int64_t due_us;   /* since when it is due */
	struct decoding *decoding; /* owned; NULL: no thread has begun to decode it */
};

/* The tensors that a node receives in an iteration. */
struct early_traffic {
	size_t visits;      /* microbatches and validations that pass the node: two inputs each */
	size_t input_bytes; /* size of an input's message */
	size_t sum_bytes;   /* size of the gradient; a replica sends a part and a slice of it */
	size_t piece_bytes; /* size of each message of the gradient, > 0 */
};

/* Returns a peer's share in bytes: the bytes that it sends in two iterations, at least 8 inputs and
 * 16 MiB, at most `most`. */
size_t early_share(const struct early_traffic *t, size_t most);

/* Makes a store for peers 0 .. n_peers - 1 (early_free). */
struct early *early_new(uint32_t n_peers);
void early_free(struct early *e); /* drops the tensors too; NULL is allowed */
/* Sets the limits, in bytes: room_bytes for all tensors, share_bytes for those of each peer. Stored
 * tensors stay. */
void early_bound(struct early *e, size_t room_bytes, size_t share_bytes);

/* Returns true if a message of this size may be stored, and reserves memory for its entry. */
bool early_fits(struct early *e, uint16_t from, size_t bytes);
/* Stores a tensor that fits. The store owns its message, which is kept (post_keep), from now on. */
void early_keep(struct early *e, const struct early_tensor *t);
/* Returns true if the peer's share is so full that it should send no more sums. */
bool early_crowded(const struct early *e, uint16_t from);

size_t early_count(const struct early *e);
/* Returns the i-th tensor, oldest first, i < early_count; borrowed until the store changes. */
struct early_tensor *early_at(struct early *e, size_t i);
/* Releases the i-th tensor. All tensors keep their numbers until early_close_up. */
void early_drop(struct early *e, size_t i);
/* Removes the entries of dropped tensors. Returns their number. */
size_t early_close_up(struct early *e);

/* ---- for tests ---- */

/* Returns the present share of a peer. */
size_t early_share_of(const struct early *e);
/* Returns the bytes of all stored tensors. */
size_t early_bytes(const struct early *e);
/* Returns the bytes of a peer's stored tensors. */
size_t early_bytes_of(const struct early *e, uint16_t from);

#endif
