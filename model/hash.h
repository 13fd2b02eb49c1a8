/* hash.h - a 64-bit hash of bytes that nodes are compared by: other bytes give another number,
 * and no one can construct other bytes for a given number.
 *
 * The bytes are cut into leaves of HASH_LEAF, the last one as long as what is left. Each leaf has
 * its digest, BLAKE2s with 32 bytes and no key (RFC 7693). The root is the BLAKE2s of the leaves'
 * digests in order and of the number of bytes (64 bits, little-endian); the root's first 8 bytes,
 * little-endian, are the hash. No bytes have no leaves. A CPU computes several leaves side by side
 * and a GPU one in every thread.
 *
 * Strength of 64 bits: finding other bytes for a given number takes 2^64 attempts. Finding any two
 * arrays with the same number takes 2^32.
 */
#ifndef MODEL_HASH_H
#define MODEL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_NAME "blake2s-4k" /* the name of this hash in records */

enum { HASH_LEAF = 4096, HASH_DIGEST = 32, HASH_BATCH = 16 * HASH_LEAF };

/* Leaves of so many bytes. */
static inline size_t hash_leaves(size_t bytes)
{
	return (bytes + HASH_LEAF - 1) / HASH_LEAF;
}

uint64_t hash_bytes(const void *data, size_t bytes);
uint64_t hash_floats(const float *x, size_t n); /* of their bits */
/* The hash from digests (hash_leaves(bytes), HASH_DIGEST) that were computed elsewhere. */
uint64_t hash_root(const unsigned char *digests, uint64_t bytes);

/* The hash of bytes that arrive in parts of any length. */
struct hash {
	struct hash_root {
		uint32_t h[8];
		uint64_t bytes;
		size_t held;
		unsigned char block[64];
	} root;
	uint64_t bytes;
	size_t held;
	unsigned char batch[HASH_BATCH];
};

void hash_begin(struct hash *h);
void hash_add(struct hash *h, const void *data, size_t bytes);
uint64_t hash_end(struct hash *h);

#endif
