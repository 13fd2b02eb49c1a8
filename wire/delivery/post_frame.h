/* post_frame.h - the layout of a post's frames, inside the encryption. Pure functions.
 *
 * The head, with sizes in bytes:
 *
 *     kind 1, class 1, ranges 1, zero 1, index 4, number 8, ack 8, total 8, chunks 4, zero 8
 *
 * In a CHUNK or LOSSY frame, the content follows the head. In an ACK frame, pairs { from 4,
 * length 4 } follow the head. The field `ranges` is the number of these pairs. They ascend and
 * are not adjacent. Integers are little-endian. The head has 44 bytes, so that the content begins
 * on a 16-byte boundary of nanomsg's buffer. A PING may end with up to POST_PROBE_LARGE bytes of
 * padding. CHUNK and ACK frames both acknowledge chunks of their class; a CHUNK frame has no
 * ranges.
 */
#ifndef WIRE_POST_FRAME_H
#define WIRE_POST_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/delivery/channel.h"
#include "wire/post.h"

#define POST_FRAME_HEAD 44

/* A PING's number is a time on its sender's clock; the PONG returns it. */
enum post_frame_kind {
	POST_FRAME_CHUNK = 1, POST_FRAME_LOSSY, POST_FRAME_ACK, POST_FRAME_PING, POST_FRAME_PONG
};

struct post_frame {
	enum post_frame_kind kind;
	enum post_class class;
	uint64_t ack; /* number of the first chunk that the frame's sender has not received */
	unsigned n_ranges;
	struct channel_range ranges[CHANNEL_RANGES];
	struct channel_chunk chunk; /* set in CHUNK and LOSSY frames */
};

/* Parses a frame. -EBADMSG: the bytes are no valid frame. */
int post_frame_parse(const uint8_t *bytes, size_t size, struct post_frame *out);
/* Writes the head, and the ranges of an ACK. Returns the number of bytes written. */
size_t post_frame_put_head(uint8_t *out, const struct post_frame *f);

#endif
