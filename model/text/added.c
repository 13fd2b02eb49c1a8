/* Cuts a text at the tokens that were added to a vocabulary. A token may begin at every byte, so a
 * table of first two bytes quickly excludes most places before tokens are compared. */
#include "model/text/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct added {
	char *content; /* the text to search for */
	size_t size;
	int32_t id;
	bool lstrip, rstrip;
};

static void mark_beginning(struct added_set *set, const char *content, size_t size)
{
	const unsigned char *s = (const unsigned char *)content;

	for (unsigned second = 0; second < 256; second++)
		if (size == 1 || s[1] == second)
			set->begins[s[0] * 32u + second / 8] |= (uint8_t)(1u << second % 8);
}

void added_set_add(struct added_set *set, char *content, size_t size, int32_t id, bool lstrip,
		   bool rstrip)
{
	size_t at = set->n;

	array_reserve(&set->list, &set->room, set->n + 1, sizeof(*set->list));
	for (; at > 0 && set->list[at - 1].size < size; at--)
		set->list[at] = set->list[at - 1];
	set->list[at] = (struct added){ content, size, id, lstrip, rstrip };
	set->n++;
	mark_beginning(set, content, size);
}

void added_set_fini(struct added_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		free(set->list[i].content);
	free(set->list);
}

/* Returns the longest added token with which the text begins, or NULL. */
static const struct added *added_at(const struct added_set *set, const char *text, size_t size)
{
	unsigned first = (unsigned char)text[0], second = size > 1 ? (unsigned char)text[1] : 0;

	if (!(set->begins[first * 32 + second / 8] & 1u << second % 8))
		return NULL;
	for (size_t i = 0; i < set->n; i++) {
		const struct added *a = &set->list[i];

		if (a->size <= size && memcmp(a->content, text, a->size) == 0)
			return a;
	}
	return NULL;
}

/* Returns where the white space that ends at `at` begins, but not before `from`. */
static size_t space_before(const struct characters *c, const char *text, size_t from, size_t at)
{
	while (at > from) {
		size_t begin = at - 1, n;

		while (begin > from && (text[begin] & 0xc0) == 0x80)
			begin--;
		if (characters_class(c, text + begin, &n) != CHARACTER_SPACE)
			break;
		at = begin;
	}
	return at;
}

static size_t space_after(const struct characters *c, const char *text, size_t at, size_t size)
{
	size_t n;

	while (at < size && characters_class(c, text + at, &n) == CHARACTER_SPACE)
		at += n;
	return at;
}

/* Returns true if `a`, found at w->at, is to be dropped. The tokenizers package drops a token under
 * two conditions: the token consists only of white space that the preceding token has stripped, and
 * the token itself has lstrip. */
static bool is_stripped(const struct added_walk *w, const struct added *a)
{
	return a->lstrip && w->at + a->size <= w->done;
}

bool added_walk_next(struct added_walk *w, const struct added_set *set, const struct characters *c,
		     struct added_part *part)
{
	const struct added *a = NULL;
	size_t from = w->done, to;

	while (set->n > 0 && w->at < w->size) {
		a = added_at(set, w->text + w->at, w->size - w->at);
		if (a && !is_stripped(w, a))
			break;
		w->at += a ? a->size : 1;
		a = NULL;
	}
	to = a ? w->at : w->size;
	if (!a) {
		w->done = w->at = w->size;
		*part = (struct added_part){ from, to, -1 };
		return from < to;
	}
	w->at += a->size;
	w->done = a->rstrip ? space_after(c, w->text, w->at, w->size) : w->at;
	if (a->lstrip && to > from)
		to = space_before(c, w->text, from, to);
	*part = (struct added_part){ from, to > from ? to : from, a->id };
	return true;
}
