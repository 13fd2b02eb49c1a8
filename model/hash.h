/* hash.h - a 64-bit hash by which the weights and sums of nodes are compared. Nodes with different
 * bytes get different hashes, and nobody can construct other bytes with a given hash.
 *
 * The bytes are cut into leaves of HASH_LEAF, of which the last may be shorter. The digest of a
 * leaf is its BLAKE2s with 32 bytes and no key (RFC 7693). The root is the BLAKE2s of the leaves'
 * digests in order and of the number of bytes (64 bits, little-endian); the root's first 8 bytes,
 * little-endian, are the hash. An empty input has no leaves. A CPU computes several leaves side by
 * side. A GPU computes one leaf in every thread.
 *
 * Strength of 64 bits: to find other bytes with a given hash takes 2^64 attempts. To find any two
 * arrays with equal hashes takes 2^32 attempts.
 */
#ifndef MODEL_HASH_H
#define MODEL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_NAME "blake2s-4k" /* name of this hash function in records */

enum { HASH_LEAF = 4096, HASH_DIGEST = 32, HASH_BATCH = 16 * HASH_LEAF };

/* Returns the number of leaves of a tensor of this size. */
static inline size_t hash_leaves(size_t bytes)
{
	return (bytes + HASH_LEAF - 1) / HASH_LEAF;
}

uint64_t hash_bytes(const void *data, size_t bytes);
uint64_t hash_floats(const float *x, size_t n); /* returns the hash of the floats' bits */
/* Computes the digests (hash_leaves(bytes), HASH_DIGEST) of the leaves of the data. */
void hash_digests(unsigned char *digests, const void *data, size_t bytes);
/* Returns the hash of `bytes` bytes whose digests (hash_leaves(bytes), HASH_DIGEST) another device
 * or function has computed. */
uint64_t hash_root(const unsigned char *digests, uint64_t bytes);

/* Computes the hash of bytes that arrive in parts of any length. */
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
