/* reports.h - random reports of a terminal: bytes that it sends although no key was pressed. */
#ifndef TUI_TESTS_REPORTS_H
#define TUI_TESTS_REPORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

enum { REPORT_MOST = 256 };

/* Writes a random report and returns its length. Kinds: focus, cursor, modes, names, colours,
 * sizes, the mouse in every protocol, keys with modifiers, released keys, pasted text. A third of
 * the reports is cut off after some byte. After such a report, only ESC may follow. */
size_t report_make(struct rng *r, uint8_t out[REPORT_MOST]);

#endif
