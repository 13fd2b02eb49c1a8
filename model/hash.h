/* hash.h - 64 bits that stand for bytes where somebody is judged by them: other bytes, another
 * number, and nobody can make other bytes for a number that is given.
 *
 * The bytes are cut into leaves of HASH_LEAF, the last one as long as what is left. Each leaf has
 * its digest, BLAKE2s with 32 bytes and no key (RFC 7693). The root is the BLAKE2s of the leaves'
 * digests in order and of the number of bytes (64 bits, little-endian); the root's first 8 bytes,
 * little-endian, are the hash. No bytes, no leaves. So a CPU computes several leaves side by side,
 * a GPU one in every thread, and whoever finds other bytes for a root has broken BLAKE2s.
 *
 * What the 64 bits hold: other bytes for a given number are 2^64 attempts away. Two arrays of
 * which somebody makes both, at will, are 2^32 away.
 */
#ifndef MODEL_HASH_H
#define MODEL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_NAME "blake2s-4k" /* in records: which hash theirs are */

enum { HASH_LEAF = 4096, HASH_DIGEST = 32, HASH_BATCH = 16 * HASH_LEAF };

/* Leaves of so many bytes. */
static inline size_t hash_leaves(size_t bytes)
{
	return (bytes + HASH_LEAF - 1) / HASH_LEAF;
}

uint64_t hash_bytes(const void *data, size_t bytes);
uint64_t hash_floats(const float *x, size_t n); /* of their bits */
/* Of what lies elsewhere: digests (hash_leaves(bytes), HASH_DIGEST). */
uint64_t hash_root(const unsigned char *digests, uint64_t bytes);

/* Of bytes that come in parts of any length. */
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
