/* Formats messages into struct error. A message that is too long is cut, so that reporting an error
 * never fails. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *e, int code, const char *format, ...)
{
	if (e) {
		va_list ap;

		va_start(ap, format);
		vsnprintf(e->text, sizeof(e->text), format, ap);
		va_end(ap);
	}
	return code;
}

int error_prefix(struct error *e, int code, const char *format, ...)
{
	if (e) {
		struct error old = *e;
		size_t at;
		va_list ap;

		va_start(ap, format);
		vsnprintf(e->text, sizeof(e->text), format, ap);
		va_end(ap);
		at = strlen(e->text);
		for (const char *p = ": "; *p && at + 1 < sizeof(e->text); p++)
			e->text[at++] = *p;
		for (const char *p = old.text; *p && at + 1 < sizeof(e->text); p++)
			e->text[at++] = *p;
		e->text[at] = '\0';
	}
	return code;
}
