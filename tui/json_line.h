/* json_line.h - where a key stands in a JSON text: jansson tells the line of broken syntax
 * only. */
#ifndef TUI_JSON_LINE_H
#define TUI_JSON_LINE_H

/* The line, from 1, of the first "key" in the text; the last line when it is not there. */
int json_line(const char *json, const char *key);

#endif
