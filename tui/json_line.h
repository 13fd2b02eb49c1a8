/* json_line.h - finds the line of a key in a JSON text, for error messages. */
#ifndef TUI_JSON_LINE_H
#define TUI_JSON_LINE_H

/* Returns the line, from 1, of the first "key" in the text, or the last line if there is none. */
int json_line(const char *json, const char *key);

#endif
