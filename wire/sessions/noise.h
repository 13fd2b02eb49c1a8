/* noise.h - the handshake Noise_IK_25519_ChaChaPoly_BLAKE2b, exactly as specified.
 *
 * The dialer (initiator) knows the listener's static key. The listener learns the dialer's static
 * key from the first message, which carries it encrypted. After two messages both ends hold one
 * fresh key for each direction. A static key stolen later does not reveal these fresh keys. The
 * functions are pure: the caller passes the random bytes.
 *
 * Source: Perrin, The Noise Protocol Framework, revision 34. The payload of the first message has
 * no forward secrecy, and anybody can send a recorded message again. Callers must therefore put
 * nothing secret into this payload, and must detect replays (handshake.c does so with cookies).
 */
#ifndef WIRE_NOISE_H
#define WIRE_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/keys.h"

#define NOISE_HASH          64
#define NOISE_KEY           32
#define NOISE_TAG           16
/* Number of bytes by which each of the two messages is longer than its payload. */
#define NOISE_FIRST_EXTRA   (KEYS_BYTES + KEYS_BYTES + NOISE_TAG + NOISE_TAG)
#define NOISE_SECOND_EXTRA  (KEYS_BYTES + NOISE_TAG)

/* State of a handshake. The struct is public so that other structs can contain it. The state
 * contains secrets: call noise_wipe at the end. */
struct noise {
	uint8_t chain[NOISE_HASH], hash[NOISE_HASH], key[NOISE_KEY];
	uint64_t nonce;
	bool initiator;
	const struct keys_identity *me;  /* borrowed until noise_wipe */
	uint8_t ephemeral[KEYS_BYTES];   /* this end's secret ephemeral key */
	struct keys_public peer, peer_ephemeral;
};

/* Starts a handshake. peer: the static key of the responder; NULL at the responder. */
void noise_init(struct noise *n, bool initiator, const struct keys_identity *me,
	const struct keys_public *peer, const void *prologue, size_t prologue_size);
/* Overwrites every secret in n. */
void noise_wipe(struct noise *n);

/* Writes the initiator's first message to out: size + NOISE_FIRST_EXTRA bytes for a payload of
 * `size` bytes. ephemeral: 32 fresh random bytes. -EINVAL: the peer's key is invalid (a point of
 * low order). */
int noise_write_first(struct noise *n, const uint8_t ephemeral[KEYS_BYTES], const void *payload,
	size_t size, uint8_t *out);
/* Read the first message in two steps, so that the caller can refuse an unknown key after a
 * single computation on the curve. The first step sets n->peer to the key that the sender claims.
 * The second step proves that the sender owns this key, and decrypts the payload. -EBADMSG: the
 * message is forged. */
int noise_read_first_key(struct noise *n, const uint8_t *message, size_t size);
int noise_read_first_payload(struct noise *n, const uint8_t *message, size_t size,
	uint8_t *payload);

/* Writes the responder's answer to out: size + NOISE_SECOND_EXTRA bytes for a payload of `size`
 * bytes. */
int noise_write_second(struct noise *n, const uint8_t ephemeral[KEYS_BYTES], const void *payload,
	size_t size, uint8_t *out);
/* Reads the responder's answer. -EBADMSG: the answer is forged. n is then unchanged, so the real
 * answer can still be read. */
int noise_read_second(struct noise *n, const uint8_t *message, size_t size, uint8_t *payload);

/* To be called when both messages have been exchanged. Gives this end's keys for sending and for
 * receiving. The caller wipes both keys. */
void noise_split(const struct noise *n, uint8_t send[NOISE_KEY], uint8_t receive[NOISE_KEY]);

#endif
