/* Recognises, by their first bytes, files that a download, a compressor or an editor leaves in
 * place of a text. Without this, a parser would report only an invalid byte, and a Git LFS pointer
 * would count as a text. */
#include "base/not_text.h"

#include <string.h>

#define UNPACK ": unpack it first"
#define CONVERT ": convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)"

static const struct {
	size_t at; /* offset of the mark in the file */
	const char *mark;
	size_t size;
	const char *reason;
} kinds[] = {
	{ 0, "version https://git-lfs.github.com/", 35,
	  "is a Git LFS pointer, not the file: fetch it with git lfs pull" },
	{ 0, "\x1f\x8b", 2, "is compressed with gzip" UNPACK },
	{ 0, "\x28\xb5\x2f\xfd", 4, "is compressed with zstd" UNPACK },
	{ 0, "\xfd\x37zXZ", 5, "is compressed with xz" UNPACK },
	{ 4, "1AY&SY", 6, "is compressed with bzip2" UNPACK },
	{ 0, "PK\x03\x04", 4, "is a zip archive" UNPACK },
	{ 0, "\xff\xfe", 2, "is UTF-16" CONVERT },
	{ 0, "\xfe\xff", 2, "is UTF-16" CONVERT },
};

const char *not_text_reason(const void *data, size_t size)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (size >= kinds[i].at + kinds[i].size &&
		    memcmp((const char *)data + kinds[i].at, kinds[i].mark, kinds[i].size) == 0)
			return kinds[i].reason;
	return NULL;
}

size_t byte_order_mark(const void *text, size_t size)
{
	return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}
