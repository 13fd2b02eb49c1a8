/* outcome.c - sets the outcome of an operator's command, which its console receives as the answer.
 */
#include "controller/run/outcome.h"

#include <stdarg.h>
#include <stdio.h>

void outcome_set(struct outcome *o, int status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(o->text, sizeof(o->text), format, ap);
	va_end(ap);
	o->status = status;
}
