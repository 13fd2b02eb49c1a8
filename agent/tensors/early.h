/* early.h - what peers send ahead of the controller's word that it belongs to, until that word comes.
 *
 * Each peer has a share: as much as it may rightly be ahead by (early_share). No peer can keep
 * another one out: half of the room is anybody's, and of the rest each has its part. A tensor
 * counts for EARLY_PLACE_BYTES more than it has, so that small ones are not without number.
 *
 * Sums are as long as the stage, and may come when this node is busy for long: before a peer's
 * share is full they are to wait at their sender's (early_crowded).
 *
 * A store and its rule only: what to take when, and whom to tell, is tensors.c's.
 */
#ifndef AGENT_EARLY_H
#define AGENT_EARLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/post.h"

enum { EARLY_PLACE_BYTES = 4096 };

struct early; /* opaque */

struct early_tensor {
	struct post_message message; /* kept (post_keep) */
	uint16_t from;
	bool looked_at; /* its numbers were */
};

/* What is sent in an iteration to a node, and how large it is. */
struct early_traffic {
	size_t visits;      /* of microbatches, evaluations too: two inputs each */
	size_t input_bytes; /* of each, as it travels */
	size_t sum_bytes;   /* the gradient: a part and a slice of it come from a replica, */
	size_t piece_bytes; /* in messages of so many, > 0 */
};

/* Bytes of one peer at most: what it sends in two iterations; 8 inputs and 16 MiB at least, and no
 * more than `most`. */
size_t early_share(const struct early_traffic *t, size_t most);

/* Makes a store for peers 0 .. n_peers - 1 (early_free). */
struct early *early_new(uint32_t n_peers);
void early_free(struct early *e); /* and what it keeps; NULL is allowed */
/* The room from now on: bytes of all tensors, and of each peer's. What is kept stays. */
void early_bound(struct early *e, size_t room_bytes, size_t share_bytes);

/* Whether a message of so many bytes may be kept, and memory for its place is there. */
bool early_fits(struct early *e, uint16_t from, size_t bytes);
/* Keeps it: it fits, and the message is a kept one, owned from now on. */
void early_keep(struct early *e, const struct early_tensor *t);
/* Whether so much of the peer's is kept that it is time to take no more sums from it. */
bool early_crowded(const struct early *e, uint16_t from);

size_t early_count(const struct early *e);
/* The i-th, oldest first, i < early_count. Borrowed until the next call that changes anything. */
struct early_tensor *early_at(struct early *e, size_t i);
/* Lets go of the i-th at once; its number stays taken until early_close_up. */
void early_drop(struct early *e, size_t i);
/* Closes the gaps that early_drop left. Returns how many they were. */
size_t early_close_up(struct early *e);
/* For tests, which hold them against each other. */
size_t early_most_of(const struct early *e);                     /* a peer: its share as of now */
size_t early_bytes(const struct early *e);                       /* of all, places included */
size_t early_bytes_of(const struct early *e, uint16_t from);     /* of one peer's */

#endif
