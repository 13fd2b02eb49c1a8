/* manual.h - the manual page and the documentation's tables, from the console's own tables. */
#ifndef TUI_MANUAL_H
#define TUI_MANUAL_H

#include <stdio.h>

void manual_page(FILE *to); /* roff, for man(1) */
/* Markdown: the keys, an empty line, the injected failures. */
void manual_tables(FILE *to);

#endif
