/* manual.h - the manual page and the documentation's tables, from the console's own tables. */
#ifndef TUI_MANUAL_H
#define TUI_MANUAL_H

#include <stdio.h>

void manual_page(FILE *to); /* writes the manual page in roff, for man(1) */
/* Writes the keys, an empty line, and the injected failures as tables in Markdown. */
void manual_tables(FILE *to);

#endif
