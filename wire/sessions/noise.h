/* noise.h - the handshake: Noise_IK_25519_ChaChaPoly_BLAKE2b, nothing added, nothing left out.
 *
 * The dialer (initiator) knows the listener's static key; the listener learns the dialer's from the
 * first message, encrypted. Two messages; after them both hold one fresh key per direction, which
 * neither static key, stolen later, gives back. Pure: randomness comes in as an argument.
 *
 * Source: Perrin, The Noise Protocol Framework, revision 34. A payload in the first message has no
 * forward secrecy and can be replayed: callers put nothing secret in it and guard against replay
 * (link.c does, by cookies).
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
#define NOISE_FIRST_EXTRA   (KEYS_BYTES + KEYS_BYTES + NOISE_TAG + NOISE_TAG) /* beyond payload */
#define NOISE_SECOND_EXTRA  (KEYS_BYTES + NOISE_TAG)

/* Plain data so that it can be embedded; holds secrets: noise_wipe it. */
struct noise {
	uint8_t chain[NOISE_HASH], hash[NOISE_HASH], key[NOISE_KEY];
	uint64_t nonce;
	bool initiator;
	const struct keys_identity *me;  /* borrowed until noise_wipe */
	uint8_t ephemeral[KEYS_BYTES];   /* ours, secret */
	struct keys_public peer, peer_ephemeral;
};

/* peer: the responder's static key; NULL for the responder itself. */
void noise_init(struct noise *n, bool initiator, const struct keys_identity *me,
	const struct keys_public *peer, const void *prologue, size_t prologue_size);
/* Overwrites every secret in it. */
void noise_wipe(struct noise *n);

/* The initiator's first message, size + NOISE_FIRST_EXTRA bytes at out. `ephemeral` is 32 fresh
 * random bytes. -EINVAL: the peer's key is not one (low order). */
int noise_write_first(struct noise *n, const uint8_t ephemeral[KEYS_BYTES], const void *payload,
	size_t size, uint8_t *out);
/* The responder reads it in two steps, so that whoever is not welcome costs one curve operation:
 * first who it is, into n->peer (not yet proven), then the payload, which proves it. -EBADMSG. */
int noise_read_first_key(struct noise *n, const uint8_t *message, size_t size);
int noise_read_first_payload(struct noise *n, const uint8_t *message, size_t size, uint8_t *payload);

/* The responder's answer, size + NOISE_SECOND_EXTRA bytes. */
int noise_write_second(struct noise *n, const uint8_t ephemeral[KEYS_BYTES], const void *payload,
	size_t size, uint8_t *out);
/* -EBADMSG leaves n as it was: a forged answer does not spoil the wait for the true one. */
int noise_read_second(struct noise *n, const uint8_t *message, size_t size, uint8_t *payload);

/* After the second message: our sending and receiving keys. Wipe them. */
void noise_split(const struct noise *n, uint8_t send[NOISE_KEY], uint8_t receive[NOISE_KEY]);

#endif
