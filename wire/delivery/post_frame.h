/* post_frame.h - what a post writes inside a sealed frame. Pure.
 *
 *     kind 1, class 1, ranges 1, zero 1, index 4, number 8, ack 8, total 8, chunks 4, zero 8, then
 *     CHUNK, LOSSY: the content
 *     ACK: ranges times { from 4, length 4 }, ascending and apart
 *
 * All little-endian. 44 bytes, so that the chunk lies on a 16-byte boundary of nanomsg's buffer.
 * CHUNK and ACK acknowledge what came in their class; a CHUNK has no ranges.
 */
#ifndef WIRE_POST_FRAME_H
#define WIRE_POST_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/delivery/channel.h"
#include "wire/post.h"

#define POST_FRAME_HEAD 44

/* PING and PONG carry a time of the one who pings, as the number. */
enum post_frame_kind {
	POST_FRAME_CHUNK = 1, POST_FRAME_LOSSY, POST_FRAME_ACK, POST_FRAME_PING, POST_FRAME_PONG
};

struct post_frame {
	enum post_frame_kind kind;
	enum post_class class;
	uint64_t ack;      /* the number expected next from the reader */
	unsigned n_ranges;
	struct channel_range ranges[CHANNEL_RANGES];
	struct channel_chunk chunk; /* CHUNK, LOSSY */
};

int post_frame_parse(const uint8_t *bytes, size_t size, struct post_frame *out); /* -EBADMSG */
/* Writes the head, and an ACK's ranges. Returns the bytes. */
size_t post_frame_put_head(uint8_t *out, const struct post_frame *f);

#endif
