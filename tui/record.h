/* record.h - a controller's words kept in a file: what a console saw, to be seen again.
 *
 * The file is a row of (u32 length, i64 at_us, message bytes), little endian, nothing else;
 * at_us is the writing console's clock when the message came. A file that ends in the middle of
 * a message (a console that was killed) is read up to there.
 */
#ifndef TUI_RECORD_H
#define TUI_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum { RECORD_MESSAGE_MOST = 256 << 20 };
#define RECORD_MOST_US (INT64_C(1) << 58)

struct record_reader; /* opaque: the whole file, mapped */

/* Maps a recorded file until record_close. By errno, or -EBADMSG: no recorded stream. */
int record_open(struct record_reader **out, const char *path, struct error *err);
/* Borrows bytes that live elsewhere until record_close. Public for tests and fuzzers. */
struct record_reader *record_open_memory(const void *data, size_t size);
void record_close(struct record_reader *r);
/* When the next message came, within +-RECORD_MOST_US; -ENODATA at the end; -EBADMSG: no recorded stream. */
int record_next_at(const struct record_reader *r, int64_t *at_us);
/* The next message, borrowed until record_close. */
int record_next(struct record_reader *r, int64_t *at_us, const void **data, size_t *size);

/* Appends one. 0, or a negative errno. */
int record_write(FILE *to, int64_t at_us, const void *data, size_t size);

#endif
