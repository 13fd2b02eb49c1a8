/* Compares libcrypto's AES-256-GCM with published vectors, and with the AES-256-GCM of
 * libsodium. */
#include "wire/sessions/aes_gcm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "wire/sessions/seal.h"

#define ZERO_KEY "0000000000000000000000000000000000000000000000000000000000000000"
#define KEY      "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"
#define PLAIN_60 \
	"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" \
	"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define SEALED_60 \
	"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa" \
	"8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"

/* McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 13 to 16. */
static const struct vector {
	const char *key, *nonce, *header, *plain, *sealed, *tag;
} vectors[] = {
	{ZERO_KEY, "000000000000000000000000", "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
	{ZERO_KEY, "000000000000000000000000", "", "00000000000000000000000000000000",
		"cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
	{KEY, "cafebabefacedbaddecaf888", "", PLAIN_60 "1aafd255", SEALED_60 "898015ad",
		"b094dac5d93471bdec1a502270e3cc6c"},
	{KEY, "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2", PLAIN_60,
		SEALED_60, "76fc6ece0f4e1768cddf8853bb2d551b"},
};

static size_t unhex(uint8_t *to, size_t room, const char *hex)
{
	size_t size;
	assert_int_equal(sodium_hex2bin(to, room, hex, strlen(hex), NULL, &size, NULL), 0);
	return size;
}

TEST(published_vectors)
{
	struct aes_gcm *g = aes_gcm_new();
	assert_non_null(g);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];
		uint8_t key[32], nonce[12], header[32], plain[64], data[64 + AES_GCM_TAG],
			sealed[64 + AES_GCM_TAG];
		unhex(key, sizeof(key), v->key);
		unhex(nonce, sizeof(nonce), v->nonce);
		const struct aes_gcm_terms terms = {key, nonce, header,
			unhex(header, sizeof(header), v->header)};
		const size_t size = unhex(plain, sizeof(plain), v->plain);
		unhex(sealed, sizeof(sealed), v->sealed);
		unhex(sealed + size, AES_GCM_TAG, v->tag);
		assert_int_equal(aes_gcm_close(g, &terms, &(struct aes_gcm_piece){plain, size}, 1,
					 data), 0);
		assert_memory_equal(data, sealed, size + AES_GCM_TAG);
		assert_int_equal(aes_gcm_open(g, &terms, data, size), 0);
		assert_memory_equal(data, plain, size);
	}
	aes_gcm_free(g);
}

/* ---- comparison with libsodium ---- */

struct both {
	struct aes_gcm *aes;
	struct seal_key key;
	uint8_t *plain, *one, *other; /* buffers of ROOM bytes */
};
enum { ROOM = 300000 + SEAL_TAG };

/* Encrypts the same bytes with both libraries and compares the results. The first piece already
 * lies in `one`, as a frame's head does. */
static void compare(struct both *b, size_t size, size_t head, size_t first, uint64_t counter)
{
	const struct aes_gcm_piece pieces[] = {{b->one, head}, {b->plain + head, first},
		{b->plain + head + first, size - head - first}};
	memcpy(b->one, b->plain, head);
	memcpy(b->other, b->plain, size);
	assert_int_equal(seal_close_by(b->aes, &b->key, counter, "a header", 8, pieces, 3, b->one),
		0);
	seal_close(&b->key, counter, "a header", 8, b->other, size);
	assert_memory_equal(b->one, b->other, size + SEAL_TAG);
	assert_int_equal(seal_open(&b->key, counter, "a header", 8, b->one, size), 0);
	assert_memory_equal(b->one, b->plain, size);
	memcpy(b->one, b->other, size + SEAL_TAG);
	assert_int_equal(seal_open_by(b->aes, &b->key, counter, "a header", 8, b->one, size), 0);
	assert_memory_equal(b->one, b->plain, size);
	/* Decryption must refuse a changed byte of the content or the tag, and another header. */
	memcpy(b->one, b->other, size + SEAL_TAG);
	b->one[(size + SEAL_TAG) * 3 / 4] ^= 4;
	assert_int_equal(seal_open_by(b->aes, &b->key, counter, "a header", 8, b->one, size),
		-EBADMSG);
	assert_int_equal(seal_open_by(b->aes, &b->key, counter, "A header", 8, b->other, size),
		-EBADMSG);
}

TEST(libsodium_gives_the_same_bytes)
{
	static const uint8_t secret[SEAL_KEY] = {3};
	static const size_t sizes[] = {0, 1, 15, 16, 17, 64, 1000, 24576, 65537, 300000};
	_Alignas(16) struct both b = {.aes = aes_gcm_new()};
	struct rng rng;
	assert_true(sodium_init() >= 0);
	assert_non_null(b.aes);
	if (!seal_has_aes()) {
		aes_gcm_free(b.aes);
		skip();
	}
	seal_key_init(&b.key, SEAL_AES256_GCM, secret);
	rng_init(&rng, 1);
	b.plain = malloc(3 * (size_t)ROOM);
	assert_non_null(b.plain);
	b.one = b.plain + ROOM;
	b.other = b.one + ROOM;
	for (size_t i = 0; i < ROOM; i++)
		b.plain[i] = (uint8_t)rng_next(&rng);
	for (int i = 0; i < 100; i++) {
		const size_t size = i < 50 ? sizes[i % 10] : rng_below(&rng, 3000);
		const size_t head = rng_below(&rng, (uint32_t)size + 1);
		const size_t first = rng_below(&rng, (uint32_t)(size - head) + 1);
		compare(&b, size, head, first, rng_next(&rng));
	}
	aes_gcm_free(b.aes);
	free(b.plain);
}

TEST(another_cipher_is_left_to_libsodium)
{
	static const uint8_t secret[SEAL_KEY] = {3};
	uint8_t data[1 + SEAL_TAG] = {9};
	const struct aes_gcm_piece piece = {data, 1};
	_Alignas(16) struct seal_key key;
	struct aes_gcm *aes = aes_gcm_new();
	seal_key_init(&key, SEAL_XCHACHA20, secret);
	assert_int_equal(seal_close_by(aes, &key, 1, "", 0, &piece, 1, data), -ENOTSUP);
	assert_int_equal(seal_open_by(aes, &key, 1, "", 0, data, 1), -ENOTSUP);
	assert_int_equal(data[0], 9);
	key.cipher = SEAL_AES256_GCM;
	assert_int_equal(seal_close_by(NULL, &key, 1, "", 0, &piece, 1, data), -ENOTSUP);
	assert_int_equal(seal_open_by(NULL, &key, 1, "", 0, data, 1), -ENOTSUP);
	assert_int_equal(data[0], 9);
	aes_gcm_free(aes);
}
