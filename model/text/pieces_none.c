/* Replaces pieces.cc in programs built without libsentencepiece. */
#ifndef SKIPPIPE_SENTENCEPIECE

#include "model/text/pieces.h"

#include <errno.h>
#include <stdio.h>

int pieces_new(struct pieces **out, const void *model, size_t size, char *why, size_t room)
{
	(void)out;
	(void)model;
	(void)size;
	snprintf(why, room,
		 "this program was built without SentencePiece; install libsentencepiece-dev "
		 "and "
		 "build it again");
	return -ENOTSUP;
}

/* ---- functions that are never called, because no model can be opened ---- */

void pieces_free(struct pieces *s)
{
	(void)s;
}

uint32_t pieces_vocab(const struct pieces *s)
{
	(void)s;
	return 0;
}

int32_t pieces_begin(const struct pieces *s)
{
	(void)s;
	return -1;
}

int32_t pieces_end(const struct pieces *s)
{
	(void)s;
	return -1;
}

int32_t pieces_find(const struct pieces *s, const char *piece)
{
	(void)s;
	(void)piece;
	return -1;
}

int pieces_encode(struct pieces *s, const char *text, size_t size, int32_t **tokens, size_t *n)
{
	(void)s;
	(void)text;
	(void)size;
	(void)tokens;
	(void)n;
	return -ENOTSUP;
}

int pieces_decode(struct pieces *s, const int32_t *tokens, size_t n, char **text, size_t *size)
{
	(void)s;
	(void)tokens;
	(void)n;
	(void)text;
	(void)size;
	return -ENOTSUP;
}

#endif
