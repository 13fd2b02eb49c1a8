/* The hash of hash.h: the kernels of the instruction set hash the leaves, plain BLAKE2s hashes the
 * root. */
#include "model/hash.h"

#include <string.h>

#include "model/vector/vector.h"

#define INLINE_ static inline
#define WORD uint32_t

#include "model/blake2s.h"

/* ---- the root: BLAKE2s of bytes that arrive in parts ---- */

static void root_begin(struct hash_root *r)
{
	blake2s_begin(r->h);
	r->bytes = r->held = 0;
}

static void root_take(struct hash_root *r, bool last)
{
	uint32_t m[16];

	memset(r->block + r->held, 0, sizeof(r->block) - r->held);
	memcpy(m, r->block, sizeof(m));
	r->bytes += r->held;
	r->held = 0;
	blake2s_block(r->h, m, r->bytes, last);
}

/* Adds bytes. A full block waits until the next byte arrives, because the last block of a message
 * is compressed differently. */
static void root_add(struct hash_root *r, const unsigned char *data, size_t bytes)
{
	while (bytes > 0) {
		size_t n;

		if (r->held == sizeof(r->block))
			root_take(r, false);
		n = sizeof(r->block) - r->held < bytes ? sizeof(r->block) - r->held : bytes;
		memcpy(r->block + r->held, data, n);
		r->held += n;
		data += n;
		bytes -= n;
	}
}

static uint64_t root_end(struct hash_root *r, uint64_t bytes)
{
	unsigned char length[sizeof(bytes)];

	for (size_t i = 0; i < sizeof(length); i++)
		length[i] = (unsigned char)(bytes >> 8 * i);
	root_add(r, length, sizeof(length));
	root_take(r, true);
	return r->h[0] | (uint64_t)r->h[1] << 32;
}

uint64_t hash_root(const unsigned char *digests, uint64_t bytes)
{
	struct hash_root r;

	root_begin(&r);
	root_add(&r, digests, hash_leaves(bytes) * HASH_DIGEST);
	return root_end(&r, bytes);
}

/* ---- leaves, in batches ---- */

void hash_digests(unsigned char *digests, const void *data, size_t bytes)
{
	for (size_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < HASH_BATCH ? bytes - at : HASH_BATCH;
		vector_ops()->leaves(digests + at / HASH_LEAF * HASH_DIGEST,
				     (const unsigned char *)data + at, n);
	}
}

static void add_leaves(struct hash *h, const unsigned char *data, size_t bytes)
{
	unsigned char digests[HASH_BATCH / HASH_LEAF * HASH_DIGEST];

	vector_ops()->leaves(digests, data, bytes);
	root_add(&h->root, digests, hash_leaves(bytes) * HASH_DIGEST);
}

void hash_begin(struct hash *h)
{
	root_begin(&h->root);
	h->bytes = h->held = 0;
}

void hash_add(struct hash *h, const void *data, size_t bytes)
{
	const unsigned char *from = data;

	h->bytes += bytes;
	while (bytes > 0) {
		bool whole = h->held == 0 && bytes >= HASH_BATCH;
		size_t n = HASH_BATCH - h->held < bytes ? HASH_BATCH - h->held : bytes;

		if (!whole)
			memcpy(h->batch + h->held, from, n);
		h->held += n;
		if (h->held == HASH_BATCH) {
			add_leaves(h, whole ? from : h->batch, HASH_BATCH);
			h->held = 0;
		}
		from += n;
		bytes -= n;
	}
}

uint64_t hash_end(struct hash *h)
{
	add_leaves(h, h->batch, h->held);
	return root_end(&h->root, h->bytes);
}

uint64_t hash_bytes(const void *data, size_t bytes)
{
	struct hash h;

	hash_begin(&h);
	hash_add(&h, data, bytes);
	return hash_end(&h);
}

uint64_t hash_floats(const float *x, size_t n)
{
	return hash_bytes(x, n * sizeof(*x));
}
