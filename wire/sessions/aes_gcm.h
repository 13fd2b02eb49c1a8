/* aes_gcm.h - AES-256-GCM by libcrypto, for the threads that seal and open large frames. libcrypto
 * uses wider instructions than libsodium, and gives the same bytes.
 *
 * Each thread has its own contexts. A context holds an expanded key only during a call.
 */
#ifndef WIRE_AES_GCM_H
#define WIRE_AES_GCM_H

#include <stddef.h>
#include <stdint.h>

#define AES_GCM_KEY   32
#define AES_GCM_NONCE 12
#define AES_GCM_TAG   16

struct aes_gcm; /* opaque: the contexts of one thread */

/* Returns NULL if there is no memory, or if libcrypto lacks the cipher. */
struct aes_gcm *aes_gcm_new(void); /* aes_gcm_free */
void aes_gcm_free(struct aes_gcm *g); /* NULL is allowed */

/* Key, nonce and header of a frame. The header is authenticated but not encrypted. */
struct aes_gcm_terms {
	const uint8_t *key, *nonce; /* AES_GCM_KEY bytes, and AES_GCM_NONCE bytes */
	const void *header;
	size_t header_size;
};

struct aes_gcm_piece {
	const uint8_t *data;
	size_t size;
};

/* Joins the pieces, encrypts them to out, and writes the tag after them. A piece may already lie
 * in `out`, at the offset at which its ciphertext is written. -ENOMEM: nothing was written. */
int aes_gcm_close(struct aes_gcm *g, const struct aes_gcm_terms *terms,
	const struct aes_gcm_piece *pieces, size_t n, uint8_t *out);
/* Decrypts `size` bytes in place. The tag follows these bytes. -EBADMSG: the bytes are forged,
 * and are now garbage. -ENOMEM: the bytes are unchanged. */
int aes_gcm_open(struct aes_gcm *g, const struct aes_gcm_terms *terms, uint8_t *data, size_t size);

#endif
