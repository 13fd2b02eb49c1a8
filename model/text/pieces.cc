#include "model/text/pieces.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <sentencepiece_processor.h>

/* These functions catch all exceptions, because their callers are C. */

struct pieces {
	sentencepiece::SentencePieceProcessor processor;
};

extern "C" {

int pieces_new(struct pieces **out, const void *model, size_t size, char *why,
		      size_t room)
try {
	struct pieces *s = new struct pieces;
	auto status = s->processor.LoadFromSerializedProto(
		absl::string_view(static_cast<const char *>(model), size));

	if (!status.ok()) {
		snprintf(why, room, "%s", status.ToString().c_str());
		delete s;
		return -EINVAL;
	}
	*out = s;
	return 0;
} catch (...) {
	snprintf(why, room, "no memory");
	return -ENOMEM;
}

void pieces_free(struct pieces *s)
{
	delete s;
}

uint32_t pieces_vocab(const struct pieces *s)
{
	return static_cast<uint32_t>(s->processor.GetPieceSize());
}

int32_t pieces_begin(const struct pieces *s)
{
	return s->processor.bos_id();
}

int32_t pieces_end(const struct pieces *s)
{
	return s->processor.eos_id();
}

int32_t pieces_find(const struct pieces *s, const char *piece)
try {
	int id = s->processor.PieceToId(piece);

	return s->processor.IdToPiece(id) == piece ? id : -1;
} catch (...) {
	return -1;
}

int pieces_encode(struct pieces *s, const char *text, size_t size,
			 int32_t **tokens, size_t *n)
try {
	std::vector<int> ids;

	if (!s->processor.Encode(absl::string_view(text, size), &ids).ok()) {
		*n = size;
		return -EINVAL;
	}
	*tokens = static_cast<int32_t *>(malloc((ids.size() + 1) * sizeof(**tokens)));
	if (!*tokens)
		return -ENOMEM;
	for (size_t i = 0; i < ids.size(); i++)
		(*tokens)[i] = ids[i];
	*n = ids.size();
	return 0;
} catch (...) {
	return -ENOMEM;
}

int pieces_decode(struct pieces *s, const int32_t *tokens, size_t n, char **text,
			 size_t *size)
try {
	std::vector<int> ids(tokens, tokens + n);
	std::string decoded;

	for (int id : ids)
		if (id < 0 || id >= s->processor.GetPieceSize())
			return -EINVAL;
	if (!s->processor.Decode(ids, &decoded).ok())
		return -EINVAL;
	*text = static_cast<char *>(malloc(decoded.size() + 1));
	if (!*text)
		return -ENOMEM;
	memcpy(*text, decoded.c_str(), decoded.size() + 1);
	*size = decoded.size();
	return 0;
} catch (...) {
	return -ENOMEM;
}

} /* extern "C" */
