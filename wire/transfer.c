/* transfer.c - carries files between controller and agents in parts. A part is so small that the
 * event loop itself can read or write it. */
#include "wire/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

enum {
	/* Number of parts that are requested ahead. Together these parts have 4 MiB, which is
	 * enough for 100 Mbit/s over 300 ms. */
	PARTS_AHEAD = 16,
	PATIENCE_US = 3000000
};

static void drop_file(struct transfer *t)
{
	if (t->fd < 0)
		return;
	close(t->fd);
	unlink(t->aside);
	t->fd = -1;
}

void transfer_cancel(struct transfer *t)
{
	drop_file(t);
	t->state = TRANSFER_IDLE;
}

static void fail(struct transfer *t, const char *why)
{
	drop_file(t);
	snprintf(t->reason, sizeof(t->reason), "%.180s", why);
	t->state = TRANSFER_FAILED;
}

static void fail_with_errno(struct transfer *t, const char *path)
{
	struct error err = { "" };

	error_set(&err, -errno, "%s: %s", path, strerror(errno));
	fail(t, err.text);
}

void transfer_begin(struct transfer *t, const struct msg_file_ask *ask, const char *path,
		    int64_t now_us)
{
	struct error err = { "" };
	char *slash;

	transfer_cancel(t);
	t->ask = *ask;
	t->have = t->asked = t->total = 0;
	t->heard_us = now_us;
	t->state = TRANSFER_RUNNING;
	snprintf(t->path, sizeof(t->path), "%s", path);
	snprintf(t->aside, sizeof(t->aside), "%s", path);
	slash = strrchr(t->aside, '/');
	if (slash) {
		*slash = 0;
		if (file_make_folder(t->aside, &err) < 0) {
			fail(t, err.text);
			return;
		}
	}
	t->fd = file_make_aside(t->aside, t->path, FILE_RESULT);
	if (t->fd < 0) {
		error_set(&err, t->fd, "%s: %s", path, strerror(-t->fd));
		fail(t, err.text);
	}
}

static bool may_ask(const struct transfer *t)
{
	if (t->total == 0)
		/* The length of the file is known only after the first part. */
		return t->asked == 0;
	return t->asked < t->total &&
	       t->asked - t->have < (uint64_t)PARTS_AHEAD * MSG_FILE_BYTES;
}

bool transfer_next(struct transfer *t, struct msg_file_ask *ask, int64_t now_us)
{
	if (t->state != TRANSFER_RUNNING)
		return false;
	if (now_us - t->heard_us > PATIENCE_US) {
		t->asked = t->have;
		t->heard_us = now_us;
	}
	if (!may_ask(t))
		return false;
	*ask = t->ask;
	ask->offset = t->asked;
	t->asked += MSG_FILE_BYTES;
	return true;
}

/* Completes the file and sets its modification time to the modification time of the sender's
 * file. A later process compares this time with the time of the sender's file. If they are equal,
 * the file has not changed. */
static void finish(struct transfer *t)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = t->modified_us / 1000000,
				       .tv_nsec = t->modified_us % 1000000 * 1000 } };
	bool good = t->modified_us <= 0 || futimens(t->fd, times) == 0;

	good = close(t->fd) == 0 && good;
	t->fd = -1;
	if (good && rename(t->aside, t->path) == 0) {
		t->state = TRANSFER_DONE;
		return;
	}
	fail_with_errno(t, t->path);
	unlink(t->aside);
}

/* Returns true if an earlier process has already fetched this file of the corpus. The proof is an
 * equal size and modification time. Always returns false for the file of a stage: such a file is
 * requested again only if its hash is wrong. */
static bool is_unchanged(const struct transfer *t)
{
	struct stat st;

	return t->ask.kind == FILE_CORPUS && stat(t->path, &st) == 0 &&
	       (uint64_t)st.st_size == t->total &&
	       st.st_mtim.tv_sec * INT64_C(1000000) + st.st_mtim.tv_nsec / 1000 == t->modified_us;
}

bool transfer_take(struct transfer *t, const struct msg *m, int64_t now_us)
{
	const struct msg_file_part *p = &m->u.file_part;
	ssize_t written;

	if (t->state != TRANSFER_RUNNING || p->kind != t->ask.kind ||
	    p->iteration != t->ask.iteration || p->index != t->ask.index)
		return false;
	t->heard_us = now_us;
	if (p->total == 0) {
		fail(t, p->text);
		return true;
	}
	if (p->offset != t->have)
		/* Ignored: a part that has arrived already, or a part after a missing part. */
		return true;
	if (m->body_size == 0 || m->body_size > MSG_FILE_BYTES || p->total < t->have ||
	    m->body_size > p->total - t->have || (t->total && p->total != t->total)) {
		fail(t, "the file changed while it was sent");
		return true;
	}
	written = pwrite(t->fd, m->body, m->body_size, (off_t)t->have);
	if (written != (ssize_t)m->body_size) {
		errno = written < 0 ? errno : ENOSPC;
		fail_with_errno(t, t->aside);
		return true;
	}
	t->total = p->total;
	t->modified_us = p->modified_us;
	if (t->have == 0 && is_unchanged(t)) {
		drop_file(t);
		t->state = TRANSFER_DONE;
		return true;
	}
	t->have += m->body_size;
	if (t->asked < t->have)
		t->asked = t->have;
	if (t->have == t->total)
		finish(t);
	return true;
}

int64_t transfer_deadline_us(const struct transfer *t)
{
	if (t->state != TRANSFER_RUNNING)
		return INT64_MAX;
	return may_ask(t) ? 0 : t->heard_us + PATIENCE_US + 1;
}

/* ---- sending ---- */

void transfer_refuse(const struct msg_file_ask *ask, const char *why, struct msg *m)
{
	*m = (struct msg){ .type = MSG_FILE_PART };
	m->u.file_part = (struct msg_file_part){ .kind = ask->kind,
						 .iteration = ask->iteration,
						 .index = ask->index,
						 .offset = ask->offset };
	snprintf(m->u.file_part.text, sizeof(m->u.file_part.text), "%.150s", why);
}

void transfer_answer(const struct msg_file_ask *ask, const char *path, struct msg *m, void *body)
{
	struct error err = { "" };
	struct stat st;
	ssize_t got = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		errno = EINVAL;
	else if (fd >= 0)
		got = pread(fd, body, MSG_FILE_BYTES, (off_t)ask->offset);
	if (got <= 0) {
		error_set(&err, -EIO, "%s: %s", path,
			  got == 0 ? "it has no such part" : strerror(errno));
		transfer_refuse(ask, err.text, m);
	} else {
		transfer_refuse(ask, "", m);
		m->u.file_part.total = (uint64_t)st.st_size;
		m->u.file_part.modified_us =
			st.st_mtim.tv_sec * INT64_C(1000000) + st.st_mtim.tv_nsec / 1000;
		m->body = body;
		m->body_size = (size_t)got;
	}
	if (fd >= 0)
		close(fd);
}
