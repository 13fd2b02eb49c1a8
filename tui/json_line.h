/* json_line.h - finds the line of a key in a JSON text, for error messages. */
#ifndef TUI_JSON_LINE_H
#define TUI_JSON_LINE_H

/* Returns the number of the line, counted from 1, that has the first "key" of the text. Returns the
 * last line if no line has it. */
int json_line(const char *json, const char *key);

#endif
