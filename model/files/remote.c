/* remote.c - runs the commands that keep files in a store on another machine
 * (base/process/command.h). Ctrl-C in a terminal does not reach these commands, so it does not
 * interrupt an upload. Each command has a time limit, because without this limit a run could not
 * end if its store hangs. */
#include "model/files/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process/command.h"
#include "model/hash.h"

enum { PATH = 4096, BLOCK = 1 << 20 };

static const char rclone_prefix[] = "rclone:";

static bool is_rclone(const char *to)
{
	return strncmp(to, rclone_prefix, sizeof(rclone_prefix) - 1) == 0;
}

int remote_check(const char *to, struct error *err)
{
	if (strlen(to) > PATH)
		return error_set(err, -ENAMETOOLONG, "the store's command is too long");
	if (is_rclone(to) && !command_is_installed("rclone"))
		return error_set(err, -ENOENT, "the program rclone is not installed here");
	return 0;
}

static int hash_file(const char *path, uint64_t *hash, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct hash *h = malloc(sizeof(*h));
	char *block = malloc(BLOCK);
	ssize_t n = -1;

	if (h && block && fd >= 0) {
		hash_begin(h);
		while ((n = read(fd, block, BLOCK)) > 0)
			hash_add(h, block, (size_t)n);
	}
	if (n < 0)
		error_set(err, -errno, "%s: %s", path, strerror(errno));
	else
		*hash = hash_end(h);
	if (fd >= 0)
		close(fd);
	free(h);
	free(block);
	return n < 0 ? -EIO : 0;
}

/* Adds the store, the verb and the file's name before the command's error message. Returns rc. */
static int store_failed(struct error *err, int rc, const char *verb, const char *name)
{
	char why[sizeof(err->text)];

	snprintf(why, sizeof(why), "%s", err ? err->text : "");
	return error_set(err, rc, "the store: %s %s %s", verb, name, why);
}

/* Runs `verb NAME` with the file at path as its input or output. */
static int run(struct remote *r, bool put, const char *name, const char *path, struct error *err)
{
	const char *verb = put ? "put" : "get";
	char line[2 * PATH], far[2 * PATH];
	char *const shell[] = { "sh", "-c", line, "sh", (char *)verb, (char *)name, NULL };
	char *const rclone[] = { "rclone", "copyto", put ? (char *)path : far,
				 put ? far : (char *)path, NULL };
	struct command c = { .argv = is_rclone(r->to) ? rclone : shell,
			     .in = -1,
			     .out = -1,
			     .limit_us = r->limit_us,
			     .stopped = &r->stopped };
	int fd = -1, rc;

	snprintf(line, sizeof(line), "%s \"$@\"", r->to);
	snprintf(far, sizeof(far), "%s/%s", r->to + sizeof(rclone_prefix) - 1, name);
	if (r->stopped)
		return error_set(err, -ECANCELED, "the store: %s %s was ended", verb, name);
	if (strlen(r->to) > PATH)
		return error_set(err, -ENAMETOOLONG, "the store's command is too long");
	if (!is_rclone(r->to)) {
		fd = open(path,
			  put ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			  FILE_RESULT);
		if (fd < 0)
			return error_set(err, -errno, "%s: %s", path, strerror(errno));
		*(put ? &c.in : &c.out) = fd;
	}
	rc = command_run(&c, err);
	if (fd >= 0)
		close(fd);
	return rc == 0 ? 0 : store_failed(err, rc, verb, name);
}

int remote_get(struct remote *r, const char *name, const char *path, uint64_t *hash,
	       struct error *err)
{
	char aside[FILE_ASIDE], *slash;
	int rc, lock;

	snprintf(aside, sizeof(aside), "%s", path);
	slash = strrchr(aside, '/');
	if (slash)
		*slash = 0;
	rc = slash ? file_make_folder(aside, err) : 0;
	if (rc != 0)
		return rc;
	lock = file_make_aside(aside, path, FILE_RESULT);
	if (lock < 0)
		return error_set(err, lock, "%s: %s", path, strerror(-lock));
	rc = run(r, false, name, aside, err);
	if (rc == 0)
		rc = hash_file(aside, hash, err);
	if (rc == 0 && rename(aside, path) != 0)
		rc = error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (rc != 0)
		unlink(aside);
	close(lock);
	return rc;
}

int remote_put(struct remote *r, const char *name, const char *path, struct error *err)
{
	char again[PATH + 16];
	uint64_t here = 0, there = 0;
	int rc = hash_file(path, &here, err);

	snprintf(again, sizeof(again), "%s.check", path);
	if (rc == 0)
		rc = run(r, true, name, path, err);
	if (rc == 0)
		rc = remote_get(r, name, again, &there, err);
	unlink(again);
	if (rc == 0 && here != there)
		rc = error_set(err, -EBADMSG, "the store: %s came back with other bytes", name);
	return rc;
}

void remote_stop(struct remote *r)
{
	r->stopped = true;
}
