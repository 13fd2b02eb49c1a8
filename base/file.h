/* file.h - reads whole files with a size limit, and writes them so that a crash leaves the old or
 * the new contents. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Reads a file or a pipe to its end; "-" is standard input. *out is followed by one NUL; the caller
 * frees it. -EFBIG: the file has more than `most` bytes; -EINVAL: the path is a folder; other
 * errors are the system's. The message names the path. The outputs are written only on success. */
int file_read(const char *path, size_t most, char **out, size_t *size, struct error *err);

/* Reads a text that a person may have written: drops the byte order mark with which some editors
 * begin a file. -EINVAL also if the file is compressed, UTF-16 or a Git LFS pointer (not_text.h).
 * In all other respects the same as file_read. */
int file_read_text(const char *path, size_t most, char **out, size_t *size, struct error *err);

/* Modes of a new file. FILE_RESULT: the umask decides who may read the file. FILE_PRIVATE: only the
 * owner may read it. */
enum { FILE_RESULT = 0666, FILE_PRIVATE = 0600 };

/* ---- temporary names ----
 * A temporary name is the name of the file with a random number, so that writers in different
 * containers cannot choose the same name. A writer holds a lock on its file (flock). A temporary
 * file without a lock was left by a process that was killed. It is removed when another temporary
 * file for the same path is created. */

enum { FILE_ASIDE = 4096 /* room for a temporary name */ };

/* Creates a temporary file for `path`, locks it, and writes its name to `aside`. Returns its
 * descriptor, which holds the lock until the descriptor is closed, or a negative errno. */
int file_make_aside(char aside[FILE_ASIDE], const char *path, mode_t mode);
/* Returns true if `ending` can be the end of a temporary name. */
bool file_is_aside(const char *ending);
/* Removes a temporary file, unless a process holds its lock or the file system has no locks. */
void file_remove_aside(const char *aside);

/* A file that is being written under a temporary name. file_aside_close renames it to its final
 * name once it is durable. If the path is a link, its target is replaced, and the link stays.
 * Pipes, devices and open descriptors (/dev/stdout, /dev/fd/3) are written directly, without a
 * temporary name. A descriptor is written from its current offset on. */
struct file_aside {
	int fd;
	bool through; /* the file is a pipe, a device or a descriptor, which is written directly */
	char path[4096], aside[FILE_ASIDE];
};

/* Creates the temporary file. Leaves nothing on error. mode: FILE_RESULT or FILE_PRIVATE. */
int file_aside_open(struct file_aside *a, const char *path, mode_t mode, struct error *err);
/* Appends `size` bytes. Errors are the system's. */
int file_aside_write(struct file_aside *a, const void *data, size_t size, struct error *err);
/* Closes the file. If rc is 0, syncs the file, renames it, syncs its folder, and returns the
 * result. Otherwise removes the temporary file and returns rc, with err unchanged. */
int file_aside_close(struct file_aside *a, int rc, struct error *err);

/* Writes a whole file: open, write and close in one call. */
int file_write(const char *path, const void *data, size_t size, mode_t mode, struct error *err);
/* Writes a whole file as file_write does. If `path` is a link, the file replaces the link. The
 * link's target stays unchanged, because it may belong to another folder. */
int file_replace(const char *path, const void *data, size_t size, mode_t mode, struct error *err);

/* Renames a file that is already durable, replaces the file at `to`, and makes the renaming
 * durable. */
int file_move(const char *from, const char *to, struct error *err);

/* Syncs the folder of a path. Until then a crash can undo the creation, renaming or removal of a
 * name in it. Errors are ignored, because some file systems cannot sync a folder. */
void file_sync_folder(const char *path);

/* Removes a folder with everything in it, as far as it can be removed. Links are not followed. */
void file_remove_folder(const char *path);

/* Returns true if the path ends with this text, such as ".jsonl". */
bool file_ends_in(const char *path, const char *ending);

/* Returns true if both paths exist and lead to the same file or folder. */
bool file_is_same(const char *a, const char *b);

/* Returns true if file_write to this path would replace a file that has contents. */
bool file_would_replace(const char *path);

/* Refuses an output file that is the input file, or a file in the input folder. A link to such a
 * file is refused, too. option: the option of the output file, such as "--out". -EINVAL. */
int file_refuse_input(const char *option, const char *out, const char *input, struct error *err);

/* Returns true if the folder has a file of this name. */
bool file_exists(const char *folder, const char *name);

/* Creates a folder and the missing folders above it, with the modes that the umask gives. */
int file_make_folder(const char *path, struct error *err);
/* Creates a folder and the missing folders above it for this user's keys and settings, with mode
 * 0700. */
int file_make_private_folder(const char *path, struct error *err);
/* Creates a folder as file_make_folder does, and checks that this user may create files in it. */
int file_make_writable_folder(const char *path, struct error *err);

/* Room for the path of a temporary folder. ssh adds 58 bytes to that path for its sockets, and the
 * path of a socket has at most 107 bytes. */
enum { FILE_TEMPORARY = 50 };
/* Creates a folder NAME-XXXXXX for this user, with a new name, in the first of `parents` in which
 * a folder can be created. Skips a parent that is NULL or relative, or whose path is too long. On
 * failure the folder's name is "". */
int file_make_temporary(char folder[FILE_TEMPORARY], const char *name, const char *const *parents,
			size_t n, struct error *err);

#endif
