#include "cli/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append_argument(struct args *a, char *text)
{
	char **grown = text ? realloc(a->list, (a->n + 2) * sizeof(*grown)) : NULL;

	if (!grown) {
		free(text);
		a->failed = true;
		return;
	}
	a->list = grown;
	a->list[a->n++] = text;
	a->list[a->n] = NULL;
}

void args_add(struct args *a, const char *text)
{
	append_argument(a, strdup(text));
}

void args_addf(struct args *a, const char *format, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	append_argument(a, n < 0 ? NULL : text);
}

void args_free(struct args *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->list[i]);
	free(a->list);
	*a = (struct args){ 0 };
}
