/* Everything in wire that reads bytes from outside, without sockets: frames, offers, both Noise
 * messages, what posts write inside sealed frames, and a channel fed with what came of that.
 * The first byte says which. */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "wire/channel.h"
#include "wire/frame.h"
#include "wire/identity.h"
#include "wire/noise.h"
#include "wire/post_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static void read_frame(const uint8_t *data, size_t size)
{
	struct frame f;
	if (frame_parse(data, size, &f) != LINK_REASON_NONE)
		return;
	const uint8_t *end = data + size;
	expect(f.nonce == NULL || (f.nonce >= data && f.nonce + FRAME_NONCE <= end));
	expect(f.cookie == NULL || (f.cookie >= data && f.cookie + FRAME_COOKIE <= end));
	expect(f.body == NULL || (f.body >= data && f.body + f.body_size <= end));
}

static void read_handshake(const uint8_t *data, size_t size)
{
	static struct keys_identity me = {.secret = {1}};
	struct noise responder, initiator;
	uint8_t payload[256], first[NOISE_FIRST_EXTRA];
	static const uint8_t ephemeral[KEYS_BYTES] = {9};
	if (size > sizeof(payload))
		return;
	crypto_scalarmult_base(me.public.bytes, me.secret);
	noise_init(&responder, false, &me, NULL, "p", 1);
	if (noise_read_first_key(&responder, data, size) == 0)
		(void)noise_read_first_payload(&responder, data, size, payload);
	noise_init(&initiator, true, &me, &me.public, "p", 1);
	expect(noise_write_first(&initiator, ephemeral, NULL, 0, first) == 0);
	(void)noise_read_second(&initiator, data, size, payload);
}

static uint8_t *get(size_t size)
{
	return malloc(size);
}

/* A row of [length, frame] as one peer after another would send them. */
static void read_stream(const uint8_t *data, size_t size)
{
	size_t assembling = 0;
	struct channel *c;
	const struct channel_options o = {.message_most_bytes = 4096, .retained_most_bytes = 4096,
		.window_bytes = 4096, .window_most_bytes = 4096, .assembling_bytes = &assembling,
		.assembling_most_bytes = 4096, .alloc = get, .release = free};
	const struct channel_part part = {"some words to send", 18};
	struct channel_chunk out;
	if (channel_new(&c, &o) < 0)
		return;
	channel_start(c, 7);
	(void)channel_queue(c, &part, 1);
	int64_t now = 0;
	while (channel_next(c, &out))
		channel_sent(c, &out, now);
	while (size > 0) {
		size_t n = data[0] < size - 1 ? data[0] : size - 1;
		struct post_frame f;
		uint8_t *message = NULL;
		if (post_frame_parse(data + 1, n, &f) == 0) {
			channel_acked(c, f.ack, f.gap, now++);
			enum channel_taken taken = channel_take(c, &f.chunk, &message);
			expect((taken == CHANNEL_COMPLETE) == (message != NULL));
			if (message != NULL)
				expect(message[0] + (size_t)message[f.chunk.total - 1] < 1000);
			free(message);
			while (channel_next(c, &out))
				channel_sent(c, &out, now);
		}
		data += n + 1;
		size -= n + 1;
	}
	expect(assembling <= 4096);
	channel_free(c);
	expect(assembling == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || sodium_init() < 0)
		return 0;
	uint8_t which = data[0];
	data++;
	size--;
	switch (which % 4) {
	case 0:
		read_frame(data, size);
		break;
	case 1:
		read_handshake(data, size);
		break;
	case 2:
		read_stream(data, size);
		break;
	default:
		if (size >= FRAME_OFFER) {
			struct frame_offer offer;
			if (frame_get_offer(data, &offer) == 0)
				expect(offer.instance != 0 && offer.frame_most >= FRAME_LEAST_MOST);
		}
		break;
	}
	return 0;
}
