/* record.h - a controller's messages in a file, to be played again.
 *
 * The file is a sequence of (u32 length, i64 at_us, message bytes), little endian. at_us is the
 * time at which the message arrived, on the recording console's clock. If the console was killed,
 * the file may end inside a message; a reader stops before that message.
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

/* Opens a recording and maps it into memory until record_close. -EINVAL: the file is not a
 * recording, is damaged, or is of another version; other errors are the system's. */
int record_open(struct record_reader **out, const char *path, struct error *err);
/* Reads a recording in memory, borrowed until record_close. Public for tests and fuzzers. */
struct record_reader *record_open_memory(const void *data, size_t size);
void record_close(struct record_reader *r);
/* Reads the arrival time of the next message, which is within +-RECORD_MOST_US, but does not fetch
 * the message. -ENODATA: the recording has ended; -EBADMSG: the file is damaged. */
int record_next_at(const struct record_reader *r, int64_t *at_us);
/* Fetches the next message, borrowed until record_close. Errors are those of record_next_at. */
int record_next(struct record_reader *r, int64_t *at_us, const void **data, size_t *size);

/* Appends a message. -EIO: writing failed. */
int record_write(FILE *to, int64_t at_us, const void *data, size_t size);

#endif
