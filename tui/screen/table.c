/* Draws tables whose columns adapt to the width of the screen. */
#include "tui/screen/table.h"

#include <stdarg.h>
#include <stdio.h>

static int width_of(const struct table *t, const bool *shown)
{
	int w = 0;

	for (int i = 0; i < t->n; i++)
		if (shown[i])
			w += t->columns[i].width + (w > 0);
	return w;
}

void table_open(struct table *t, struct screen *out, struct rect at,
		const struct table_column *columns, int n)
{
	bool shown[TABLE_COLUMNS];
	int x = at.x, last = 0;

	*t = (struct table){ .columns = columns,
			     .n = n < TABLE_COLUMNS ? n : TABLE_COLUMNS,
			     .at = at };
	for (int i = 0; i < t->n; i++)
		shown[i] = columns[i].width > 0;
	for (int rank = 0; rank < 9; rank++)
		for (int i = t->n - 1; i >= 0 && width_of(t, shown) > at.w; i--)
			if (columns[i].rank == rank)
				shown[i] = false;
	for (int i = 0; i < t->n; i++) {
		t->x[i] = -1;
		if (!shown[i])
			continue;
		t->x[i] = x;
		t->w[i] = columns[i].width;
		x += columns[i].width + 1;
		last = i;
	}
	if (t->n > 0 && t->x[last] >= 0)
		t->w[last] = at.x + at.w - t->x[last];
	for (int i = 0; i < t->n; i++)
		table_cell(t, out, -1, i, STYLE_FAINT, "%s", columns[i].head);
}

void table_row(const struct table *t, struct screen *out, int row, unsigned style)
{
	if (row + 1 < t->at.h)
		screen_fill(out, (struct rect){ t->at.x, t->at.y + 1 + row, t->at.w, 1 }, ' ',
			    style);
}

void table_cell(const struct table *t, struct screen *out, int row, int column, unsigned style,
		const char *format, ...)
{
	char text[256];
	va_list args;
	int n, shift = 0;

	if (column >= t->n || t->x[column] < 0 || row + 1 >= t->at.h)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	n = screen_columns(text);
	if (t->columns[column].right && n < t->columns[column].width)
		shift = t->columns[column].width - n;
	screen_text(out, t->x[column] + shift, t->at.y + 1 + row, t->w[column] - shift, style,
		    text);
}

int table_first(int n, int rows, int selected)
{
	if (rows <= 0 || n <= rows || selected < 0)
		return 0;
	return selected / rows * rows;
}
