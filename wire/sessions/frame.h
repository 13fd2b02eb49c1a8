/* frame.h - the layout of a link's frames. Pure functions. Every byte is checked before use.
 *
 * Each frame begins with four bytes: 'S', 'P', version, type. Integers are little-endian. The other
 * fields, with their sizes in bytes:
 *
 *     HELLO     nonce 16, zeros 44      (padded, so that no answer is longer than the question)
 *     COOKIE    nonce 16, cookie 24
 *     INIT      session 4 (the dialer's number for it), cookie 24, first Noise message
 *     RESPONSE  session 4 (the dialer's number for it), second Noise message
 *     DATA      session 4 (the receiver's number for it), counter 8, ciphertext, tag 16
 *     REFUSE    reason 4, echo 16 (of a HELLO: its nonce; of an INIT: zeros; of a DATA frame: its
 *               session and counter)
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "wire/sessions/link.h"
#include "wire/sessions/noise.h"

#define FRAME_NONCE       16
#define FRAME_COOKIE      24
#define FRAME_HELLO_SIZE  64
#define FRAME_COOKIE_SIZE (4 + FRAME_NONCE + FRAME_COOKIE)
/* Bytes of an INIT before its Noise message. These bytes are the prologue of the handshake, which
 * therefore authenticates them. */
#define FRAME_INIT_HEAD (4 + 4 + FRAME_COOKIE)
/* Bytes of a struct frame_offer, the payload of both Noise messages. */
#define FRAME_OFFER 24
#define FRAME_INIT_SIZE   (FRAME_INIT_HEAD + NOISE_FIRST_EXTRA + FRAME_OFFER)
#define FRAME_RESPONSE_SIZE (4 + 4 + NOISE_SECOND_EXTRA + FRAME_OFFER)
#define FRAME_DATA_HEAD   16
#define FRAME_TAG         16
#define FRAME_REFUSE_SIZE 24
#define FRAME_LEAST_MOST LINK_CHUNK_LEAST /* smallest value of frame_most that an end may offer */

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_COOKIE_ANSWER,
	FRAME_INIT,
	FRAME_RESPONSE,
	FRAME_DATA,
	FRAME_REFUSE
};

/* A parsed frame. Its pointers point into the parsed bytes. */
struct frame {
	enum frame_type type;
	uint32_t session; /* INIT, RESPONSE, DATA: number of the session */
	uint64_t counter; /* DATA: number of the frame */
	/* HELLO, COOKIE_ANSWER: the nonce, FRAME_NONCE bytes; REFUSE: the echo. */
	const uint8_t *nonce;
	const uint8_t *cookie;    /* COOKIE_ANSWER, INIT: the cookie */
	const uint8_t *body;      /* INIT, RESPONSE: the Noise message; DATA: the ciphertext */
	size_t body_size;         /* DATA: size of the ciphertext, without the tag */
	enum link_reason reason;  /* REFUSE: why the frame was refused */
};

/* Parses a frame. Returns 0, or the reason to refuse the frame: LINK_MALFORMED or
 * LINK_VERSION_OTHER. */
enum link_reason frame_parse(const uint8_t *bytes, size_t size, struct frame *out);

/* Each function below writes one frame, or its head, to `out`, and returns the number of bytes
 * written. */
size_t frame_put_hello(uint8_t *out, const uint8_t nonce[FRAME_NONCE]);
size_t frame_put_cookie(uint8_t *out, const uint8_t nonce[FRAME_NONCE],
	const uint8_t cookie[FRAME_COOKIE]);
size_t frame_put_init_head(uint8_t *out, uint32_t session, const uint8_t cookie[FRAME_COOKIE]);
size_t frame_put_response_head(uint8_t *out, uint32_t session);
size_t frame_put_data_head(uint8_t *out, uint32_t session, uint64_t counter);
size_t frame_put_refuse(uint8_t *out, enum link_reason reason, const uint8_t echo[FRAME_NONCE]);

/* The values that each end announces to the other, encrypted in the handshake. */
struct frame_offer {
	/* Random number that identifies this end's process. A restarted process has another
	 * number. */
	uint64_t instance;
	uint32_t frame_most;  /* longest frame that this end accepts, bytes */
	/* Ciphers that this end supports, as bits 1 << seal_cipher. A RESPONSE has only the
	 * chosen cipher. */
	uint32_t ciphers;
	uint32_t session;     /* RESPONSE: number that the listener gave the session; INIT: 0 */
	uint32_t silence_ms;  /* time without a frame after which this end drops the session */
};
void frame_put_offer(uint8_t out[FRAME_OFFER], const struct frame_offer *offer);
/* Reads an offer. -EBADMSG: a value in the offer is out of range. */
int frame_get_offer(const uint8_t bytes[FRAME_OFFER], struct frame_offer *out);

/* Read and write little-endian integers. */
static inline void frame_put_u32(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> (8 * i));
}
static inline void frame_put_u64(uint8_t *to, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(v >> (8 * i));
}
static inline uint32_t frame_get_u32(const uint8_t *from)
{
	return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
	       (uint32_t)from[3] << 24;
}
static inline uint64_t frame_get_u64(const uint8_t *from)
{
	return (uint64_t)frame_get_u32(from) | (uint64_t)frame_get_u32(from + 4) << 32;
}

#endif
