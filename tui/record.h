/* record.h - a controller's messages in a file, for playing them again.
 *
 * The file is a sequence of (u32 length, i64 at_us, message bytes) in little endian. at_us is the
 * recording console's clock when the message arrived. A file that ends inside a message, because
 * the console was killed, is read up to that message.
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

struct record_reader; /* opaque: the whole file, mapped into memory */

/* Maps a recording until record_close. -EINVAL: the file is not a recording, is damaged, or is of
 * another version; other errors are the system's. */
int record_open(struct record_reader **out, const char *path, struct error *err);
/* Reads a recording in memory, borrowed until record_close. Public for tests and fuzzers. */
struct record_reader *record_open_memory(const void *data, size_t size);
void record_close(struct record_reader *r);
/* Gives the arrival time of the next message, within +-RECORD_MOST_US. -ENODATA: the end; -EBADMSG:
 * the file is not a recording. */
int record_next_at(const struct record_reader *r, int64_t *at_us);
/* Gives the next message, borrowed until record_close. Errors as of record_next_at. */
int record_next(struct record_reader *r, int64_t *at_us, const void **data, size_t *size);

/* Appends a message. -EIO: writing failed. */
int record_write(FILE *to, int64_t at_us, const void *data, size_t size);

#endif
