/* post_frame.c - writes and parses the frames that posts exchange (layout in post_frame.h).
 * Parsing is a pure function, so that tests and fuzzers can give it any bytes. */
#include "wire/delivery/post_frame.h"

#include <errno.h>
#include <string.h>

#include "wire/sessions/frame.h"

/* Reads the ranges of an ACK. Ranges must ascend and must not overlap, so that the work of
 * reading them is limited. */
static int parse_ranges(const uint8_t *bytes, struct post_frame *f)
{
	uint64_t end = 0;
	for (unsigned i = 0; i < f->n_ranges; i++) {
		const uint32_t from = frame_get_u32(bytes + 8 * i);
		const uint32_t length = frame_get_u32(bytes + 8 * i + 4);
		if (from <= end || length == 0 || length > CHANNEL_AHEAD || from > CHANNEL_AHEAD)
			return -EBADMSG;
		end = (uint64_t)from + length;
		f->ranges[i] = (struct channel_range){from, length};
	}
	return 0;
}

int post_frame_parse(const uint8_t *bytes, size_t size, struct post_frame *out)
{
	if (size < POST_FRAME_HEAD || bytes[0] < POST_FRAME_CHUNK || bytes[0] > POST_FRAME_PONG ||
	    bytes[1] >= POST_CLASSES || bytes[2] > CHANNEL_RANGES || bytes[3] != 0 ||
	    frame_get_u64(bytes + 36) != 0)
		return -EBADMSG;
	out->kind = (enum post_frame_kind)bytes[0];
	out->class = (enum post_class)bytes[1];
	out->n_ranges = bytes[2];
	out->ack = frame_get_u64(bytes + 16);
	out->chunk = (struct channel_chunk){
		.number = frame_get_u64(bytes + 8),
		.index = frame_get_u32(bytes + 4),
		.total = frame_get_u64(bytes + 24),
		.chunks = frame_get_u32(bytes + 32),
		.data = bytes + POST_FRAME_HEAD,
		.size = size - POST_FRAME_HEAD,
	};
	if (out->kind == POST_FRAME_PING ? out->chunk.size > POST_PROBE_LARGE
					 : out->kind >= POST_FRAME_ACK &&
						   out->chunk.size != 8u * out->n_ranges)
		return -EBADMSG;
	if (out->kind != POST_FRAME_ACK)
		return out->n_ranges == 0 ? 0 : -EBADMSG;
	return parse_ranges(out->chunk.data, out);
}

size_t post_frame_put_head(uint8_t *out, const struct post_frame *f)
{
	const unsigned n = f->kind == POST_FRAME_ACK ? f->n_ranges : 0;
	memset(out, 0, POST_FRAME_HEAD);
	out[0] = (uint8_t)f->kind;
	out[1] = (uint8_t)f->class;
	out[2] = (uint8_t)n;
	frame_put_u32(out + 4, f->chunk.index);
	frame_put_u64(out + 8, f->chunk.number);
	frame_put_u64(out + 16, f->ack);
	frame_put_u64(out + 24, f->chunk.total);
	frame_put_u32(out + 32, f->chunk.chunks);
	for (unsigned i = 0; i < n; i++) {
		frame_put_u32(out + POST_FRAME_HEAD + 8 * i, f->ranges[i].from);
		frame_put_u32(out + POST_FRAME_HEAD + 8 * i + 4, f->ranges[i].length);
	}
	return POST_FRAME_HEAD + 8u * n;
}
