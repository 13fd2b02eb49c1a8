/* reports.h - random reports of a terminal: what arrives on its line and is no key.
 */
#ifndef TUI_TESTS_REPORTS_H
#define TUI_TESTS_REPORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

enum { REPORT_MOST = 256 };

/* Writes one report and returns its length: focus, cursor, modes, names, colours, sizes, the mouse
 * in every protocol, keys with modifiers, released keys, pasted text. A third of them is cut off
 * somewhere after the first byte. Other bytes follow only after the next ESC. */
size_t report_make(struct rng *r, uint8_t out[REPORT_MOST]);

#endif
