/* Reads JSON lines. The bytes and escapes of a line are checked before the line is parsed, because
 * the parser does not report the place of an error inside a long string. */
#include "model/text/jsonl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>
#include <unistr.h>

#include "base/alloc.h"
#include "base/not_text.h"

struct jsonl {
	json_t *line;
};

bool jsonl_is_name(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (strcasecmp(dot, ".jsonl") == 0 || strcasecmp(dot, ".ndjson") == 0 ||
		       strcasecmp(dot, ".json") == 0);
}

/* Returns the number after \u in four hex digits, or -1. */
static int escaped(const char *at, size_t size)
{
	int c = 0;

	if (size < 6 || at[0] != '\\' || at[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF";
		const char *digit = at[i] ? strchr(digits, at[i]) : NULL;

		if (!digit)
			return -1;
		c = c << 4 | (int)((digit - digits) & 15);
	}
	return c;
}

/* Returns the reason why the escape at the backslash `at` is invalid, or NULL if the escape is
 * valid. *n is the length of the escape. */
static const char *escape_fault(const char *at, size_t size, size_t *n)
{
	int c = escaped(at, size), low;

	*n = c < 0 ? 2 : 6;
	if (c == 0)
		return "\\u0000, a NUL character";
	if (c < 0xd800 || c > 0xdfff)
		return NULL;
	low = c < 0xdc00 ? escaped(at + 6, size - 6) : -1;
	if (low < 0xdc00 || low > 0xdfff)
		return "half of a surrogate pair, which is no character";
	*n = 12;
	return NULL;
}

/* Returns the index of the first invalid byte of the line and the reason, or `size` if there is
 * none. */
static size_t find_fault(const char *line, size_t size, const char **why)
{
	const uint8_t *bad = u8_check((const uint8_t *)line, size);
	const char *at = line, *end = line + size;

	if (!bad)
		bad = memchr(line, 0, size);
	if (bad) {
		*why = *bad ? "not UTF-8" : "NUL";
		return (size_t)((const char *)bad - line);
	}
	while ((at = memchr(at, '\\', (size_t)(end - at)))) {
		size_t n;

		*why = escape_fault(at, (size_t)(end - at), &n);
		if (*why)
			return (size_t)(at - line);
		if (n >= (size_t)(end - at))
			break;
		at += n;
	}
	return size;
}

static bool is_blank(const char *line, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!strchr(" \t\r\n", line[i]) || !line[i])
			return false;
	return true;
}

/* Returns the size of the byte order mark at the beginning of line 1, or 0. */
static size_t mark_size(const char *line, size_t size, uint64_t number)
{
	return number == 1 ? byte_order_mark(line, size) : 0;
}

int jsonl_parse(json_t **out, const char *line, size_t size, const char *path, uint64_t number,
		struct error *err)
{
	size_t mark = mark_size(line, size, number), at;
	const char *why = number == 1 ? not_text_reason(line, size) : NULL;
	json_error_t fault;

	if (why)
		return error_set(err, -EINVAL, "%s: %s", path, why);
	line += mark;
	size -= mark;
	if (number == 1 && size > 0 && *line == '[')
		return error_set(err, -EINVAL,
				 "%s: a JSON array: expected an object on each line; jq -c '.[]' "
				 "writes the elements on lines",
				 path);
	if (is_blank(line, size))
		return JSONL_BLANK;
	at = find_fault(line, size, &why);
	if (at < size)
		return error_set(err, -EINVAL, "%s: line %" PRIu64 ", byte %zu: %s", path, number,
				 mark + at + 1, why);
	*out = json_loadb(line, size, JSON_DECODE_INT_AS_REAL, &fault);
	if (!*out)
		return error_set(err, -EINVAL, "%s: line %" PRIu64 ", byte %zu: %s", path, number,
				 mark + (size_t)fault.position, fault.text);
	return 0;
}

int jsonl_read(struct jsonl **out, const char *line, size_t size, const char *path, uint64_t number,
	       struct error *err)
{
	size_t mark = mark_size(line, size, number);
	json_t *json, *text;
	int rc = jsonl_parse(&json, line, size, path, number, err);

	if (rc)
		return rc;
	text = json_object_get(json, "text");
	if (json_is_string(text) && json_string_length(text) > 0) {
		*out = alloc_new(sizeof(**out));
		(*out)->line = json;
		return 0;
	}
	rc = json_is_null(text) ? JSONL_NULL : json_is_string(text) ? JSONL_EMPTY : -EINVAL;
	json_decref(json);
	if (rc < 0)
		error_set(err, rc,
			  "%s: line %" PRIu64 ", byte %zu: expected an object with a \"text\"%s",
			  path, number, mark + 1, text ? " that is a string or null" : "");
	return rc;
}

void jsonl_free(struct jsonl *j)
{
	if (!j)
		return;
	json_decref(j->line);
	free(j);
}

const char *jsonl_text(const struct jsonl *j, size_t *size)
{
	const json_t *text = json_object_get(j->line, "text");

	*size = json_string_length(text);
	return json_string_value(text);
}
