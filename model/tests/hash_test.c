/* Tests the hash: the leaves of every instruction set, and the root, against vectors of RFC 7693
 * and of Python's hashlib, an independent implementation.
 *
 *   python3 -c "
 *   import hashlib, struct
 *   b = lambda n: bytes((i * i * 7 + i * 13 >> 3) & 255 for i in range(n))
 *   s = lambda x: hashlib.blake2s(x).digest()
 *   for n in (0, 1, 63, 64, 65, 4095, 4096, 4097, 8192, 65536, 70000, 300001):
 *       x = b(n)
 *       r = s(b''.join(s(x[i:i + 4096]) for i in range(0, n, 4096)) + struct.pack('<Q', n))
 *       print('{ %d, 0x%016x },' % (n, struct.unpack('<Q', r[:8])[0]))"
 */
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/vector/vector.h"
#include "model/hash.h"

static const struct {
	size_t bytes;
	uint64_t hash;
} vectors[] = {
	{ 0, 0x3c3264f412dbdf50 },
	{ 1, 0xf064e4371d434104 },
	{ 63, 0x9d8f50033b311b45 },
	{ 64, 0xff1ba27c1edbf750 },
	{ 65, 0x2df2f3d0df1a9b33 },
	{ 4095, 0x8ff47717098fd321 },
	{ 4096, 0x740f896265b2bbfc },
	{ 4097, 0x0510d93adc70f725 },
	{ 8192, 0x5c6d32cfb990e54d },
	{ 65536, 0x7e2f792b154ecab9 },
	{ 70000, 0x00a9ee0c25e02a56 },
	{ 300001, 0x296991e916849899 },
};

enum { VECTOR_COUNT = sizeof(vectors) / sizeof(vectors[0]), MOST = 300001 };

static unsigned char *example(void)
{
	unsigned char *x = malloc(MOST);

	assert_non_null(x);
	for (size_t i = 0; i < MOST; i++)
		x[i] = (unsigned char)((i * i * 7 + i * 13) >> 3);
	return x;
}

/* The vector of RFC 7693, appendix B. */
TEST(a_leaf_is_the_standards)
{
	static const unsigned char abc[HASH_DIGEST] = {
		0x50, 0x8c, 0x5e, 0x8c, 0x32, 0x7c, 0x14, 0xe2, 0xe1, 0xa7, 0x2b,
		0xa3, 0x4e, 0xeb, 0x45, 0x2f, 0x37, 0x45, 0x8b, 0x20, 0x9e, 0xd6,
		0x3a, 0x29, 0x4d, 0x99, 0x9b, 0x4c, 0x86, 0x67, 0x59, 0x82,
	};
	unsigned char digest[HASH_DIGEST];

	for (size_t set = 0; vector_ops_at(set); set++) {
		memset(digest, 0, sizeof(digest));
		vector_ops_at(set)->leaves(digest, (const unsigned char *)"abc", 3);
		assert_memory_equal(digest, abc, sizeof(abc));
	}
}

/* Hashes the bytes as a whole, in parts of odd lengths, and from the digests of each instruction
 * set. */
TEST(hashes_are_hashlibs)
{
	unsigned char *x = example(), *digests = malloc(hash_leaves(MOST) * HASH_DIGEST);
	static struct hash h;

	assert_non_null(digests);
	for (size_t v = 0; v < VECTOR_COUNT; v++) {
		size_t n = vectors[v].bytes;

		assert_true(hash_bytes(x, n) == vectors[v].hash);
		for (size_t part = 1; part < 100000; part = part * 7 + 1) {
			hash_begin(&h);
			for (size_t at = 0; at < n; at += part)
				hash_add(&h, x + at, n - at < part ? n - at : part);
			assert_true(hash_end(&h) == vectors[v].hash);
		}
		for (size_t set = 0; vector_ops_at(set); set++) {
			vector_ops_at(set)->leaves(digests, x, n);
			assert_true(hash_root(digests, n) == vectors[v].hash);
		}
	}
	free(digests);
	free(x);
}

/* Flips a bit at every place in a block, in a leaf and in a batch, for every instruction set. */
TEST(a_flipped_bit_shows)
{
	static unsigned char digests[MOST / HASH_LEAF * HASH_DIGEST + HASH_DIGEST];
	unsigned char *x = example();
	size_t n = 70000;
	uint64_t hash = hash_bytes(x, n);

	for (size_t at = 0; at < n; at += at < 200 || at > n - 70 ? 1 : 509)
		for (size_t set = 0; vector_ops_at(set); set++) {
			x[at] ^= (unsigned char)(1u << at % 8);
			vector_ops_at(set)->leaves(digests, x, n);
			assert_true(hash_root(digests, n) != hash);
			x[at] ^= (unsigned char)(1u << at % 8);
		}
	assert_true(hash_bytes(x, n) == hash);
	free(x);
}

static uint64_t checksum(const uint64_t words[2])
{
	uint64_t sum = 0xcbf29ce484222325u;

	for (int i = 0; i < 2; i++)
		sum = (sum ^ words[i]) * 0x100000001b3u;
	return sum;
}

/* Shows why the older checksum, FNV-1a, does not prove that data is unchanged. Each of its steps is
 * a bijection. For any change of one word, the next word can therefore be chosen so that the
 * checksum stays the same. The new hash does not have this weakness. */
TEST(words_that_undo_one_another_show)
{
	const uint64_t begin = 0xcbf29ce484222325u, prime = 0x100000001b3u;
	uint64_t right[2] = { 0x3f8000003f800000u, 0x4000000040000000u };
	uint64_t forged[2] = { 0x3f8000003f800001u,
			       right[1] ^ (begin ^ right[0]) * prime ^
				       (begin ^ 0x3f8000003f800001u) * prime };

	assert_true(checksum(right) == checksum(forged));
	assert_true(hash_bytes(right, sizeof(right)) != hash_bytes(forged, sizeof(forged)));
}
