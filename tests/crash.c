/* crash.c - kills a process at its k-th durable step, for tests/crash_points_test.sh and the test
 * of the store.
 *
 * The library is loaded with LD_PRELOAD. It replaces the functions by which the program and SQLite
 * change files. Each such change is a step, and a crash can leave something incomplete only at a
 * step.
 *
 *     CRASH_UNDER    a folder: only changes of files in it are steps
 *     CRASH_PROGRAM  the name of the only program that is killed
 *     CRASH_AT       number of the step at which the process dies, from 1; 0 or absent: never
 *     CRASH_LIST     a file to which a line is appended for every step
 *     CRASH_MARK     a file that is created at the kill. While it exists, no process is killed, so
 *                    that a successor with the same environment survives
 *     CRASH_LOST     a folder on the same file system. At the kill, all changes that are not synced
 *                    are undone, the newest first, as a power loss may undo them: bytes and sizes
 *                    of files; creations, renames, links and removals in folders. Until then this
 *                    folder keeps removed and replaced files. New folders and output of stdio are
 *                    not undone
 *
 * A write counts as two steps: the process is killed before it, or after half of it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long steps;

static bool is_target(void)
{
	const char *program = getenv("CRASH_PROGRAM");

	return getenv("CRASH_UNDER") &&
	       (!program || strcmp(program, program_invocation_short_name) == 0);
}

static bool path_counts(const char *path)
{
	const char *under = getenv("CRASH_UNDER");
	char full[PATH_MAX];

	if (!is_target())
		return false;
	if (path[0] != '/') {
		char here[PATH_MAX / 2];

		if (!getcwd(here, sizeof(here)) ||
		    snprintf(full, sizeof(full), "%s/%s", here, path) >= (int)sizeof(full))
			return false;
		path = full;
	}
	/* Logs do not count, because they are not durable. */
	return strncmp(path, under, strlen(under)) == 0 &&
	       !strstr(path + strlen(under), "/log/");
}

static bool file_counts(int fd, char path[PATH_MAX])
{
	char link[64];
	struct stat st;
	ssize_t n;

	if (!is_target() || fstat(fd, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	return path_counts(path);
}

/* Counts a step. Returns true if the process must die at this step. */
static bool step(const char *operation, const char *path)
{
	const char *at = getenv("CRASH_AT"), *list = getenv("CRASH_LIST"),
		   *mark = getenv("CRASH_MARK");
	long n = atomic_fetch_add(&steps, 1) + 1;

	if (list) {
		char line[PATH_MAX + 64];
		int size = snprintf(line, sizeof(line), "%s %s\n", operation, path);
		int fd = (int)syscall(SYS_openat, AT_FDCWD, list, O_WRONLY | O_APPEND | O_CREAT,
				      0600);

		if (fd >= 0) {
			syscall(SYS_write, fd, line, size);
			syscall(SYS_close, fd);
		}
	}
	return at && n == atol(at) && !(mark && access(mark, F_OK) == 0);
}

/* ---- changes that are not synced ---- */

enum undo_kind { UNDO_WRITE, UNDO_CREATE, UNDO_RENAME, UNDO_REMOVE };

struct undo {
	struct undo *older;
	enum undo_kind kind;
	char path[PATH_MAX];
	char from[PATH_MAX]; /* former name of a renamed file */
	/* A copy of the file that was at `path` before; "": there was none */
	char kept[PATH_MAX];
	off_t at, size; /* for UNDO_WRITE: offset of the write, and former size of the file */
	ssize_t n;
	char *bytes; /* the n former bytes */
};

static struct undo *newest;
/* Held while a file is changed and while the change is recorded. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static const char *lost(void)
{
	return getenv("CRASH_LOST");
}

/* Makes a path absolute, as /proc shows it, because changes of a file are found by its name. */
static void absolute(const char *path, char to[PATH_MAX])
{
	char here[PATH_MAX / 2] = "";

	if (path[0] != '/' && getcwd(here, sizeof(here)))
		snprintf(to, PATH_MAX, "%s/%.2000s", here, path);
	else
		snprintf(to, PATH_MAX, "%s", path);
}

/* Records a change before it is made. Returns NULL if CRASH_LOST is not set. */
static struct undo *remember(enum undo_kind kind, const char *path)
{
	static int kept;
	struct undo *u = lost() ? calloc(1, sizeof(*u)) : NULL;
	struct stat st;

	if (!u)
		return NULL;
	u->kind = kind;
	absolute(path, u->path);
	if (kind != UNDO_WRITE && lstat(u->path, &st) == 0)
		snprintf(u->kept, sizeof(u->kept), "%.2000s/%ld.%d", lost(), (long)getpid(),
			 kept++);
	u->older = newest;
	return newest = u;
}

/* Records n bytes that the caller will overwrite or cut off. Opens no file descriptor, because
 * closing it would release SQLite's locks on the file. */
static void remember_bytes(int fd, const char *path, off_t at, size_t n)
{
	struct undo *u = remember(UNDO_WRITE, path);
	struct stat st;

	if (!u || fstat(fd, &st) != 0)
		return;
	u->at = at;
	u->size = st.st_size;
	if (at < st.st_size) {
		u->bytes = malloc(n);
		u->n = u->bytes ? syscall(SYS_pread64, fd, u->bytes, n, at) : 0;
	}
}

static bool in_folder(const char *path, const char *folder)
{
	const char *slash = strrchr(path, '/');

	return slash && strlen(folder) == (size_t)(slash - path) &&
	       memcmp(path, folder, (size_t)(slash - path)) == 0;
}

/* Forgets the recorded changes that a sync has made durable: bytes of a file, or names in a
 * folder. */
static void synced(const char *path)
{
	struct undo **at = &newest;

	pthread_mutex_lock(&changing);
	while (*at) {
		struct undo *u = *at;

		if (u->kind == UNDO_WRITE ? strcmp(u->path, path) != 0 :
					    !in_folder(u->path, path)) {
			at = &u->older;
			continue;
		}
		*at = u->older;
		if (u->kept[0])
			syscall(SYS_unlinkat, AT_FDCWD, u->kept, 0);
		free(u->bytes);
		free(u);
	}
	pthread_mutex_unlock(&changing);
}

static void undo(const struct undo *u)
{
	int fd;

	if (u->kind == UNDO_WRITE) {
		fd = (int)syscall(SYS_openat, AT_FDCWD, u->path, O_WRONLY, 0);
		if (u->n > 0)
			syscall(SYS_pwrite64, fd, u->bytes, u->n, u->at);
		syscall(SYS_ftruncate, fd, u->size);
		syscall(SYS_close, fd);
		return;
	}
	if (u->kind == UNDO_CREATE)
		syscall(SYS_unlinkat, AT_FDCWD, u->path, 0);
	if (u->kind == UNDO_RENAME)
		syscall(SYS_renameat, AT_FDCWD, u->path, AT_FDCWD, u->from);
	if (u->kept[0])
		syscall(SYS_renameat, AT_FDCWD, u->kept, AT_FDCWD, u->path);
}

/* Writes the new name of a renamed file into the recorded changes of this file. */
static void renamed(const char *from, const char *to)
{
	char old[PATH_MAX];

	absolute(from, old);
	for (struct undo *u = newest; u; u = u->older)
		if (u->kind == UNDO_WRITE && strcmp(u->path, old) == 0)
			absolute(to, u->path);
}

static void die(void)
{
	const char *mark = getenv("CRASH_MARK");

	/* Other threads must not change files while changes are undone. */
	pthread_mutex_lock(&changing);
	for (const struct undo *u = newest; u; u = u->older)
		undo(u);
	if (mark)
		syscall(SYS_close,
			syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT, 0600));
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static void before(const char *operation, const char *path)
{
	if (step(operation, path))
		die();
}

#define REAL(result, name, ...) \
	static result (*real)(__VA_ARGS__); \
	if (!real) \
	*(void **)&real = dlsym(RTLD_NEXT, name)

static ssize_t written(int fd, const void *data, size_t size, off_t at, bool has_at)
{
	char path[PATH_MAX];
	ssize_t n;
	bool counts = file_counts(fd, path);

	if (counts) {
		before("write", path);
		if (step("half a write", path)) {
			if (has_at)
				syscall(SYS_pwrite64, fd, data, size / 2, at);
			else
				syscall(SYS_write, fd, data, size / 2);
			die();
		}
	}
	if (!counts || !lost())
		return has_at ? syscall(SYS_pwrite64, fd, data, size, at)
			      : syscall(SYS_write, fd, data, size);
	pthread_mutex_lock(&changing);
	remember_bytes(fd, path, has_at ? at : (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR), size);
	n = has_at ? syscall(SYS_pwrite64, fd, data, size, at) :
		     syscall(SYS_write, fd, data, size);
	pthread_mutex_unlock(&changing);
	return n;
}

ssize_t write(int fd, const void *data, size_t size)
{
	return written(fd, data, size, 0, false);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	return written(fd, data, size, at, true);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
	return written(fd, data, size, at, true);
}

int fsync(int fd)
{
	char path[PATH_MAX];

	if (file_counts(fd, path))
		before("fsync", path);
	if (lost() && file_counts(fd, path))
		synced(path);
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	char path[PATH_MAX];

	if (file_counts(fd, path))
		before("fdatasync", path);
	if (lost() && file_counts(fd, path))
		synced(path);
	return (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t size)
{
	char path[PATH_MAX];
	struct stat st;

	if (file_counts(fd, path))
		before("ftruncate", path);
	if (lost() && file_counts(fd, path) && fstat(fd, &st) == 0) {
		pthread_mutex_lock(&changing);
		remember_bytes(fd, path, size,
			       st.st_size > size ? (size_t)(st.st_size - size) : 0);
		pthread_mutex_unlock(&changing);
	}
	return (int)syscall(SYS_ftruncate, fd, size);
}

int ftruncate64(int fd, off64_t size)
{
	return ftruncate(fd, size);
}

int rename(const char *from, const char *to)
{
	if (path_counts(to))
		before("rename", to);
	if (path_counts(to) && lost()) {
		struct undo *u;
		int rc;

		pthread_mutex_lock(&changing);
		u = remember(UNDO_RENAME, to);
		if (u)
			absolute(from, u->from);
		if (u && u->kept[0])
			syscall(SYS_linkat, AT_FDCWD, to, AT_FDCWD, u->kept, 0);
		rc = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
		renamed(from, to);
		pthread_mutex_unlock(&changing);
		return rc;
	}
	return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int link(const char *from, const char *to)
{
	if (path_counts(to))
		before("link", to);
	if (path_counts(to) && access(to, F_OK) != 0) {
		pthread_mutex_lock(&changing);
		remember(UNDO_CREATE, to);
		pthread_mutex_unlock(&changing);
	}
	return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
	if (path_counts(path))
		before("unlink", path);
	if (path_counts(path) && lost() && access(path, F_OK) == 0) {
		struct undo *u;
		int rc;

		pthread_mutex_lock(&changing);
		u = remember(UNDO_REMOVE, path);
		rc = (int)(u ? syscall(SYS_renameat, AT_FDCWD, path, AT_FDCWD, u->kept)
			     : syscall(SYS_unlinkat, AT_FDCWD, path, 0));
		pthread_mutex_unlock(&changing);
		return rc;
	}
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode)
{
	if (path_counts(path))
		before("mkdir", path);
	return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if ((flags & (O_CREAT | O_TRUNC)) && path_counts(path))
		before("create", path);
	if ((flags & O_CREAT) && path_counts(path) && access(path, F_OK) != 0) {
		pthread_mutex_lock(&changing);
		remember(UNDO_CREATE, path);
		pthread_mutex_unlock(&changing);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return open(path, flags, mode);
}

/* stdio makes system calls that a library cannot replace. Therefore its functions count as
 * steps. */
int fflush(FILE *f)
{
	char path[PATH_MAX];
	REAL(int, "fflush", FILE *);

	if (f && file_counts(fileno(f), path))
		before("fflush", path);
	return real(f);
}

FILE *fopen(const char *path, const char *mode)
{
	REAL(FILE *, "fopen", const char *, const char *);

	if (mode[0] != 'r' && path_counts(path))
		before("create", path);
	return real(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

size_t fwrite(const void *data, size_t size, size_t n, FILE *f)
{
	char path[PATH_MAX];
	REAL(size_t, "fwrite", const void *, size_t, size_t, FILE *);

	if (file_counts(fileno(f), path)) {
		before("fwrite", path);
		if (step("half an fwrite", path)) {
			real(data, size, n / 2, f);
			fflush(f);
			die();
		}
	}
	return real(data, size, n, f);
}
