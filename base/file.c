#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct error *err, const char *path)
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

int file_read(const char *path, size_t most, char **out, size_t *size, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	struct stat st;
	char *data = NULL;
	ssize_t got;

	if (fd < 0)
		return fail(err, path);
	if (fstat(fd, &st) != 0) {
		rc = fail(err, path);
		goto close_fd;
	}
	if (!S_ISREG(st.st_mode)) {
		rc = error_set(err, -EINVAL, "%s: not a regular file", path);
		goto close_fd;
	}
	if ((size_t)st.st_size > most) {
		rc = error_set(err, -EFBIG, "%s: %lld bytes, more than the %zu allowed", path,
			       (long long)st.st_size, most);
		goto close_fd;
	}
	data = malloc((size_t)st.st_size + 1);
	if (!data) {
		rc = error_set(err, -ENOMEM, "%s: out of memory", path);
		goto close_fd;
	}
	got = read_all(fd, data, (size_t)st.st_size);
	if (got < 0) {
		rc = fail(err, path);
		goto free_data;
	}
	data[got] = '\0';
	*out = data;
	*size = (size_t)got;
	close(fd);
	return 0;

free_data:
	free(data);
close_fd:
	close(fd);
	return rc;
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

/* The rename itself is durable only once its folder is. */
static void sync_folder(const char *path)
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

int file_write(const char *path, const void *data, size_t size, mode_t mode, struct error *err)
{
	char aside[PATH_MAX];
	int fd, rc;

	if (snprintf(aside, sizeof(aside), "%s.tmp.%ld", path, (long)getpid()) >= (int)sizeof(aside))
		return error_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
	fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return fail(err, aside);
	if (write_all(fd, data, size) != 0 || fsync(fd) != 0) {
		rc = fail(err, aside);
		close(fd);
		goto unlink_aside;
	}
	if (close(fd) != 0 || rename(aside, path) != 0) {
		rc = fail(err, path);
		goto unlink_aside;
	}
	sync_folder(path);
	return 0;

unlink_aside:
	unlink(aside);
	return rc;
}

int file_make_folder(const char *path, struct error *err)
{
	char part[PATH_MAX];

	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return error_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
	for (char *p = part + 1;; p++) {
		char was = *p;

		if (was != '/' && was != '\0')
			continue;
		*p = '\0';
		if (mkdir(part, 0700) != 0 && errno != EEXIST)
			return fail(err, part);
		*p = was;
		if (was == '\0')
			return 0;
	}
}
