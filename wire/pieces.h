/* pieces.h - a message in pieces. The message was not joined, so its bytes lie in the buffers in
 * which its chunks arrived. */
#ifndef WIRE_PIECES_H
#define WIRE_PIECES_H

#include <stddef.h>
#include <stdint.h>

struct piece {
	const uint8_t *data;
	size_t size;
	void *owner; /* buffer that contains the piece; private to the post */
};

/* A whole message: n pieces in the order of its bytes. */
struct pieces {
	/* The n pieces; NULL: the message is not in pieces but in one block. */
	struct piece *list;
	uint32_t n;
};

/* Copies the bytes of the message from offset `from` to its end. */
void pieces_join(const struct pieces *p, size_t from, void *to);

#endif
