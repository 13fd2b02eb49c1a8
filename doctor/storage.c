/* storage.c - checks the disk on which the record and the checkpoints of a run would lie.
 *
 * A commit waits until the record is on the disk, and a checkpoint writes a whole stage. A slow
 * disk therefore slows every iteration. A child process tries the disk, because a disk behind a
 * network can hang.
 */
#include "doctor/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/process/trial.h"

enum {
	TRIAL_BYTES = 32 << 20,
	PART_BYTES = 1 << 20,
	TRIAL_SYNCS = 15,
	TRIAL_US = 4000000, /* after this many microseconds the trial starts no further write */
	LIMIT_S = 20,
	FILES_LEAST = 1000
};
/* Number of bytes that the record needs: for its reserve (store/store.h), and for some growth. */
#define ROOM_LEAST (UINT64_C(64) << 20)
#define ROOM_LITTLE (UINT64_C(4) << 30)
#define WRITE_SLOW 20e6 /* a disk that writes more slowly is reported; bytes/s */
#define SYNC_SLOW 0.1   /* a disk whose sync takes longer is reported; s */

static const char in_memory[] = "lies in memory and is lost when the machine restarts";
static const char on_network[] = "lies behind a network, where locks and syncs are unreliable";

/* File systems on which a record can be lost, or whose locks and syncs do not work reliably. */
static const struct kind {
	int64_t magic;
	const char *name, *why;
} kinds[] = {
	{ 0x01021994, "tmpfs", in_memory },
	{ 0x858458f6, "ramfs", in_memory },
	{ 0x6969, "NFS", on_network },
	{ 0xfe534d42, "SMB", on_network },
	{ 0xff534d42, "CIFS", on_network },
	{ 0x0bd00bd0, "Lustre", on_network },
	{ 0x47504653, "GPFS", on_network },
	{ 0x19830326, "BeeGFS", on_network },
	{ 0x00c36400, "CephFS", on_network },
	{ 0x01021997, "9p", on_network },
	{ 0x65735546, "FUSE", "lies in a file system of a program, whose syncs may do nothing" },
};

/* ---- the trial ---- */

static int write_whole(int fd, const char *data, size_t size)
{
	while (size > 0) {
		const ssize_t n = write(fd, data, size);

		if (n < 0 && errno != EINTR)
			return -errno;
		data += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static double seconds_since(int64_t us)
{
	return (double)(clock_monotonic_us() - us) * 1e-6;
}

/* Measures the time of small writes, each with a sync. Commits write in this way. */
static int time_syncs(int fd, struct storage *s)
{
	const int64_t began_us = clock_monotonic_us();
	double took[TRIAL_SYNCS];
	char data[4096] = "";
	size_t n = 0;
	int rc = 0;

	while (rc == 0 && n < TRIAL_SYNCS && clock_monotonic_us() - began_us < TRIAL_US) {
		const int64_t from_us = clock_monotonic_us();

		rc = write_whole(fd, data, sizeof(data));
		if (rc == 0 && fdatasync(fd) < 0)
			rc = -errno;
		took[n++] = seconds_since(from_us);
	}
	s->sync_s = rc == 0 ? array_median(took, n) : 0;
	return rc;
}

/* Measures the speed of writing a large file with a single sync at the end. Checkpoints are
 * written in this way. */
static int time_writing(int fd, struct storage *s)
{
	const int64_t began_us = clock_monotonic_us();
	const uint64_t most = s->free_bytes / 4 < TRIAL_BYTES ? s->free_bytes / 4 : TRIAL_BYTES;
	char *data = alloc_new(PART_BYTES);
	uint64_t n = 0;
	int rc = 0;

	/* The bytes vary, because some disks do not store repeated bytes. */
	for (size_t i = 0; i < PART_BYTES; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	while (rc == 0 && n + PART_BYTES <= most && clock_monotonic_us() - began_us < TRIAL_US) {
		rc = write_whole(fd, data, PART_BYTES);
		n += PART_BYTES;
	}
	if (rc == 0 && fdatasync(fd) < 0)
		rc = -errno;
	if (rc == 0 && n > 0)
		s->write_bytes_s = (double)n / (seconds_since(began_us) + 1e-6);
	free(data);
	return rc;
}

/* Opens a file without a name, which vanishes when its descriptor is closed. */
static int open_nameless(const char *folder)
{
	char *path;
	int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	path = alloc_format("%s/.skippipe-doctor-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	free(path);
	return fd;
}

static int try_folder(void *context, void *result, struct error *err)
{
	struct storage *s = result;
	struct statvfs room;
	struct statfs kind;
	int fd, rc = 0;

	*s = *(const struct storage *)context;
	if (statvfs(s->folder, &room) < 0 || statfs(s->folder, &kind) < 0)
		return error_set(err, -errno, "%s: %s", s->folder, strerror(errno));
	s->free_bytes = (uint64_t)room.f_bavail * room.f_frsize;
	s->free_files = room.f_files > 0 ? (uint64_t)room.f_favail : UINT64_MAX;
	s->kind = (int64_t)kind.f_type;
	fd = open_nameless(s->folder);
	if (fd < 0)
		return error_set(err, -errno, "no file can be created in %s: %s", s->folder,
				 strerror(errno));
	if (s->free_bytes >= ROOM_LEAST)
		rc = time_syncs(fd, s);
	if (rc == 0 && s->free_bytes >= ROOM_LEAST)
		rc = time_writing(fd, s);
	close(fd);
	return rc == 0 ? 0
		       : error_set(err, rc, "%s cannot be written: %s", s->folder, strerror(-rc));
}

/* Shortens the path to the nearest folder that exists. The run's folder itself may be missing,
 * because the controller creates it. */
static void find_existing(char *folder)
{
	struct stat st;

	while (stat(folder, &st) < 0 && errno == ENOENT) {
		char *slash = strrchr(folder, '/');

		if (!slash) {
			strcpy(folder, ".");
			break;
		}
		/* For "/name", keeps the slash, which is the root folder. */
		slash[slash == folder] = 0;
	}
}

void storage_look(struct storage *s, const char *run_dir)
{
	struct storage asked = { .kind = 0 };

	*s = asked;
	if (snprintf(asked.folder, sizeof(asked.folder), "%s", run_dir) >=
	    (int)sizeof(asked.folder)) {
		s->error = error_set(&s->why, -ENAMETOOLONG, "%.60s...: the name is too long",
				     run_dir);
		return;
	}
	find_existing(asked.folder);
	*s = asked;
	const int rc =
		trial_run(try_folder, &asked, s, sizeof(*s), LIMIT_S, asked.folder, &asked.why);

	s->error = rc;
	s->why = asked.why;
	memcpy(s->folder, asked.folder, sizeof(s->folder));
}

/* ---- the findings ---- */

static void check_kind(struct findings *f, const struct storage *s)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].magic == (s->kind & INT64_C(0xffffffff))) {
			finding_add(f, "disk", FINDING_WARNING, "%s (%s) %s", s->folder,
				    kinds[i].name, kinds[i].why);
			finding_remedy(f, "take a folder on a local disk (--run-dir)");
		}
}

static void check_room(struct findings *f, const struct storage *s)
{
	if (s->free_bytes < ROOM_LITTLE) {
		finding_add(f, "disk", s->free_bytes < ROOM_LEAST ? FINDING_ERROR : FINDING_WARNING,
			    "%.0f MiB are free in %s; a run waits while its disk is full",
			    (double)s->free_bytes / 0x1p20, s->folder);
		finding_remedy(f, "free some space there, or take another folder (--run-dir)");
	}
	if (s->free_files < FILES_LEAST) {
		finding_add(f, "disk", s->free_files < 10 ? FINDING_ERROR : FINDING_WARNING,
			    "%" PRIu64 " more files can be created in %s", s->free_files,
			    s->folder);
		finding_remedy(f, "remove files there, or take another folder (--run-dir)");
	}
}

static void check_speed(struct findings *f, const struct storage *s)
{
	const char *check = "disk speed";
	const bool slow_sync = s->sync_s > SYNC_SLOW, slow = s->write_bytes_s < WRITE_SLOW;

	if (s->sync_s <= 0 || s->write_bytes_s <= 0)
		return;
	finding_add(f, check, slow_sync || slow ? FINDING_WARNING : FINDING_OK,
		    "a small write with its sync takes %.1f ms, and a file is written with %.0f "
		    "MB/s in %s",
		    1e3 * s->sync_s, 1e-6 * s->write_bytes_s, s->folder);
	if (slow_sync || slow)
		finding_remedy(f, "%s",
			       slow_sync ? "every commit waits for a sync: take a folder on a "
					   "faster disk (--run-dir)"
					 : "checkpoints wait for the disk: take a folder on a "
					   "faster disk (--run-dir), or make fewer checkpoints");
}

void storage_check(struct findings *f, const struct storage *s)
{
	const size_t before = f->all.n;

	if (s->error != 0) {
		finding_add(f, "disk", FINDING_ERROR, "%s", s->why.text);
		finding_remedy(f, "give the folder to this user, free some space there, or take "
				  "another folder (--run-dir)");
		return;
	}
	check_kind(f, s);
	check_room(f, s);
	if (f->all.n == before)
		finding_add(f, "disk", FINDING_OK, "%.1f GiB are free in %s",
			    (double)s->free_bytes / 0x1p30, s->folder);
	check_speed(f, s);
}
