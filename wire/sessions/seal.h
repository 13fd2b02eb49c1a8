/* seal.h - encrypts one direction of a session, and refuses repeated frames. Pure functions.
 *
 * The cipher is AES-256-GCM if both CPUs support it, otherwise XChaCha20-Poly1305. The nonce is the
 * 64-bit frame counter. A key encrypts at most SEAL_FRAMES_MOST frames and SEAL_BYTES_MOST bytes,
 * far less than is safe with either cipher. The dialer makes a new session when half of a limit is
 * reached. */
#ifndef WIRE_SEAL_H
#define WIRE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#include "wire/sessions/aes_gcm.h"

#define SEAL_TAG         16
#define SEAL_KEY         32
#define SEAL_FRAMES_MOST (UINT64_C(1) << 31)
#define SEAL_BYTES_MOST  (UINT64_C(1) << 42)

enum seal_cipher { SEAL_XCHACHA20 = 1, SEAL_AES256_GCM };
/* Returns true if this CPU has AES instructions. Call sodium_init first. */
bool seal_has_aes(void);

struct seal_key {
	enum seal_cipher cipher;
	uint8_t raw[SEAL_KEY];
	crypto_aead_aes256gcm_state aes; /* the expanded key, if the cipher is AES-256-GCM */
};

/* Derives the key of this cipher from `secret`. Different ciphers get different keys, so no key
 * is used with two ciphers. */
void seal_key_init(struct seal_key *k, enum seal_cipher cipher, const uint8_t secret[SEAL_KEY]);

/* Encrypts the size bytes at `data` in place, and writes the tag after them. The header is
 * authenticated too. */
void seal_close(const struct seal_key *k, uint64_t counter, const void *header, size_t header_size,
	uint8_t *data, size_t size);
/* Decrypts the size bytes at `data` in place. The tag follows them. -EBADMSG: the frame is forged,
 * and the bytes are garbage. */
int seal_open(const struct seal_key *k, uint64_t counter, const void *header, size_t header_size,
	uint8_t *data, size_t size);

/* Encrypt and decrypt with libcrypto, whose AES is twice as fast for large frames. seal_close_by
 * joins the pieces and encrypts them to `data`. A piece may already lie in `data`, at the offset
 * at which its ciphertext is written. -ENOTSUP: aes is NULL, or the cipher is not AES-256-GCM;
 * -ENOMEM. After these two errors nothing has changed. */
int seal_close_by(struct aes_gcm *aes, const struct seal_key *k, uint64_t counter,
	const void *header, size_t header_size, const struct aes_gcm_piece *pieces, size_t n,
	uint8_t *data);
int seal_open_by(struct aes_gcm *aes, const struct seal_key *k, uint64_t counter,
	const void *header, size_t header_size, uint8_t *data, size_t size);

/* Window of the newest 65536 counters, with a bit for each counter. The bit is set if the counter
 * was seen. The receiver refuses a counter that was seen, or that is older than the window. The
 * window is wide, because frames on one connection may arrive seconds later than frames on
 * another connection. */
#define SEAL_WINDOW 65536
struct seal_window {
	uint64_t next; /* the highest counter that was seen, plus 1; 0: none was seen */
	uint64_t seen[SEAL_WINDOW / 64];
};
/* Returns true if the counter was not seen and is not older than the window. */
bool seal_window_fresh(const struct seal_window *w, uint64_t counter);
/* Marks a counter as seen. Call this function only after seal_open has accepted the frame. */
void seal_window_mark(struct seal_window *w, uint64_t counter);

#endif
