/* Recognises, by their first bytes, files that a download, a compressor or an editor leaves in
 * place of a text. Without this, a parser would report only an invalid byte, and a Git LFS pointer
 * would count as a text. */
#include "base/not_text.h"

#include <string.h>

#define UNPACK ": unpack it first"
#define CONVERT ": convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)"

static const struct {
	const char *begin;
	size_t size;
	const char *reason;
} kinds[] = {
	{ "version https://git-lfs.github.com/", 35,
	  "is a Git LFS pointer, not the file: fetch it with git lfs pull" },
	{ "\x1f\x8b", 2, "is compressed with gzip" UNPACK },
	{ "\x28\xb5\x2f\xfd", 4, "is compressed with zstd" UNPACK },
	{ "\xfd\x37zXZ", 5, "is compressed with xz" UNPACK },
	{ "BZh", 3, "is compressed with bzip2" UNPACK },
	{ "PK\x03\x04", 4, "is a zip archive" UNPACK },
	{ "\xff\xfe", 2, "is UTF-16" CONVERT },
	{ "\xfe\xff", 2, "is UTF-16" CONVERT },
};

const char *not_text_reason(const void *data, size_t size)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (size >= kinds[i].size && memcmp(data, kinds[i].begin, kinds[i].size) == 0)
			return kinds[i].reason;
	return NULL;
}
