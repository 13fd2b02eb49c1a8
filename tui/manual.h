/* manual.h - the manual page and the table of keys, from the same tables as the help. */
#ifndef TUI_MANUAL_H
#define TUI_MANUAL_H

#include <stdio.h>

void manual_page(FILE *to); /* roff, for man(1) */
void manual_keys(FILE *to); /* Markdown */

#endif
