/* aes_gcm.c - AES-256-GCM by libcrypto. libcrypto must not read the system's configuration, which
 * could replace the cipher. */
#include "wire/sessions/aes_gcm.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/alloc.h"

struct aes_gcm {
	OSSL_LIB_CTX *library; /* library context that no other thread uses */
	EVP_CIPHER *cipher;
	EVP_CIPHER_CTX *context;
};

struct aes_gcm *aes_gcm_new(void)
{
	/* NO_ATEXIT is needed, because an exit handler would free memory that threads still use
	 * when the process exits. */
	if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
		return NULL;
	struct aes_gcm *g = alloc_new(sizeof(*g));
	g->library = OSSL_LIB_CTX_new();
	if (g->library != NULL)
		g->cipher = EVP_CIPHER_fetch(g->library, "AES-256-GCM", NULL);
	g->context = EVP_CIPHER_CTX_new();
	if (g->cipher == NULL || g->context == NULL) {
		aes_gcm_free(g);
		return NULL;
	}
	return g;
}

void aes_gcm_free(struct aes_gcm *g)
{
	if (g == NULL)
		return;
	EVP_CIPHER_CTX_free(g->context);
	EVP_CIPHER_free(g->cipher);
	OSSL_LIB_CTX_free(g->library);
	free(g);
}

/* Sets key and nonce. Only this step allocates memory, so no later step can fail for lack of
 * memory. */
static int begin(struct aes_gcm *g, const struct aes_gcm_terms *t, int encrypts)
{
	int done;
	assert(t->header_size <= INT_MAX);
	if (EVP_CipherInit_ex2(g->context, g->cipher, t->key, t->nonce, encrypts, NULL) == 1 &&
	    EVP_CipherUpdate(g->context, NULL, &done, t->header, (int)t->header_size) == 1)
		return 0;
	EVP_CIPHER_CTX_reset(g->context);
	return -ENOMEM;
}

static void convert(struct aes_gcm *g, uint8_t *out, const uint8_t *in, size_t size)
{
	int done = 0;
	assert(size <= INT_MAX);
	const int rc = EVP_CipherUpdate(g->context, out, &done, in, (int)size);
	assert(rc == 1 && (size_t)done == size);
	(void)rc;
}

int aes_gcm_close(struct aes_gcm *g, const struct aes_gcm_terms *terms,
	const struct aes_gcm_piece *pieces, size_t n, uint8_t *out)
{
	int done;
	if (begin(g, terms, 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (pieces[i].size > 0)
			convert(g, out, pieces[i].data, pieces[i].size);
		out += pieces[i].size;
	}
	int rc = EVP_CipherFinal_ex(g->context, out, &done);
	assert(rc == 1);
	rc = EVP_CIPHER_CTX_ctrl(g->context, EVP_CTRL_AEAD_GET_TAG, AES_GCM_TAG, out);
	assert(rc == 1);
	(void)rc;
	EVP_CIPHER_CTX_reset(g->context); /* wipes the key */
	return 0;
}

int aes_gcm_open(struct aes_gcm *g, const struct aes_gcm_terms *terms, uint8_t *data, size_t size)
{
	int done;
	if (begin(g, terms, 0) < 0)
		return -ENOMEM;
	if (size > 0)
		convert(g, data, data, size);
	int rc = EVP_CIPHER_CTX_ctrl(g->context, EVP_CTRL_AEAD_SET_TAG, AES_GCM_TAG, data + size);
	assert(rc == 1);
	rc = EVP_CipherFinal_ex(g->context, data + size, &done);
	EVP_CIPHER_CTX_reset(g->context); /* wipes the key */
	return rc == 1 ? 0 : -EBADMSG;
}
