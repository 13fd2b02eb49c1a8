/* noise.h - the handshake Noise_IK_25519_ChaChaPoly_BLAKE2b, exactly as specified.
 *
 * The dialer (initiator) knows the listener's static key. The listener learns the dialer's static
 * key from the first message, which carries it encrypted. After two messages both ends hold one
 * fresh key for each direction. A static key stolen later does not reveal these fresh keys. The
 * functions are pure: the caller passes the random bytes.
 *
 * Source: Perrin, The Noise Protocol Framework, revision 34. A payload in the first message has no
 * forward secrecy and can be replayed. Callers put nothing secret in it and guard against replay
 * (handshake.c does so with cookies).
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
/* Bytes of each of the two messages beyond its payload. */
#define NOISE_FIRST_EXTRA   (KEYS_BYTES + KEYS_BYTES + NOISE_TAG + NOISE_TAG)
#define NOISE_SECOND_EXTRA  (KEYS_BYTES + NOISE_TAG)

/* State of a handshake, visible so that other structs can contain it. It has secrets, so call
 * noise_wipe at the end. */
struct noise {
	uint8_t chain[NOISE_HASH], hash[NOISE_HASH], key[NOISE_KEY];
	uint64_t nonce;
	bool initiator;
	const struct keys_identity *me;  /* borrowed until noise_wipe */
	uint8_t ephemeral[KEYS_BYTES];   /* this end's secret ephemeral key */
	struct keys_public peer, peer_ephemeral;
};

/* Starts a handshake. peer: the responder's static key; the responder itself passes NULL. */
void noise_init(struct noise *n, bool initiator, const struct keys_identity *me,
	const struct keys_public *peer, const void *prologue, size_t prologue_size);
/* Overwrites every secret in n. */
void noise_wipe(struct noise *n);

/* Writes the initiator's first message, size + NOISE_FIRST_EXTRA bytes, at out. `ephemeral` is 32
 * fresh random bytes. -EINVAL: the peer's key is invalid (a point of low order). */
int noise_write_first(struct noise *n, const uint8_t ephemeral[KEYS_BYTES], const void *payload,
	size_t size, uint8_t *out);
/* Read the first message in two steps, so that an unknown key is refused after a single curve
 * operation. The first step sets n->peer to the key that the sender claims. The second step
 * decrypts the payload and proves that the sender owns this key. -EBADMSG: forged. */
int noise_read_first_key(struct noise *n, const uint8_t *message, size_t size);
int noise_read_first_payload(struct noise *n, const uint8_t *message, size_t size,
	uint8_t *payload);

/* Writes the responder's answer, size + NOISE_SECOND_EXTRA bytes. */
int noise_write_second(struct noise *n, const uint8_t ephemeral[KEYS_BYTES], const void *payload,
	size_t size, uint8_t *out);
/* Reads the answer. -EBADMSG: forged; n is unchanged, so the true answer can still be read. */
int noise_read_second(struct noise *n, const uint8_t *message, size_t size, uint8_t *payload);

/* Gives this end's keys for sending and for receiving, after the second message. The caller wipes
 * both. */
void noise_split(const struct noise *n, uint8_t send[NOISE_KEY], uint8_t receive[NOISE_KEY]);

#endif
