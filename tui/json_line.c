/* Finds the line of a key by searching the text, because jansson reports lines of syntax errors
 * only. */
#include "tui/json_line.h"

#include <stdio.h>
#include <string.h>

int json_line(const char *json, const char *key)
{
	char quoted[80];
	const char *at;
	int line = 1;

	snprintf(quoted, sizeof(quoted), "\"%s\"", key);
	at = strstr(json, quoted);
	for (const char *p = json; at ? p < at : *p != '\0'; p++)
		line += *p == '\n';
	return line;
}
