/* pieces.h - a message whose bytes lie in several buffers: those in which its chunks arrived. */
#ifndef WIRE_PIECES_H
#define WIRE_PIECES_H

#include <stddef.h>
#include <stdint.h>

struct piece {
	const uint8_t *data;
	size_t size;
	void *owner; /* the buffer; private to the post */
};

/* The whole message: n pieces, in order. */
struct pieces {
	struct piece *list; /* (n); NULL: the message lies in one buffer */
	uint32_t n;
};

/* Copies the bytes from `from` on, to the end of the message. */
void pieces_join(const struct pieces *p, size_t from, void *to);

#endif
