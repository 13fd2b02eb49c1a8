/* file.h - whole files, read with a limit and written so that a crash leaves the old or the
 * new. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Reads a file or a pipe to its end; "-" is standard input. Gives *out (free it; one NUL
 * follows the data) and *size. -EFBIG when it holds more than `most` bytes, -EINVAL for a
 * folder; other errors are the system's. The message names the path. On error the outputs are
 * untouched. */
int file_read(const char *path, size_t most, char **out, size_t *size, struct error *err);

/* A file in the making: written beside its name, which it gets when it is whole and durable, so
 * that nothing half-written ever stands there. A pipe or a device is written to instead. */
struct file_aside {
	int fd;
	bool through;     /* path is no plain file */
	char path[4096], aside[4096];
};

/* Begins one. On error nothing is left, *err says what. */
int file_aside_open(struct file_aside *a, const char *path, mode_t mode, struct error *err);
/* Appends all of it, or fails with the system's error. */
int file_aside_write(struct file_aside *a, const void *data, size_t size, struct error *err);
/* Closes. With rc 0 it fsyncs, renames and fsyncs the folder, and returns what came of that; with
 * another nothing is left and rc is returned, err as it was. */
int file_aside_close(struct file_aside *a, int rc, struct error *err);

/* All of these in one. */
int file_write(const char *path, const void *data, size_t size, mode_t mode, struct error *err);

/* Renames a file that is durable already, over what stands at `to`, durably. */
int file_move(const char *from, const char *to, struct error *err);

/* A name that was just given in path's folder, or taken away, is durable only once the folder is: now, as far as
 * the system can. */
void file_sync_folder(const char *path);

/* mkdir -p with mode 0700 for what it makes. */
int file_make_folder(const char *path, struct error *err);

#endif
