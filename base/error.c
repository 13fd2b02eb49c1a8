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
		char was[sizeof(e->text)];
		va_list ap;
		int n;

		memcpy(was, e->text, sizeof(was));
		va_start(ap, format);
		n = vsnprintf(e->text, sizeof(e->text), format, ap);
		va_end(ap);
		if (n >= 0 && (size_t)n < sizeof(e->text))
			snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", was);
	}
	return code;
}
