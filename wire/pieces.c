/* pieces.c - joins the pieces of a message into one block. */
#include "wire/pieces.h"

#include <string.h>

void pieces_join(const struct pieces *p, size_t from, void *to)
{
	uint8_t *out = to;
	for (uint32_t i = 0; i < p->n; i++) {
		const struct piece *piece = &p->list[i];
		if (from < piece->size) {
			memcpy(out, piece->data + from, piece->size - from);
			out += piece->size - from;
			from = 0;
		} else {
			from -= piece->size;
		}
	}
}
