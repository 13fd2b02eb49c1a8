/* Formats messages into struct error. A message that is too long loses its middle, so that
 * reporting an error never fails. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps the end of a message that is too long, because a long message is mostly a long path and its
 * cause is at the end. */
static void set_text(struct error *e, const char *format, va_list ap)
{
	static const char gap[] = " ... ";
	const size_t room = sizeof(e->text), half = room / 2;
	char *whole;
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(e->text, room, format, ap);
	whole = n >= (int)room ? malloc((size_t)n + 1) : NULL;
	if (whole) {
		vsnprintf(whole, (size_t)n + 1, format, again);
		snprintf(e->text + half, room - half, "%s%s", gap,
			 whole + (size_t)n + sizeof(gap) - (room - half));
	}
	va_end(again);
	free(whole);
}

int error_set(struct error *e, int code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (e)
		set_text(e, format, ap);
	va_end(ap);
	return code;
}

int error_prefix(struct error *e, int code, const char *format, ...)
{
	struct error prefix;
	va_list ap;

	va_start(ap, format);
	set_text(&prefix, format, ap);
	va_end(ap);
	if (e) {
		struct error old = *e;

		error_set(e, code, "%s: %s", prefix.text, old.text);
	}
	return code;
}
