/* table.h - rows under a heading. Columns that do not fit are left out, the least important
 * first, so that the same row says less on a small screen but never something else.
 */
#ifndef TUI_TABLE_H
#define TUI_TABLE_H

#include "tui/screen/screen.h"

enum { TABLE_COLUMNS = 24 };

struct table_column {
	const char *head;
	int width;  /* cells; the last one that is shown takes what is left; 0: not this time */
	int rank;   /* 9 stays longest */
	bool right; /* aligned */
};

struct table {
	const struct table_column *columns;
	int n;
	struct rect at;
	int x[TABLE_COLUMNS]; /* where each begins; -1 left out */
	int w[TABLE_COLUMNS];
};

/* Chooses the columns and draws the heading on the first row of `at`. */
void table_open(struct table *t, struct screen *out, struct rect at,
		const struct table_column *columns, int n);
/* One cell; row 0 is the one under the heading. */
void table_cell(const struct table *t, struct screen *out, int row, int column, unsigned style,
		const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The whole row, e.g. reversed; before its cells. */
void table_row(const struct table *t, struct screen *out, int row, unsigned style);
/* The first of n rows to show so that `selected` is seen: pages, so that rows stay in place. */
int table_first(int n, int rows, int selected);

#endif
