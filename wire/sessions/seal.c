/* seal.c - encrypts the frames of a session, and refuses repeated frames. Without this refusal, an
 * attacker could record a frame and send it to its receiver again. */
#include "wire/sessions/seal.h"

#include <errno.h>
#include <string.h>

bool seal_has_aes(void)
{
	return crypto_aead_aes256gcm_is_available() == 1;
}

void seal_key_init(struct seal_key *k, enum seal_cipher cipher, const uint8_t secret[SEAL_KEY])
{
	const char *label = cipher == SEAL_AES256_GCM ? "skippipe aes256-gcm"
						      : "skippipe xchacha20-poly1305";
	k->cipher = cipher;
	crypto_generichash(k->raw, sizeof(k->raw), (const uint8_t *)label, strlen(label), secret,
		SEAL_KEY);
	if (cipher == SEAL_AES256_GCM)
		crypto_aead_aes256gcm_beforenm(&k->aes, k->raw);
}

/* Writes a frame's nonce: zeros, and then the counter in little-endian order. */
static void nonce_of(uint8_t *nonce, size_t size, uint64_t counter)
{
	memset(nonce, 0, size);
	for (size_t i = 0; i < 8; i++)
		nonce[size - 8 + i] = (uint8_t)(counter >> (8 * i));
}

void seal_close(const struct seal_key *k, uint64_t counter, const void *header, size_t header_size,
	uint8_t *data, size_t size)
{
	uint8_t nonce[24];
	if (k->cipher == SEAL_AES256_GCM) {
		nonce_of(nonce, 12, counter);
		crypto_aead_aes256gcm_encrypt_detached_afternm(data, data + size, NULL, data, size,
			header, header_size, NULL, nonce, &k->aes);
	} else {
		nonce_of(nonce, 24, counter);
		crypto_aead_xchacha20poly1305_ietf_encrypt_detached(data, data + size, NULL, data,
			size, header, header_size, NULL, nonce, k->raw);
	}
}

int seal_open(const struct seal_key *k, uint64_t counter, const void *header, size_t header_size,
	uint8_t *data, size_t size)
{
	uint8_t nonce[24];
	int rc;
	if (k->cipher == SEAL_AES256_GCM) {
		nonce_of(nonce, 12, counter);
		rc = crypto_aead_aes256gcm_decrypt_detached_afternm(data, NULL, data, size,
			data + size, header, header_size, nonce, &k->aes);
	} else {
		nonce_of(nonce, 24, counter);
		rc = crypto_aead_xchacha20poly1305_ietf_decrypt_detached(data, NULL, data, size,
			data + size, header, header_size, nonce, k->raw);
	}
	return rc == 0 ? 0 : -EBADMSG;
}

int seal_close_by(struct aes_gcm *aes, const struct seal_key *k, uint64_t counter,
	const void *header, size_t header_size, const struct aes_gcm_piece *pieces, size_t n,
	uint8_t *data)
{
	uint8_t nonce[AES_GCM_NONCE];
	const struct aes_gcm_terms terms = {k->raw, nonce, header, header_size};
	if (aes == NULL || k->cipher != SEAL_AES256_GCM)
		return -ENOTSUP;
	nonce_of(nonce, sizeof(nonce), counter);
	return aes_gcm_close(aes, &terms, pieces, n, data);
}

int seal_open_by(struct aes_gcm *aes, const struct seal_key *k, uint64_t counter,
	const void *header, size_t header_size, uint8_t *data, size_t size)
{
	uint8_t nonce[AES_GCM_NONCE];
	const struct aes_gcm_terms terms = {k->raw, nonce, header, header_size};
	if (aes == NULL || k->cipher != SEAL_AES256_GCM)
		return -ENOTSUP;
	nonce_of(nonce, sizeof(nonce), counter);
	return aes_gcm_open(aes, &terms, data, size);
}

static uint64_t window_bit(uint64_t counter)
{
	return UINT64_C(1) << (counter % 64);
}

static size_t window_word(uint64_t counter)
{
	return (size_t)(counter / 64 % (SEAL_WINDOW / 64));
}

bool seal_window_fresh(const struct seal_window *w, uint64_t counter)
{
	if (counter >= w->next)
		return true;
	/* A moving window clears whole words of bits. The window therefore covers one word less
	 * than SEAL_WINDOW. */
	if (w->next - counter > SEAL_WINDOW - 64)
		return false;
	return (w->seen[window_word(counter)] & window_bit(counter)) == 0;
}

void seal_window_mark(struct seal_window *w, uint64_t counter)
{
	if (counter >= w->next) {
		uint64_t last = w->next == 0 ? 0 : (w->next - 1) / 64;
		uint64_t to = counter / 64;
		if (to - last >= SEAL_WINDOW / 64)
			memset(w->seen, 0, sizeof(w->seen));
		else
			for (uint64_t i = last + 1; i <= to; i++)
				w->seen[i % (SEAL_WINDOW / 64)] = 0;
		w->next = counter + 1;
	}
	w->seen[window_word(counter)] |= window_bit(counter);
}
