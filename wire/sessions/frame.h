/* frame.h - what a link's frames look like. Pure; every byte is checked before it is believed.
 *
 * All begin 'S' 'P' version type; integers are little-endian.
 *
 *     HELLO     nonce 16, zeros 44                     (padded: no answer is longer)
 *     COOKIE    nonce 16, cookie 24
 *     INIT      session 4 (where the dialer wants its answers), cookie 24, Noise first message
 *     RESPONSE  session 4 (the dialer's), Noise second message
 *     DATA      session 4 (the receiver's), counter 8, ciphertext, tag 16
 *     REFUSE    reason 4, echo 16 (the HELLO's nonce; INIT: zeros; DATA: its session and counter)
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
#define FRAME_INIT_HEAD   (4 + 4 + FRAME_COOKIE) /* the handshake's prologue */
#define FRAME_OFFER       24                     /* payload of both Noise messages */
#define FRAME_INIT_SIZE   (FRAME_INIT_HEAD + NOISE_FIRST_EXTRA + FRAME_OFFER)
#define FRAME_RESPONSE_SIZE (4 + 4 + NOISE_SECOND_EXTRA + FRAME_OFFER)
#define FRAME_DATA_HEAD   16
#define FRAME_TAG         16
#define FRAME_REFUSE_SIZE 24
#define FRAME_LEAST_MOST  LINK_CHUNK_LEAST /* no end may offer to take less */

enum frame_type {
	FRAME_HELLO = 1,
	FRAME_COOKIE_ANSWER,
	FRAME_INIT,
	FRAME_RESPONSE,
	FRAME_DATA,
	FRAME_REFUSE
};

/* Pointers lead into the parsed bytes. */
struct frame {
	enum frame_type type;
	uint32_t session;         /* INIT, RESPONSE, DATA */
	uint64_t counter;         /* DATA */
	const uint8_t *nonce;     /* HELLO, COOKIE_ANSWER: FRAME_NONCE bytes; REFUSE: the echo */
	const uint8_t *cookie;    /* COOKIE_ANSWER, INIT */
	const uint8_t *body;      /* INIT, RESPONSE: Noise; DATA: ciphertext */
	size_t body_size;         /* DATA: without the tag */
	enum link_reason reason;  /* REFUSE */
};

/* 0, or the reason why it is none: LINK_MALFORMED, LINK_VERSION_OTHER. */
enum link_reason frame_parse(const uint8_t *bytes, size_t size, struct frame *out);

/* Each writes at out and returns the size written. */
size_t frame_put_hello(uint8_t *out, const uint8_t nonce[FRAME_NONCE]);
size_t frame_put_cookie(uint8_t *out, const uint8_t nonce[FRAME_NONCE],
	const uint8_t cookie[FRAME_COOKIE]);
size_t frame_put_init_head(uint8_t *out, uint32_t session, const uint8_t cookie[FRAME_COOKIE]);
size_t frame_put_response_head(uint8_t *out, uint32_t session);
size_t frame_put_data_head(uint8_t *out, uint32_t session, uint64_t counter);
size_t frame_put_refuse(uint8_t *out, enum link_reason reason, const uint8_t echo[FRAME_NONCE]);

/* What each end tells the other, sealed in the handshake. */
struct frame_offer {
	uint64_t instance;    /* of this end's record of the other: a new one remembers nothing */
	uint32_t frame_most;  /* longest frame it takes */
	uint32_t ciphers;     /* bit 1 << seal_cipher; the response holds exactly one */
	uint32_t session;     /* RESPONSE: where the listener wants DATA; INIT: 0 */
	uint32_t silence_ms;  /* it takes us for gone when it hears nothing for so long */
};
void frame_put_offer(uint8_t out[FRAME_OFFER], const struct frame_offer *offer);
int frame_get_offer(const uint8_t bytes[FRAME_OFFER], struct frame_offer *out); /* -EBADMSG */

/* Little-endian integers. */
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
