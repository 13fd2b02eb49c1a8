/* exposition.c - the two text formats of metrics. They differ in the names of families (metrics
 * with all their labels), in the UNIT lines, and in the last line. */
#include "controller/monitor/exposition.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

enum { NUMBER = 32 };

static void put_text(struct exposition *e, const char *text, size_t length)
{
	array_reserve(&e->text, &e->room, e->n + length, 1);
	memcpy(e->text + e->n, text, length);
	e->n += length;
}

static void put_word(struct exposition *e, const char *word)
{
	put_text(e, word, strlen(word));
}

/* Writes the value of a label with special characters escaped. */
static void put_escaped(struct exposition *e, const char *text)
{
	for (; *text; text++) {
		size_t plain = strcspn(text, "\\\"\n");

		put_text(e, text, plain);
		text += plain;
		if (!*text)
			return;
		put_word(e, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\");
	}
}

/* Writes whole numbers with all of their digits, because counters of bytes are large. */
static void put_number(struct exposition *e, double value)
{
	char text[NUMBER];

	if (isnan(value))
		snprintf(text, sizeof(text), "NaN");
	else if (isinf(value))
		snprintf(text, sizeof(text), "%cInf", value > 0 ? '+' : '-');
	else
		snprintf(text, sizeof(text), "%.15g", value);
	put_word(e, text);
}

static bool ends_with(const char *name, size_t length, const char *ending)
{
	size_t n = strlen(ending);

	return length > n && memcmp(name + length - n, ending, n) == 0;
}

/* Returns the unit at the end of a family's name; NULL: the name ends with no unit. */
static const char *unit_of(const char *name, size_t length)
{
	static const char *const units[] = { "_seconds", "_bytes", "_ratio", "_celsius", "_watts" };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (ends_with(name, length, units[i]))
			return units[i] + 1;
	return NULL;
}

void exposition_begin(struct exposition *e, bool open_metrics)
{
	*e = (struct exposition){ .open_metrics = open_metrics };
}

/* Writes "# WORD NAME REST". */
static void put_comment(struct exposition *e, const char *word, const char *name, size_t length,
			const char *rest)
{
	put_word(e, "# ");
	put_word(e, word);
	put_word(e, " ");
	put_text(e, name, length);
	put_word(e, " ");
	put_word(e, rest);
	put_word(e, "\n");
}

/* OpenMetrics names a family without the endings _total and _info. */
void exposition_family(struct exposition *e, enum metric_type type, const char *name,
		       const char *help)
{
	static const char *const endings[] = { "", "_total", "_info" };
	static const char *const open_types[] = { "gauge", "counter", "info" };
	static const char *const types[] = { "gauge", "counter", "gauge" };
	size_t length = strlen(name);
	const char *unit;

	e->family = name;
	if (e->open_metrics)
		length -= strlen(endings[type]);
	unit = e->open_metrics ? unit_of(name, length) : NULL;
	put_comment(e, "HELP", name, length, help);
	put_comment(e, "TYPE", name, length, e->open_metrics ? open_types[type] : types[type]);
	if (unit)
		put_comment(e, "UNIT", name, length, unit);
}

void exposition_add(struct exposition *e, double value, ...)
{
	const char *label;
	char before = '{';
	va_list ap;

	put_word(e, e->family);
	va_start(ap, value);
	while ((label = va_arg(ap, const char *)) != NULL) {
		put_text(e, &before, 1);
		put_word(e, label);
		put_word(e, "=\"");
		put_escaped(e, va_arg(ap, const char *));
		put_word(e, "\"");
		before = ',';
	}
	va_end(ap);
	put_word(e, before == ',' ? "} " : " ");
	put_number(e, value);
	put_word(e, "\n");
}

char *exposition_end(struct exposition *e, size_t *size)
{
	if (e->open_metrics)
		put_word(e, "# EOF\n");
	*size = e->n;
	put_text(e, "", 1);
	return e->text;
}
