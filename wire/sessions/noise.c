/* noise.c - the handshake by which two processes prove their keys and agree on keys for a
 * session. The handshake is written here because libsodium offers the primitives but no Noise
 * handshake. The functions mix_hash, mix_key and so on have the names of the steps in the Noise
 * specification. */
#include "wire/sessions/noise.h"

#include <errno.h>
#include <string.h>

#include <sodium.h>

#include "wire/identity.h"

#define BLOCK 128 /* block size of BLAKE2b in bytes, which HMAC needs */

static const char protocol[] = "Noise_IK_25519_ChaChaPoly_BLAKE2b";

struct part {
	const void *data;
	size_t size;
};

static void hash_parts(uint8_t out[NOISE_HASH], const struct part *parts, size_t n)
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, NULL, 0, NOISE_HASH);
	for (size_t i = 0; i < n; i++)
		crypto_generichash_update(&state, parts[i].data, parts[i].size);
	crypto_generichash_final(&state, out, NOISE_HASH);
	sodium_memzero(&state, sizeof(state));
}

/* Computes the HMAC (RFC 2104) of the parts a and b, one after the other, with BLAKE2b and a key of
 * NOISE_HASH bytes. */
static void compute_hmac(uint8_t out[NOISE_HASH], const uint8_t key[NOISE_HASH], struct part a,
	struct part b)
{
	uint8_t inner_pad[BLOCK], outer_pad[BLOCK], inner[NOISE_HASH];
	memset(inner_pad, 0x36, BLOCK);
	memset(outer_pad, 0x5c, BLOCK);
	for (size_t i = 0; i < NOISE_HASH; i++) {
		inner_pad[i] ^= key[i];
		outer_pad[i] ^= key[i];
	}
	hash_parts(inner, (struct part[]){{inner_pad, BLOCK}, a, b}, 3);
	hash_parts(out, (struct part[]){{outer_pad, BLOCK}, {inner, NOISE_HASH}}, 2);
	sodium_memzero(inner_pad, BLOCK);
	sodium_memzero(outer_pad, BLOCK);
	sodium_memzero(inner, sizeof(inner));
}

static void derive_keys(const uint8_t chain[NOISE_HASH], const void *input, size_t size,
	uint8_t one[NOISE_HASH], uint8_t two[NOISE_HASH])
{
	uint8_t temporary[NOISE_HASH], first[NOISE_HASH];
	const struct part none = {"", 0};
	compute_hmac(temporary, chain, (struct part){input, size}, none);
	compute_hmac(first, temporary, (struct part){"\x01", 1}, none);
	compute_hmac(two, temporary, (struct part){first, NOISE_HASH}, (struct part){"\x02", 1});
	memcpy(one, first, NOISE_HASH);
	sodium_memzero(temporary, sizeof(temporary));
	sodium_memzero(first, sizeof(first));
}

static void mix_hash(struct noise *n, const void *data, size_t size)
{
	hash_parts(n->hash, (struct part[]){{n->hash, NOISE_HASH}, {data, size}}, 2);
}

static void mix_key(struct noise *n, const uint8_t *input)
{
	uint8_t key[NOISE_HASH];
	derive_keys(n->chain, input, KEYS_BYTES, n->chain, key);
	memcpy(n->key, key, NOISE_KEY);
	n->nonce = 0;
	sodium_memzero(key, sizeof(key));
}

/* Mixes a shared secret into the handshake's key. The specification calls this MixKey(DH(secret,
 * public)). */
static int mix_shared(struct noise *n, const uint8_t *secret, const struct keys_public *public)
{
	uint8_t shared[KEYS_BYTES];
	if (crypto_scalarmult(shared, secret, public->bytes) != 0)
		return -EINVAL;
	mix_key(n, shared);
	sodium_memzero(shared, sizeof(shared));
	return 0;
}

static void nonce_bytes(uint8_t out[12], uint64_t nonce)
{
	memset(out, 0, 4);
	for (int i = 0; i < 8; i++)
		out[4 + i] = (uint8_t)(nonce >> (8 * i));
}

static void encrypt_and_hash(struct noise *n, const void *plain, size_t size, uint8_t *out)
{
	uint8_t nonce[12];
	nonce_bytes(nonce, n->nonce++);
	crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, plain, size, n->hash, NOISE_HASH, NULL,
		nonce, n->key);
	mix_hash(n, out, size + NOISE_TAG);
}

/* Decrypts the ciphertext `box` and mixes it into the hash. size: bytes of the ciphertext, its
 * tag included. */
static int decrypt_and_hash(struct noise *n, const uint8_t *box, size_t size, uint8_t *out)
{
	uint8_t nonce[12];
	nonce_bytes(nonce, n->nonce++);
	if (crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, box, size, n->hash,
		    NOISE_HASH, nonce, n->key) != 0)
		return -EBADMSG;
	mix_hash(n, box, size);
	return 0;
}

void noise_init(struct noise *n, bool initiator, const struct keys_identity *me,
	const struct keys_public *peer, const void *prologue, size_t prologue_size)
{
	memset(n, 0, sizeof(*n));
	memcpy(n->hash, protocol, sizeof(protocol) - 1);
	memcpy(n->chain, n->hash, NOISE_HASH);
	n->initiator = initiator;
	n->me = me;
	if (peer != NULL)
		n->peer = *peer;
	mix_hash(n, prologue, prologue_size);
	mix_hash(n, initiator ? n->peer.bytes : me->public.bytes, KEYS_BYTES);
}

void noise_wipe(struct noise *n)
{
	sodium_memzero(n, sizeof(*n));
}

static void put_ephemeral(struct noise *n, const uint8_t *secret, uint8_t *out)
{
	memcpy(n->ephemeral, secret, KEYS_BYTES);
	crypto_scalarmult_base(out, n->ephemeral);
	mix_hash(n, out, KEYS_BYTES);
}

int noise_write_first(struct noise *n, const uint8_t ephemeral[KEYS_BYTES], const void *payload,
	size_t size, uint8_t *out)
{
	put_ephemeral(n, ephemeral, out); /* token e: the ephemeral key */
	out += KEYS_BYTES;
	if (mix_shared(n, n->ephemeral, &n->peer) < 0) /* token es: ephemeral-static agreement */
		return -EINVAL;
	encrypt_and_hash(n, n->me->public.bytes, KEYS_BYTES, out); /* token s: the static key */
	out += KEYS_BYTES + NOISE_TAG;
	if (mix_shared(n, n->me->secret, &n->peer) < 0) /* token ss: static-static agreement */
		return -EINVAL;
	encrypt_and_hash(n, payload, size, out);
	return 0;
}

int noise_read_first_key(struct noise *n, const uint8_t *message, size_t size)
{
	if (size < NOISE_FIRST_EXTRA)
		return -EBADMSG;
	memcpy(n->peer_ephemeral.bytes, message, KEYS_BYTES); /* token e */
	mix_hash(n, message, KEYS_BYTES);
	if (mix_shared(n, n->me->secret, &n->peer_ephemeral) < 0) /* token es */
		return -EBADMSG;
	message += KEYS_BYTES;
	return decrypt_and_hash(n, message, KEYS_BYTES + NOISE_TAG, n->peer.bytes); /* token s */
}

int noise_read_first_payload(struct noise *n, const uint8_t *message, size_t size, uint8_t *payload)
{
	const size_t before = KEYS_BYTES + KEYS_BYTES + NOISE_TAG;
	if (mix_shared(n, n->me->secret, &n->peer) < 0) /* token ss */
		return -EBADMSG;
	return decrypt_and_hash(n, message + before, size - before, payload);
}

int noise_write_second(struct noise *n, const uint8_t ephemeral[KEYS_BYTES], const void *payload,
	size_t size, uint8_t *out)
{
	put_ephemeral(n, ephemeral, out); /* token e */
	if (mix_shared(n, n->ephemeral, &n->peer_ephemeral) < 0 || /* token ee */
	    mix_shared(n, n->ephemeral, &n->peer) < 0) /* token se */
		return -EBADMSG;
	encrypt_and_hash(n, payload, size, out + KEYS_BYTES);
	return 0;
}

int noise_read_second(struct noise *n, const uint8_t *message, size_t size, uint8_t *payload)
{
	if (size < NOISE_SECOND_EXTRA)
		return -EBADMSG;
	struct noise tried = *n;
	int rc = -EBADMSG;
	memcpy(tried.peer_ephemeral.bytes, message, KEYS_BYTES); /* token e */
	mix_hash(&tried, message, KEYS_BYTES);
	if (mix_shared(&tried, tried.ephemeral, &tried.peer_ephemeral) == 0 && /* token ee */
	    mix_shared(&tried, tried.me->secret, &tried.peer_ephemeral) == 0)  /* token se */
		rc = decrypt_and_hash(&tried, message + KEYS_BYTES, size - KEYS_BYTES, payload);
	if (rc == 0)
		*n = tried;
	noise_wipe(&tried);
	return rc;
}

void noise_split(const struct noise *n, uint8_t send[NOISE_KEY], uint8_t receive[NOISE_KEY])
{
	uint8_t one[NOISE_HASH], two[NOISE_HASH];
	derive_keys(n->chain, "", 0, one, two);
	memcpy(send, n->initiator ? one : two, NOISE_KEY);
	memcpy(receive, n->initiator ? two : one, NOISE_KEY);
	sodium_memzero(one, sizeof(one));
	sodium_memzero(two, sizeof(two));
}
