/* added.h - tokens such as <|im_end|>, at which a text is cut before it is tokenized in any other
 * way.
 *
 * The text is searched from left to right, and at each place the longest token that begins there is
 * taken, as in the tokenizers package.
 */
#ifndef MODEL_ADDED_H
#define MODEL_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/text/characters.h"

struct added; /* opaque */

/* A set of tokens. A zeroed set is empty. */
struct added_set {
	struct added *list; /* the n tokens, the longest first */
	size_t n, room;
	/* One bit for each pair of bytes: set if a token begins with this pair. */
	uint8_t begins[1 << 13];
};

/* Adds a token. The set owns content (size > 0) from now on. lstrip, rstrip: the token includes
 * white space on its left, or on its right. */
void added_set_add(struct added_set *set, char *content, size_t size, int32_t id, bool lstrip,
		   bool rstrip);
void added_set_fini(struct added_set *set);

/* A walk through the parts of a text. The caller sets the text and its size, and zeros the other
 * fields. */
struct added_walk {
	const char *text;
	size_t size;
	size_t at;   /* place from which the next token is searched for */
	size_t done; /* end of the newest part that the walk has given */
};

/* A part of the text: bytes [from, to), and the added token after these bytes, or -1 at the end of
 * the text. */
struct added_part {
	size_t from, to;
	int32_t id;
};

/* Gives the next part. Returns false at the end. The last part may be empty. */
bool added_walk_next(struct added_walk *w, const struct added_set *set, const struct characters *c,
		     struct added_part *part);

#endif
