/* timestamp.h - the time of day as text. Logs, events, plain lines and the console's screen all
 * show UTC, so that times of machines in different zones can be compared.
 */
#ifndef BASE_TIMESTAMP_H
#define BASE_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

enum { TIMESTAMP_SIZE = 25, TIMESTAMP_NAME_SIZE = 17 };

/* Writes a time in microseconds since 1970 (clock_wall_us) as RFC 3339: "2026-11-28T14:00:01.250Z".
 * Times before 1970 or after 9999 become the first or the last time of these years. */
void timestamp_text(int64_t wall_us, char text[TIMESTAMP_SIZE]);
/* Writes the time for a file's name: "20261128T140001Z". */
void timestamp_name(int64_t wall_us, char text[TIMESTAMP_NAME_SIZE]);
/* Returns true if the text begins as timestamp_text writes. */
bool timestamp_begins(const char *text);

#endif
