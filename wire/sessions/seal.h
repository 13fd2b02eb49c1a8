/* seal.h - one direction of a session: a key, a counter, and what has been seen. Pure.
 *
 * AES-256-GCM where both CPUs have it, else XChaCha20-Poly1305. The 64-bit counter is the nonce; a
 * key is never used after SEAL_FRAMES_MOST frames or SEAL_BYTES_MOST bytes (far below what either
 * cipher allows): long before, the dialer makes a new session.
 */
#ifndef WIRE_SEAL_H
#define WIRE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#define SEAL_TAG         16
#define SEAL_KEY         32
#define SEAL_FRAMES_MOST (UINT64_C(1) << 31)
#define SEAL_BYTES_MOST  (UINT64_C(1) << 42)

enum seal_cipher { SEAL_XCHACHA20 = 1, SEAL_AES256_GCM };
bool seal_has_aes(void); /* after sodium_init */

struct seal_key {
	enum seal_cipher cipher;
	union {
		uint8_t raw[SEAL_KEY];
		crypto_aead_aes256gcm_state aes; /* expanded */
	} key;
};

/* Derives the cipher's own key from `secret`, so that one secret never serves two ciphers. */
void seal_key_init(struct seal_key *k, enum seal_cipher cipher, const uint8_t secret[SEAL_KEY]);

/* Encrypts size bytes at data in place; the tag goes to data + size. */
void seal_close(const struct seal_key *k, uint64_t counter, const void *header, size_t header_size,
	uint8_t *data, size_t size);
/* Decrypts in place size bytes, followed by their tag. -EBADMSG, and the bytes are then garbage. */
int seal_open(const struct seal_key *k, uint64_t counter, const void *header, size_t header_size,
	uint8_t *data, size_t size);

/* The last 65536 counters: what was seen, and everything older, is refused. So many, because frames
 * by one of several connections may be seconds behind those by another. */
#define SEAL_WINDOW 65536
struct seal_window {
	uint64_t next; /* one above the highest seen */
	uint64_t seen[SEAL_WINDOW / 64];
};
bool seal_window_fresh(const struct seal_window *w, uint64_t counter);
/* Only after seal_open has proved the frame. */
void seal_window_mark(struct seal_window *w, uint64_t counter);

#endif
