/* table.h - rows under a heading. If the columns do not fit, the least important ones are hidden,
 * so that a small screen shows less of a row and nothing different.
 */
#ifndef TUI_TABLE_H
#define TUI_TABLE_H

#include "tui/screen/screen.h"

enum { TABLE_COLUMNS = 28 };

struct table_column {
	const char *head;
	int width;  /* width in cells; the last column gets the remaining width; 0: hidden */
	int rank;   /* rank of the column; 9 is hidden last */
	bool right; /* the column is aligned to the right */
};

struct table {
	const struct table_column *columns;
	int n;
	struct rect at;
	int x[TABLE_COLUMNS]; /* first cell of each column; -1: hidden */
	int w[TABLE_COLUMNS];
};

/* Chooses the columns and draws the heading on the first row of `at`. */
void table_open(struct table *t, struct screen *out, struct rect at,
		const struct table_column *columns, int n);
/* Writes one cell; row 0 is below the heading. */
void table_cell(const struct table *t, struct screen *out, int row, int column, unsigned style,
		const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Fills a row with a style, for example reversed, before its cells are written. */
void table_row(const struct table *t, struct screen *out, int row, unsigned style);
/* Returns the first of n rows to show, so that `selected` is visible. The rows are shown in
 * pages, so that they do not move with the selection. */
int table_first(int n, int rows, int selected);

#endif
