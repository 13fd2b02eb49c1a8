/* The classes of characters come from libunistring, and a table of them makes each look-up a single
 * read. A system's libunistring may have an older or newer Unicode than the tokenizers package.
 * Characters for which this makes a difference are therefore listed here. */
#include "model/text/characters.h"

#include <stdlib.h>
#include <string.h>

#include <unictype.h>
#include <uninorm.h>

#include "base/alloc.h"

enum {
	CODE_POINTS = 0x110000,
	CLASS = 7, /* bits of a table's entry that hold an enum character */
	NEWER = 8, /* bit of an entry: Unicode 9 lacks the character, so normal form C skips it */
};

struct characters {
	uint8_t table[CODE_POINTS]; /* each code point's class, with the bit NEWER if it is newer */
};

/* Short names of classes, for the table below. */
enum { L, N, M };

/* Ranges of characters that Unicode 15 to 16 added, with their class. The classes of older
 * characters did not change. */
static const struct {
	uint32_t first, last;
	int kind;
} newer[] = {
	/* clang-format off */
	{ 0x897, 0x897, M }, { 0xcf3, 0xcf3, M }, { 0xece, 0xece, M }, { 0x1c89, 0x1c8a, L },
	{ 0xa7cb, 0xa7cd, L }, { 0xa7da, 0xa7dc, L }, { 0x105c0, 0x105f3, L },
	{ 0x10d40, 0x10d49, N }, { 0x10d4a, 0x10d65, L }, { 0x10d69, 0x10d6d, M },
	{ 0x10d6f, 0x10d85, L }, { 0x10ec2, 0x10ec4, L }, { 0x10efc, 0x10eff, M },
	{ 0x1123f, 0x11240, L }, { 0x11241, 0x11241, M }, { 0x11380, 0x11389, L },
	{ 0x1138b, 0x1138b, L }, { 0x1138e, 0x1138e, L }, { 0x11390, 0x113b5, L },
	{ 0x113b7, 0x113b7, L }, { 0x113b8, 0x113c0, M }, { 0x113c2, 0x113c2, M },
	{ 0x113c5, 0x113c5, M }, { 0x113c7, 0x113ca, M }, { 0x113cc, 0x113d0, M },
	{ 0x113d1, 0x113d1, L }, { 0x113d2, 0x113d2, M }, { 0x113d3, 0x113d3, L },
	{ 0x113e1, 0x113e2, M }, { 0x116d0, 0x116e3, N }, { 0x11bc0, 0x11be0, L },
	{ 0x11bf0, 0x11bf9, N }, { 0x11f00, 0x11f01, M }, { 0x11f02, 0x11f02, L },
	{ 0x11f03, 0x11f03, M }, { 0x11f04, 0x11f10, L }, { 0x11f12, 0x11f33, L },
	{ 0x11f34, 0x11f3a, M }, { 0x11f3e, 0x11f42, M }, { 0x11f50, 0x11f59, N },
	{ 0x11f5a, 0x11f5a, M }, { 0x1342f, 0x1342f, L }, { 0x13440, 0x13440, M },
	{ 0x13441, 0x13446, L }, { 0x13447, 0x13455, M }, { 0x13460, 0x143fa, L },
	{ 0x16100, 0x1611d, L }, { 0x1611e, 0x1612f, M }, { 0x16130, 0x16139, N },
	{ 0x16d40, 0x16d6c, L }, { 0x16d70, 0x16d79, N }, { 0x18cff, 0x18cff, L },
	{ 0x1b132, 0x1b132, L }, { 0x1b155, 0x1b155, L }, { 0x1ccf0, 0x1ccf9, N },
	{ 0x1d2c0, 0x1d2d3, N }, { 0x1df25, 0x1df2a, L }, { 0x1e030, 0x1e06d, L },
	{ 0x1e08f, 0x1e08f, M }, { 0x1e4d0, 0x1e4eb, L }, { 0x1e4ec, 0x1e4ef, M },
	{ 0x1e4f0, 0x1e4f9, N }, { 0x1e5d0, 0x1e5ed, L }, { 0x1e5ee, 0x1e5ef, M },
	{ 0x1e5f0, 0x1e5f0, L }, { 0x1e5f1, 0x1e5fa, N }, { 0x2b739, 0x2b739, L },
	{ 0x2ebf0, 0x2ee5d, L }, { 0x31350, 0x323af, L },
	/* clang-format on */
};

/* Characters that Unicode 10 to 15 added and that normal form C could change. */
static const struct {
	uint32_t first, last;
} newer_marks[] = {
	/* clang-format off */
	{ 0x7fd, 0x7fd }, { 0x898, 0x89f }, { 0x8ca, 0x8d3 }, { 0x9fe, 0x9fe }, { 0xc3c, 0xc3c },
	{ 0xd3b, 0xd3c }, { 0xeba, 0xeba }, { 0x1715, 0x1715 }, { 0x1abf, 0x1ace },
	{ 0x1df6, 0x1dfa }, { 0xa82c, 0xa82c }, { 0x10d24, 0x10d27 }, { 0x10eab, 0x10eac },
	{ 0x10efd, 0x10eff }, { 0x10f46, 0x10f50 }, { 0x10f82, 0x10f85 }, { 0x11070, 0x11070 },
	{ 0x1133b, 0x1133b }, { 0x1145e, 0x1145e }, { 0x11839, 0x1183a }, { 0x11930, 0x11930 },
	{ 0x11935, 0x11935 }, { 0x11938, 0x11938 }, { 0x1193d, 0x1193e }, { 0x11943, 0x11943 },
	{ 0x119e0, 0x119e0 }, { 0x11a34, 0x11a34 }, { 0x11a47, 0x11a47 }, { 0x11a99, 0x11a99 },
	{ 0x11d42, 0x11d42 }, { 0x11d44, 0x11d45 }, { 0x11d97, 0x11d97 }, { 0x11f41, 0x11f42 },
	{ 0x16ff0, 0x16ff1 }, { 0x1e08f, 0x1e08f }, { 0x1e130, 0x1e136 }, { 0x1e2ae, 0x1e2ae },
	{ 0x1e2ec, 0x1e2ef }, { 0x1e4ec, 0x1e4ef },
	/* clang-format on */
};

static uint8_t class_of_kind(bool marks_are_letters, int kind)
{
	if (kind == M)
		return marks_are_letters ? CHARACTER_LETTER : CHARACTER_OTHER;
	return kind == L ? CHARACTER_LETTER : CHARACTER_NUMBER;
}

static uint8_t class_of(bool marks_are_letters, uint32_t c)
{
	if (uc_is_general_category_withtable(c, UC_CATEGORY_MASK_L))
		return CHARACTER_LETTER;
	if (uc_is_general_category_withtable(c, UC_CATEGORY_MASK_N))
		return CHARACTER_NUMBER;
	if (uc_is_general_category_withtable(c, UC_CATEGORY_MASK_M))
		return class_of_kind(marks_are_letters, M);
	return uc_is_property_white_space(c) ? CHARACTER_SPACE : CHARACTER_OTHER;
}

struct characters *characters_new(bool marks_are_letters)
{
	struct characters *t = alloc_new(sizeof(*t));

	for (uint32_t c = 0; c < CODE_POINTS; c++)
		t->table[c] = class_of(marks_are_letters, c);
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
		for (uint32_t c = newer[i].first; c <= newer[i].last; c++)
			t->table[c] = class_of_kind(marks_are_letters, newer[i].kind) | NEWER;
	for (size_t i = 0; i < sizeof(newer_marks) / sizeof(newer_marks[0]); i++)
		for (uint32_t c = newer_marks[i].first; c <= newer_marks[i].last; c++)
			t->table[c] |= NEWER;
	return t;
}

void characters_free(struct characters *c)
{
	free(c);
}

/* Returns the table's entry for the first character of valid UTF-8 and its length in bytes in
 * *n. */
static inline uint8_t entry_at(const struct characters *c, const char *text, size_t *n)
{
	const uint8_t *s = (const uint8_t *)text;

	*n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	switch (*n) {
	case 1:
		return c->table[s[0]];
	case 2:
		return c->table[(s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)];
	case 3:
		return c->table[(s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu)];
	default:
		return c->table[(s[0] & 7u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 |
				(s[3] & 0x3fu)];
	}
}

enum character characters_class(const struct characters *c, const char *text, size_t *n)
{
	return (enum character)(entry_at(c, text, n) & CLASS);
}

/* ---- normal form C ----
 * The normal form of Unicode 9 does not combine a newer character with any other. The text is
 * therefore cut before and after each newer character. */

static bool append(char **to, size_t *had, const char *text, size_t size)
{
	char *grown = realloc(*to, *had + size + 1);

	if (!grown)
		return false;
	memcpy(grown + *had, text, size);
	*to = grown;
	*had += size;
	return true;
}

static bool append_normal(char **to, size_t *had, const char *text, size_t size)
{
	size_t n;
	uint8_t *normal = u8_normalize(UNINORM_NFC, (const uint8_t *)text, size, NULL, &n);
	bool ok = normal && append(to, had, (char *)normal, n);

	free(normal);
	return ok;
}

char *characters_normal(const struct characters *c, const char *text, size_t size, size_t *n)
{
	size_t from = 0, length;
	char *to = NULL;
	bool ok = true;

	*n = 0;
	for (size_t at = 0; at < size && ok; at += length) {
		if (!(entry_at(c, text + at, &length) & NEWER))
			continue;
		ok = (at == from || append_normal(&to, n, text + from, at - from)) &&
		     append(&to, n, text + at, length);
		from = at + length;
	}
	if (ok && from < size)
		ok = append_normal(&to, n, text + from, size - from);
	if (ok)
		return to;
	free(to);
	return NULL;
}
