/* table.h - rows under a heading. If the columns do not fit, the least important ones are hidden.
 * Thus a small screen shows fewer columns, but the same content in each. */
#ifndef TUI_TABLE_H
#define TUI_TABLE_H

#include "tui/screen/screen.h"

enum { TABLE_COLUMNS = 28 };

struct table_column {
	const char *head;
	int width;  /* width in cells; 0: hidden. The last column gets the remaining width. */
	int rank;   /* columns of low rank are hidden first, columns of rank 9 last */
	bool right; /* the column is aligned to the right */
};

struct table {
	const struct table_column *columns;
	int n;
	struct rect at;
	int x[TABLE_COLUMNS]; /* column of the screen at which each column begins; -1: hidden */
	int w[TABLE_COLUMNS];
};

/* Chooses the columns that fit, and draws the heading in the first row of `at`. */
void table_open(struct table *t, struct screen *out, struct rect at,
		const struct table_column *columns, int n);
/* Writes a cell; row 0 is the first row below the heading. */
void table_cell(const struct table *t, struct screen *out, int row, int column, unsigned style,
		const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Fills a row with a style, for example a reversed one. Call it before the row's cells are
 * written. */
void table_row(const struct table *t, struct screen *out, int row, unsigned style);
/* Returns the index of the first row to show, of n rows. It changes only in whole pages, so that
 * rows do not move with the selection. */
int table_first(int n, int rows, int selected);

#endif
