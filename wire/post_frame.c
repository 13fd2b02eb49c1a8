/* post_frame.c - see post_frame.h. */
#include "wire/post_frame.h"

#include <errno.h>
#include <string.h>

#include "wire/frame.h"

#define FLAG_GAP 1

int post_frame_parse(const uint8_t *bytes, size_t size, struct post_frame *out)
{
	if (size < POST_FRAME_HEAD || bytes[0] < POST_FRAME_CHUNK || bytes[0] > POST_FRAME_ACK ||
	    bytes[1] > FLAG_GAP)
		return -EBADMSG;
	if (bytes[2] != 0 || bytes[3] != 0 || frame_get_u32(bytes + 4) != 0 ||
	    frame_get_u32(bytes + 40) != 0)
		return -EBADMSG;
	struct post_frame f = {
		.kind = (enum post_frame_kind)bytes[0],
		.gap = bytes[1] == FLAG_GAP,
		.ack = frame_get_u64(bytes + 16),
		.chunk = {
			.number = frame_get_u64(bytes + 8),
			.total = frame_get_u64(bytes + 24),
			.offset = frame_get_u64(bytes + 32),
			.data = bytes + POST_FRAME_HEAD,
			.size = size - POST_FRAME_HEAD,
		},
	};
	if (f.kind == POST_FRAME_ACK && f.chunk.size != 0)
		return -EBADMSG;
	*out = f;
	return 0;
}

void post_frame_put_head(uint8_t out[POST_FRAME_HEAD], const struct post_frame *f)
{
	memset(out, 0, POST_FRAME_HEAD);
	out[0] = (uint8_t)f->kind;
	out[1] = f->gap ? FLAG_GAP : 0;
	frame_put_u64(out + 8, f->chunk.number);
	frame_put_u64(out + 16, f->ack);
	frame_put_u64(out + 24, f->chunk.total);
	frame_put_u64(out + 32, f->chunk.offset);
}
