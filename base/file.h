/* file.h - whole files, read with a limit and written so that a crash leaves the old or the
 * new. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Reads a file or a pipe to its end; "-" is standard input. Gives *out (free it; one NUL
 * follows the data) and *size. -EFBIG when it holds more than `most` bytes, -EINVAL for a
 * folder; other errors are the system's. The message names the path. On error the outputs are
 * untouched. */
int file_read(const char *path, size_t most, char **out, size_t *size, struct error *err);

/* Writes path.tmp.PID beside it, fsyncs, renames over path, fsyncs the folder. Nothing
 * half-written ever stands at path. A pipe or a device is written to instead. */
int file_write(const char *path, const void *data, size_t size, mode_t mode, struct error *err);

/* Renames a file that is durable already, over what stands at `to`, durably. */
int file_move(const char *from, const char *to, struct error *err);

/* mkdir -p with mode 0700 for what it makes. */
int file_make_folder(const char *path, struct error *err);

#endif
