/* libFuzzer: gives bytes to the parsers of wire/ that need no sockets. These parse frames,
 * offers, both Noise messages, and the frames of posts, whose chunks go to a channel. The first
 * byte chooses the parser. */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "wire/delivery/channel.h"
#include "wire/sessions/frame.h"
#include "wire/identity.h"
#include "wire/sessions/noise.h"
#include "wire/delivery/post_frame.h"

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

/* Gives the channel a chunk that has its own buffer. */
static void take_chunk(struct channel *c, struct channel_chunk *k)
{
	uint8_t *buffer = malloc(k->size + 1);
	expect(buffer != NULL);
	memcpy(buffer, k->data, k->size);
	k->data = k->owner = buffer;
	if (channel_take(c, k) != CHANNEL_KEPT)
		free(buffer);
}

static void read_message(const struct channel_message *m)
{
	uint8_t *bytes = m->data != NULL ? m->data : malloc(m->size + 1);
	expect(bytes != NULL);
	if (m->data == NULL)
		pieces_join(&m->pieces, 0, bytes);
	expect(m->size == 0 || bytes[0] + (size_t)bytes[m->size - 1] < 1000);
	for (uint32_t i = 0; i < m->pieces.n; i++)
		free(m->pieces.list[i].owner);
	free(m->pieces.list);
	free(bytes);
}

/* Parses a sequence of lengths and frames, as several peers would send them. */
static void read_stream(const uint8_t *data, size_t size)
{
	struct channel_memory memory = {.most_bytes = 4096, .peers = 1};
	size_t assembling = 0, retained = 0;
	struct flow flow;
	struct channel *c;
	const bool apart = size > 0 && data[0] % 2;
	const struct channel_options o = { .message_most_bytes = 4096,
					   .retained_most_bytes = 4096,
					   .memory = &memory,
					   .peer_bytes = &assembling,
					   .retained_bytes = &retained,
					   .alloc = get,
					   .release = free,
					   .piece_least_bytes = apart ? 3 : 0,
					   .drop = free,
					   .flow = &flow };
	const struct channel_cut cut = {7, size % 2 == 0 ? 1 : 8};
	const struct channel_part part = {"some words to send", 18};
	struct channel_chunk out;
	flow_init(&flow);
	c = channel_new(&o);
	channel_start(c, &cut);
	(void)channel_queue(c, &part, 1, 0);
	int64_t now = 0;
	while (channel_next(c, &out))
		channel_sent(c, &out, now);
	while (size > 0) {
		size_t n = data[0] < size - 1 ? data[0] : size - 1;
		struct post_frame f;
		struct channel_message m;
		if (post_frame_parse(data + 1, n, &f) == 0) {
			channel_acked(c, f.ack, f.ranges, f.n_ranges, now++);
			(void)channel_tick(c, now += 1000);
			if (f.kind == POST_FRAME_CHUNK)
				take_chunk(c, &f.chunk);
			while (channel_give(c, &m))
				read_message(&m);
			struct channel_range ranges[CHANNEL_RANGES];
			expect((channel_ranges(c, ranges) > 0) == channel_holes(c));
			while (channel_next(c, &out))
				channel_sent(c, &out, now);
		}
		data += n + 1;
		size -= n + 1;
	}
	expect(assembling <= 4096 && memory.used_bytes == assembling);
	channel_free(c);
	expect(assembling == 0 && retained == 0 && flow.under_way == 0);
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
