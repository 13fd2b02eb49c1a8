#include "store/list.h"

#include <errno.h>
#include <stdlib.h>

enum { DIGITS_MOST = 10 }; /* of a 32-bit number */

static char *put_number(char *to, uint32_t value)
{
	char digits[DIGITS_MOST];
	int n = 0;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

/* Room for n items of at most `letters` + ten digits and a space each. */
static char *allocate_text(uint32_t n, size_t letters)
{
	return malloc((size_t)n * (letters + DIGITS_MOST + 1) + 1);
}

/* The space after the last item becomes the end. */
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

	for (uint32_t i = 0; text && i < n; i++) {
		to = put_number(to, list[i]);
		*to++ = ' ';
	}
	return text ? finish_text(text, to) : NULL;
}

char *list_print_u16(const uint16_t *list, uint32_t n)
{
	char *text = allocate_text(n, 0), *to = text;

	for (uint32_t i = 0; text && i < n; i++) {
		to = put_number(to, list[i]);
		*to++ = ' ';
	}
	return text ? finish_text(text, to) : NULL;
}

char *list_print_counted(const struct store_counted *list, uint32_t n)
{
	char *text = allocate_text(n, 1), *to = text;

	for (uint32_t i = 0; text && i < n; i++) {
		*to++ = list[i].kind;
		to = put_number(to, list[i].microbatch);
		*to++ = ' ';
	}
	return text ? finish_text(text, to) : NULL;
}

/* Digits without sign or needless zeros, at most `most`. */
static int take_number(const char **text, uint64_t most, uint32_t *out)
{
	const char *at = *text;
	uint64_t value = 0;

	if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9'))
		return -EBADMSG;
	for (; *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (uint64_t)(*at - '0');
		if (value > most)
			return -EBADMSG;
	}
	*text = at;
	*out = (uint32_t)value;
	return 0;
}

/* One space between items, none at the ends. */
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
	uint8_t *to = malloc(items + 1);

	if (!to)
		return -ENOMEM;
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
	uint16_t *to = malloc((items + 1) * sizeof(*to));

	if (!to)
		return -ENOMEM;
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
	struct store_counted *to = malloc((items + 1) * sizeof(*to));

	if (!to)
		return -ENOMEM;
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
