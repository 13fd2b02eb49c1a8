/* An argument list for exec. The command lines of a demo are long and depend on many options;
 * therefore several functions append arguments to one list. */
#include "cli/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

static void append_argument(struct args *a, char *text)
{
	a->list = alloc_resize(a->list, a->n + 2, sizeof(*a->list));
	a->list[a->n++] = text;
	a->list[a->n] = NULL;
}

void args_add(struct args *a, const char *text)
{
	append_argument(a, alloc_string(text));
}

void args_addf(struct args *a, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	append_argument(a, alloc_vformat(format, ap));
	va_end(ap);
}

void args_free(struct args *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->list[i]);
	free(a->list);
	*a = (struct args){ 0 };
}
