/* Prints and parses lists of numbers. The record keeps lists as text, so that an SQLite shell
 * shows them. The parser accepts only what the printer writes, so that the reader notices a
 * damaged row. */
#include "store/list.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { DIGITS_MAX = 10 /* largest number of digits of a 32-bit number */ };

static char *put_number(char *to, uint32_t value)
{
	char digits[DIGITS_MAX];
	int n = 0;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

/* Allocates room for n items; an item consists of `letters` letters, up to ten digits, and a
 * space. */
static char *allocate_text(uint32_t n, size_t letters)
{
	return alloc_new((size_t)n * (letters + DIGITS_MAX + 1) + 1);
}

/* Replaces the space after the last item by the text's end. */
static char *finish_text(char *text, char *end)
{
	if (end > text)
		end--;
	*end = '\0';
	return text;
}

char *list_print_u8(const uint8_t *list, uint32_t n)
{
	char *text = allocate_text(n, 0), *to = text;

	for (uint32_t i = 0; i < n; i++) {
		to = put_number(to, list[i]);
		*to++ = ' ';
	}
	return finish_text(text, to);
}

char *list_print_u16(const uint16_t *list, uint32_t n)
{
	char *text = allocate_text(n, 0), *to = text;

	for (uint32_t i = 0; i < n; i++) {
		to = put_number(to, list[i]);
		*to++ = ' ';
	}
	return finish_text(text, to);
}

char *list_print_counted(const struct store_counted *list, uint32_t n)
{
	char *text = allocate_text(n, 1), *to = text;

	for (uint32_t i = 0; i < n; i++) {
		*to++ = list[i].kind;
		to = put_number(to, list[i].microbatch);
		*to++ = ' ';
	}
	return finish_text(text, to);
}

/* Parses digits without a sign or leading zeros. */
static int take_number(const char **text, uint64_t max, uint32_t *out)
{
	const char *at = *text;
	uint64_t value = 0;

	if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9'))
		return -EBADMSG;
	for (; *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (uint64_t)(*at - '0');
		if (value > max)
			return -EBADMSG;
	}
	*text = at;
	*out = (uint32_t)value;
	return 0;
}

/* Skips the single space between two items. */
static int take_space(const char **text)
{
	if (**text == '\0')
		return 0;
	if (**text != ' ' || (*text)[1] == '\0')
		return -EBADMSG;
	(*text)++;
	return 0;
}

static uint32_t count_items(const char *text)
{
	uint32_t n = *text != '\0';

	for (; *text; text++)
		n += *text == ' ';
	return n;
}

int list_parse_u8(const char *text, uint8_t **list, uint32_t *n)
{
	uint32_t items = count_items(text), value;
	uint8_t *to = alloc_array(items, sizeof(*to));

	for (uint32_t i = 0; i < items; i++) {
		if (take_number(&text, UINT8_MAX, &value) != 0 || take_space(&text) != 0) {
			free(to);
			return -EBADMSG;
		}
		to[i] = (uint8_t)value;
	}
	*list = to;
	*n = items;
	return 0;
}

int list_parse_u16(const char *text, uint16_t **list, uint32_t *n)
{
	uint32_t items = count_items(text), value;
	uint16_t *to = alloc_array(items, sizeof(*to));

	for (uint32_t i = 0; i < items; i++) {
		if (take_number(&text, UINT16_MAX, &value) != 0 || take_space(&text) != 0) {
			free(to);
			return -EBADMSG;
		}
		to[i] = (uint16_t)value;
	}
	*list = to;
	*n = items;
	return 0;
}

int list_parse_counted(const char *text, struct store_counted **list, uint32_t *n)
{
	uint32_t items = count_items(text);
	struct store_counted *to = alloc_array(items, sizeof(*to));

	for (uint32_t i = 0; i < items; i++) {
		to[i].kind = *text;
		if (*text != 'L' && *text != 'B')
			goto malformed;
		text++;
		if (take_number(&text, UINT32_MAX, &to[i].microbatch) != 0 ||
		    take_space(&text) != 0)
			goto malformed;
	}
	*list = to;
	*n = items;
	return 0;

malformed:
	free(to);
	return -EBADMSG;
}
