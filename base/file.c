/* Reads and writes whole files.
 *
 * Settings, keys, checkpoints and exports must never be half-written. A file is therefore written
 * under a temporary name, synced, and then renamed. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/not_text.h"

/* First size of the buffer for a file whose size is unknown. */
#define FIRST_READ ((size_t)1 << 16)
/* largest number of links that are followed one after another, as in the kernel */
enum { LINKS_MOST = 40 };

static int fail_with_errno(struct error *err, const char *path)
{
	int code = errno;

	return error_set(err, -code, "%s: %s", path, strerror(code));
}

static ssize_t read_all(int fd, char *to, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, to + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Reads up to `most` + 1 bytes. The additional byte shows that the file is too large. */
static int read_growing(int fd, const char *name, size_t most, size_t room, char **out,
			size_t *size, struct error *err)
{
	char *data = NULL, *more;
	size_t held = 0;
	ssize_t got;

	for (room = room < most ? room : most;; room = room < most / 2 ? 2 * room : most) {
		more = realloc(data, room + 2);
		if (!more) {
			free(data);
			return error_set(err, -ENOMEM, "%s: out of memory", name);
		}
		data = more;
		got = read_all(fd, data + held, room + 1 - held);
		if (got < 0) {
			int rc = fail_with_errno(err, name);

			free(data);
			return rc;
		}
		held += (size_t)got;
		if (held <= room)
			break;
		if (room == most) {
			free(data);
			return error_set(err, -EFBIG, "%s: more than the %zu bytes allowed",
					 name, most);
		}
	}
	data[held] = '\0';
	*out = data;
	*size = held;
	return 0;
}

int file_read(const char *path, size_t most, char **out, size_t *size, struct error *err)
{
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc;
	size_t room = FIRST_READ;
	struct stat st;

	if (fd < 0)
		return fail_with_errno(err, path);
	if (fstat(fd, &st) != 0) {
		rc = fail_with_errno(err, name);
	} else if (S_ISDIR(st.st_mode)) {
		rc = error_set(err, -EINVAL, "%s: a folder, not a file", name);
	} else if (S_ISREG(st.st_mode) && st.st_size > 0 && (uintmax_t)st.st_size > most) {
		rc = error_set(err, -EFBIG, "%s: %lld bytes, more than the %zu allowed", name,
			       (long long)st.st_size, most);
	} else {
		if (S_ISREG(st.st_mode) && st.st_size > 0)
			room = (size_t)st.st_size;
		rc = read_growing(fd, name, most, room, out, size, err);
	}
	if (!standard)
		close(fd);
	return rc;
}

int file_read_text(const char *path, size_t most, char **out, size_t *size, struct error *err)
{
	const char *reason;
	char *text;
	size_t n, mark;
	int rc = file_read(path, most, &text, &n, err);

	if (rc != 0)
		return rc;
	reason = not_text_reason(text, n);
	if (reason) {
		free(text);
		return error_set(err, -EINVAL, "%s: %s", path, reason);
	}
	mark = byte_order_mark(text, n);
	memmove(text, text + mark, n - mark + 1);
	*out = text;
	*size = n - mark;
	return 0;
}

static int write_all(int fd, const char *from, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, from, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		from += n;
		size -= (size_t)n;
	}
	return 0;
}

void file_sync_folder(const char *path)
{
	char folder[PATH_MAX];
	char *slash;
	int fd;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash)
		strcpy(folder, ".");
	else
		slash[slash == folder] = '\0';
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

int file_move(const char *from, const char *to, struct error *err)
{
	if (rename(from, to) != 0)
		return fail_with_errno(err, to);
	file_sync_folder(to);
	return 0;
}

/* ---- temporary names ---- */

static const char aside_mark[] = ".tmp.";

enum {
	ASIDE_MARK = sizeof(aside_mark) - 1,
	ASIDE_DIGITS = 16,
	/* Limit of the attempts to create and lock a file. An attempt fails if another process
	 * removes the new file before it is locked. */
	ASIDE_TRIES = 100
};

bool file_is_aside(const char *ending)
{
	return strncmp(ending, aside_mark, ASIDE_MARK) == 0 &&
	       strspn(ending + ASIDE_MARK, "0123456789abcdef") == ASIDE_DIGITS &&
	       !ending[ASIDE_MARK + ASIDE_DIGITS];
}

void file_remove_aside(const char *aside)
{
	/* Some file systems lock only files that are open for writing. */
	int fd = open(aside, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlink(aside);
	close(fd);
}

/* Removes temporary files for this path that killed writers have left. */
static void remove_leftovers(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX], aside[PATH_MAX];
	size_t n = strlen(name);
	DIR *d;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash + 1 - path) : 2,
		 slash ? path : "./");
	d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));)
		if (strncmp(e->d_name, name, n) == 0 && file_is_aside(e->d_name + n) &&
		    snprintf(aside, sizeof(aside), "%s%s", folder, e->d_name) < (int)sizeof(aside))
			file_remove_aside(aside);
	if (d)
		closedir(d);
}

/* Locks a new temporary file. Returns false if another process has removed the file or is about
 * to do so. Until the lock is set, other processes believe that a killed writer has left the
 * file. Returns true on a file system without locks, because file_remove_aside removes nothing
 * there. */
static bool lock_aside(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return errno != EWOULDBLOCK;
	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

int file_make_aside(char aside[FILE_ASIDE], const char *path, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	uint64_t number;

	remove_leftovers(path);
	for (int i = 0; i < ASIDE_TRIES; i++) {
		int fd;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -errno;
		if (snprintf(aside, FILE_ASIDE, "%s%s%016" PRIx64, path, aside_mark, number) >=
		    FILE_ASIDE)
			return -ENAMETOOLONG;
		fd = open(aside, flags, mode);
		if (fd >= 0 && lock_aside(fd))
			return fd;
		if (fd < 0 && errno != EEXIST)
			return -errno;
		if (fd >= 0)
			close(fd);
	}
	return -EAGAIN;
}

/* ---- files that are written aside ---- */

/* Returns the open descriptor of this process that the path names, such as 3 for /dev/fd/3; -1:
 * the path names no descriptor. */
static int named_descriptor(const char *path)
{
	char folder[PATH_MAX], given[PATH_MAX], own[PATH_MAX];
	const char *name = strrchr(path, '/');
	char *end;
	long number;

	if (!name || name == path)
		return -1;
	snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
	number = strtol(name + 1, &end, 10);
	if (end == name + 1 || *end || number < 0 || number > INT_MAX ||
	    !realpath(folder, given) || !realpath("/proc/self/fd", own))
		return -1;
	return strcmp(given, own) == 0 ? (int)number : -1;
}

/* Replaces a path that is a link by the link's target, which may be missing. Stops at a link to an
 * open descriptor, such as the target of /dev/stdout, and returns the descriptor; otherwise -1. */
static int follow_links(char path[PATH_MAX])
{
	char target[PATH_MAX];

	for (int links = 0; links < LINKS_MOST; links++) {
		const char *slash = strrchr(path, '/');
		size_t before = slash ? (size_t)(slash + 1 - path) : 0;
		int descriptor = named_descriptor(path);
		ssize_t n;

		if (descriptor >= 0)
			return descriptor;
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0 && target[0] == '/')
			before = 0;
		if (n <= 0 || before + (size_t)n >= PATH_MAX)
			return -1;
		memcpy(path + before, target, (size_t)n);
		path[before + (size_t)n] = '\0';
	}
	return -1;
}

static int open_file_aside(struct file_aside *a, const char *path, mode_t mode, bool follow,
			   struct error *err)
{
	struct stat st;
	int descriptor;
	bool exists;

	if (snprintf(a->path, sizeof(a->path), "%s", path) >= (int)sizeof(a->path))
		return error_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
	descriptor = follow ? follow_links(a->path) : -1;
	exists = stat(a->path, &st) == 0;
	if (descriptor < 0 && exists && S_ISDIR(st.st_mode))
		return error_set(err, -EISDIR, "%s: a folder, not a file", path);
	a->through = descriptor >= 0 || (exists && !S_ISREG(st.st_mode));
	if (!a->through) {
		a->fd = file_make_aside(a->aside, a->path, mode);
		return a->fd < 0 ? error_set(err, a->fd, "%s: %s", path, strerror(-a->fd)) : 0;
	}
	a->fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
				: open(a->path, O_WRONLY | O_CLOEXEC);
	return a->fd < 0 ? fail_with_errno(err, path) : 0;
}

int file_aside_open(struct file_aside *a, const char *path, mode_t mode, struct error *err)
{
	return open_file_aside(a, path, mode, true, err);
}

int file_aside_write(struct file_aside *a, const void *data, size_t size, struct error *err)
{
	return write_all(a->fd, data, size) == 0 ? 0 : fail_with_errno(err, a->path);
}

int file_aside_close(struct file_aside *a, int rc, struct error *err)
{
	if (rc == 0 && !a->through && fsync(a->fd) != 0)
		rc = fail_with_errno(err, a->path);
	if (close(a->fd) != 0 && rc == 0)
		rc = fail_with_errno(err, a->path);
	if (a->through)
		return rc;
	if (rc == 0)
		rc = file_move(a->aside, a->path, err);
	if (rc != 0)
		unlink(a->aside);
	return rc;
}

static int write_aside(const char *path, const void *data, size_t size, mode_t mode, bool follow,
		       struct error *err)
{
	struct file_aside a;
	int rc = open_file_aside(&a, path, mode, follow, err);

	return rc == 0 ? file_aside_close(&a, file_aside_write(&a, data, size, err), err) : rc;
}

int file_write(const char *path, const void *data, size_t size, mode_t mode, struct error *err)
{
	return write_aside(path, data, size, mode, true, err);
}

int file_replace(const char *path, const void *data, size_t size, mode_t mode, struct error *err)
{
	return write_aside(path, data, size, mode, false, err);
}

bool file_ends_in(const char *path, const char *ending)
{
	size_t n = strlen(path), m = strlen(ending);

	return n >= m && strcmp(path + n - m, ending) == 0;
}

bool file_is_same(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool file_would_replace(const char *path)
{
	char target[PATH_MAX];
	struct stat st;

	return snprintf(target, sizeof(target), "%s", path) < (int)sizeof(target) &&
	       follow_links(target) < 0 && stat(target, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size > 0;
}

int file_refuse_input(const char *option, const char *out, const char *input, struct error *err)
{
	bool same = file_is_same(out, input);
	DIR *d = opendir(input);
	struct stat st;

	for (struct dirent *e; d && !same && (e = readdir(d));) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", input, e->d_name);
		same = file_is_same(out, path);
	}
	if (d)
		closedir(d);
	/* Only regular files are refused: a terminal or a pipe may be both input and output. */
	if (!same || stat(out, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	return error_set(err, -EINVAL,
			 "%s %s: this file is an input (%s), which the output would replace: "
			 "choose another name",
			 option, out, input);
}

bool file_exists(const char *folder, const char *name)
{
	char path[4096];
	int n = snprintf(path, sizeof(path), "%s/%s", folder, name);

	return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

static int make_folder(const char *path, mode_t mode, struct error *err)
{
	char part[PATH_MAX];
	struct stat st;

	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return error_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
	for (char *p = part + 1;; p++) {
		char end = *p;

		if (end != '/' && end != '\0')
			continue;
		*p = '\0';
		if (mkdir(part, mode) != 0 && errno != EEXIST)
			return fail_with_errno(err, part);
		*p = end;
		if (end == '\0')
			break;
	}
	if (stat(path, &st) != 0)
		return error_set(err, -errno, "%s: a link whose target cannot be used: %s", path,
				 strerror(errno));
	if (S_ISDIR(st.st_mode))
		return 0;
	errno = ENOTDIR;
	return fail_with_errno(err, path);
}

int file_make_folder(const char *path, struct error *err)
{
	return make_folder(path, 0777, err);
}

int file_make_private_folder(const char *path, struct error *err)
{
	return make_folder(path, 0700, err);
}

int file_make_writable_folder(const char *path, struct error *err)
{
	int rc = file_make_folder(path, err);

	return rc == 0 && access(path, W_OK | X_OK) != 0 ? fail_with_errno(err, path) : rc;
}

int file_make_temporary(char folder[FILE_TEMPORARY], const char *name, const char *const *parents,
			size_t n, struct error *err)
{
	int rc = error_set(err, -ENOENT, "not an absolute path");

	for (size_t i = 0; i < n; i++) {
		if (!parents[i] || *parents[i] != '/')
			continue;
		if (snprintf(folder, FILE_TEMPORARY, "%s/%s-XXXXXX", parents[i], name) >=
		    FILE_TEMPORARY)
			rc = error_set(err, -ENAMETOOLONG, "%s: the name is too long", parents[i]);
		else if (mkdtemp(folder))
			return 0;
		else
			rc = fail_with_errno(err, parents[i]);
	}
	folder[0] = '\0';
	return error_prefix(err, rc, "no folder for temporary files (/tmp, TMPDIR)");
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	remove(path);
	return 0;
}

void file_remove_folder(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
