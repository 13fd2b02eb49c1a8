/* post_frame.h - what a post writes inside a sealed frame. Pure.
 *
 *     kind 1, flags 1, zero 2, zero 4, number 8, ack 8, total 8, offset 8, zero 4, then the chunk
 *
 * All little-endian. 44 bytes, so that the chunk lies on a 16-byte boundary of nanomsg's buffer.
 */
#ifndef WIRE_POST_FRAME_H
#define WIRE_POST_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/channel.h"

#define POST_FRAME_HEAD 44

enum post_frame_kind { POST_FRAME_CHUNK = 1, POST_FRAME_LOSSY, POST_FRAME_ACK };

struct post_frame {
	enum post_frame_kind kind;
	bool gap;          /* something after `ack` has arrived */
	uint64_t ack;      /* the number expected next from the reader */
	struct channel_chunk chunk; /* CHUNK, LOSSY */
};

int post_frame_parse(const uint8_t *bytes, size_t size, struct post_frame *out); /* -EBADMSG */
void post_frame_put_head(uint8_t out[POST_FRAME_HEAD], const struct post_frame *f);

#endif
