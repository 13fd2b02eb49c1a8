/* frame.c - writes and parses the frames of a link (layouts in frame.h).
 * Parsing is separate from the links so that a fuzzer can reach it without sockets. */
#include "wire/sessions/frame.h"

#include <errno.h>
#include <string.h>

static void put_head(uint8_t *out, enum frame_type type)
{
	out[0] = 'S';
	out[1] = 'P';
	out[2] = LINK_VERSION;
	out[3] = (uint8_t)type;
}

size_t frame_put_hello(uint8_t *out, const uint8_t nonce[FRAME_NONCE])
{
	memset(out, 0, FRAME_HELLO_SIZE);
	put_head(out, FRAME_HELLO);
	memcpy(out + 4, nonce, FRAME_NONCE);
	return FRAME_HELLO_SIZE;
}

size_t frame_put_cookie(uint8_t *out, const uint8_t nonce[FRAME_NONCE],
	const uint8_t cookie[FRAME_COOKIE])
{
	put_head(out, FRAME_COOKIE_ANSWER);
	memcpy(out + 4, nonce, FRAME_NONCE);
	memcpy(out + 4 + FRAME_NONCE, cookie, FRAME_COOKIE);
	return FRAME_COOKIE_SIZE;
}

size_t frame_put_init_head(uint8_t *out, uint32_t session, const uint8_t cookie[FRAME_COOKIE])
{
	put_head(out, FRAME_INIT);
	frame_put_u32(out + 4, session);
	memcpy(out + 8, cookie, FRAME_COOKIE);
	return FRAME_INIT_HEAD;
}

size_t frame_put_response_head(uint8_t *out, uint32_t session)
{
	put_head(out, FRAME_RESPONSE);
	frame_put_u32(out + 4, session);
	return 8;
}

size_t frame_put_data_head(uint8_t *out, uint32_t session, uint64_t counter)
{
	put_head(out, FRAME_DATA);
	frame_put_u32(out + 4, session);
	frame_put_u64(out + 8, counter);
	return FRAME_DATA_HEAD;
}

size_t frame_put_refuse(uint8_t *out, enum link_reason reason, const uint8_t echo[FRAME_NONCE])
{
	put_head(out, FRAME_REFUSE);
	frame_put_u32(out + 4, (uint32_t)reason);
	memcpy(out + 8, echo, FRAME_NONCE);
	return FRAME_REFUSE_SIZE;
}

static enum link_reason parse_refuse(const uint8_t *bytes, size_t size, struct frame *f)
{
	if (size != FRAME_REFUSE_SIZE)
		return LINK_MALFORMED;
	uint32_t reason = frame_get_u32(bytes + 4);
	if (reason == 0 || reason >= LINK_REASON_COUNT)
		return LINK_MALFORMED;
	f->reason = (enum link_reason)reason;
	f->nonce = bytes + 8;
	return LINK_REASON_NONE;
}

/* Checks the size of the frame by its type, and sets the pointers to its parts. The caller checks
 * what the parts contain. */
static enum link_reason parse_typed(const uint8_t *bytes, size_t size, struct frame *f)
{
	switch (f->type) {
	case FRAME_HELLO:
		if (size != FRAME_HELLO_SIZE)
			return LINK_MALFORMED;
		f->nonce = bytes + 4;
		return LINK_REASON_NONE;
	case FRAME_COOKIE_ANSWER:
		if (size != FRAME_COOKIE_SIZE)
			return LINK_MALFORMED;
		f->nonce = bytes + 4;
		f->cookie = bytes + 4 + FRAME_NONCE;
		return LINK_REASON_NONE;
	case FRAME_INIT:
		if (size != FRAME_INIT_SIZE)
			return LINK_MALFORMED;
		f->session = frame_get_u32(bytes + 4);
		f->cookie = bytes + 8;
		f->body = bytes + FRAME_INIT_HEAD;
		f->body_size = size - FRAME_INIT_HEAD;
		return LINK_REASON_NONE;
	case FRAME_RESPONSE:
		if (size != FRAME_RESPONSE_SIZE)
			return LINK_MALFORMED;
		f->session = frame_get_u32(bytes + 4);
		f->body = bytes + 8;
		f->body_size = size - 8;
		return LINK_REASON_NONE;
	case FRAME_DATA:
		if (size < FRAME_DATA_HEAD + FRAME_TAG)
			return LINK_MALFORMED;
		f->session = frame_get_u32(bytes + 4);
		f->counter = frame_get_u64(bytes + 8);
		f->body = bytes + FRAME_DATA_HEAD;
		f->body_size = size - FRAME_DATA_HEAD - FRAME_TAG;
		return LINK_REASON_NONE;
	case FRAME_REFUSE:
		return parse_refuse(bytes, size, f);
	}
	return LINK_MALFORMED;
}

enum link_reason frame_parse(const uint8_t *bytes, size_t size, struct frame *out)
{
	struct frame f = {0};
	if (size < 4 || bytes[0] != 'S' || bytes[1] != 'P')
		return LINK_MALFORMED;
	/* All versions have the same HELLO and REFUSE. A listener can therefore refuse a HELLO of
	 * another version, and the sender of the HELLO understands the REFUSE. */
	if (bytes[2] != LINK_VERSION && bytes[3] != FRAME_REFUSE) {
		out->type = bytes[3] == FRAME_HELLO && size == FRAME_HELLO_SIZE ? FRAME_HELLO : 0;
		out->nonce = bytes + 4;
		return LINK_VERSION_OTHER;
	}
	f.type = (enum frame_type)bytes[3];
	enum link_reason reason = parse_typed(bytes, size, &f);
	if (reason == LINK_REASON_NONE)
		*out = f;
	return reason;
}

void frame_put_offer(uint8_t out[FRAME_OFFER], const struct frame_offer *offer)
{
	memset(out, 0, FRAME_OFFER);
	frame_put_u64(out, offer->instance);
	frame_put_u32(out + 8, offer->frame_most);
	frame_put_u32(out + 12, offer->ciphers);
	frame_put_u32(out + 16, offer->session);
	frame_put_u32(out + 20, offer->silence_ms);
}

int frame_get_offer(const uint8_t bytes[FRAME_OFFER], struct frame_offer *out)
{
	struct frame_offer o = {
		.instance = frame_get_u64(bytes),
		.frame_most = frame_get_u32(bytes + 8),
		.ciphers = frame_get_u32(bytes + 12),
		.session = frame_get_u32(bytes + 16),
		.silence_ms = frame_get_u32(bytes + 20),
	};
	if (o.instance == 0 || o.frame_most < FRAME_LEAST_MOST || o.silence_ms == 0)
		return -EBADMSG;
	*out = o;
	return 0;
}
