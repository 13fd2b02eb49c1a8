/* Tests that a commit is complete or absent, that a failed write leaves the old state, and that
 * every kind of bad file has its own error. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tests/test.h"
#include "store/store.h"
#include "store/tests/sample.h"

static void assert_integrity(const char *folder)
{
	char path[128];
	sqlite3 *db;
	sqlite3_stmt *q;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &q, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(q, 0), "ok");
	sqlite3_finalize(q);
	sqlite3_close(db);
}

/* Commits until it is killed, and announces each finished commit through the pipe. */
static void commit_for_ever(const char *folder, int announce)
{
	struct sample *p = calloc(1, sizeof(*p));
	struct store *s;
	struct error err;
	uint64_t last;

	if (store_resume(&s, folder, &err) != 0 || store_last_commit(s, &last, &err) != 0)
		_exit(1);
	for (;;) {
		last++;
		if (store_commit(s, sample(p, last), &err) != 0)
			_exit(2);
		if (write(announce, &last, sizeof(last)) != sizeof(last))
			_exit(3);
	}
}

/* Kills a writer at a time that depends on `round`. Returns the last commit that it announced. */
static uint64_t kill_a_writer(const char *folder, unsigned round)
{
	uint64_t announced = 0, last = 0;
	int pipes[2], status;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(pipes[0]);
		commit_for_ever(folder, pipes[1]);
	}
	close(pipes[1]);
	/* Waits for a complete commit, and then kills the writer at some point during the commits
	 * that follow. */
	assert_int_equal(read(pipes[0], &announced, sizeof(announced)), sizeof(announced));
	usleep(round * 37 % 5000);
	assert_int_equal(kill(child, SIGKILL), 0);
	while (read(pipes[0], &last, sizeof(last)) == sizeof(last))
		announced = last;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	close(pipes[0]);
	return announced;
}

/* A writer is killed between and inside commits, many times. No announced commit may be lost, and
 * no commit may be incomplete. */
FOLDER_TEST(kill_9_leaves_complete_commits)
{
	struct folder *f = *state;
	struct sample *p = calloc(1, sizeof(*p));
	struct store *s = create(f->path);
	struct store_commit c;
	struct error err;
	uint64_t announced, last = 0;

	store_close(s);
	for (unsigned round = 1; round <= 40; round++) {
		uint64_t before = last;

		announced = kill_a_writer(f->path, round * 29);
		assert_int_equal(store_resume(&s, f->path, &err), 0);
		assert_int_equal(store_last_commit(s, &last, &err), 0);
		/* The writer may have finished a further commit that it had no time to
		 * announce. */
		assert_true(last == announced || last == announced + 1);
		for (uint64_t i = before + 1; i <= last; i++) {
			assert_int_equal(store_read_commit(s, i, &c, &err), 0);
			assert_same(sample(p, i), &c);
			store_commit_clear(&c);
		}
		store_close(s);
	}
	assert_integrity(f->path);
	free(p);
}

/* Commits until the disk is full, makes room, and commits again. */
static void survive_a_full_disk(struct store *s, const char *folder,
				bool (*make_room)(const char *folder))
{
	struct sample *p = calloc(1, sizeof(*p));
	struct store_commit c;
	struct error err = { "" };
	uint64_t i = 1, last;
	int rc;

	while ((rc = store_commit(s, sample(p, i), &err)) == 0) {
		i++;
		assert_true(i < 5000);
	}
	if (rc != -ENOSPC)
		fail_msg("%s", err.text);
	assert_non_null(strstr(err.text, "run.db"));
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, i - 1);
	assert_int_equal(store_read_commit(s, last, &c, &err), 0);
	assert_same(sample(p, last), &c);
	store_commit_clear(&c);
	assert_true(make_room(folder));
	commit_one(s, i);
	store_close(s);
	assert_int_equal(store_open(&s, folder, &err), 0);
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, i);
	store_close(s);
	free(p);
}

static bool grow_tmpfs(const char *folder)
{
	return mount("skippipe-test", folder, "tmpfs", MS_REMOUNT, "size=8m") == 0;
}

FOLDER_TEST(a_full_disk_is_reported_and_survived)
{
	struct folder *f = *state;
	struct store *s;

	if (mount("skippipe-test", f->path, "tmpfs", 0, "size=512k") != 0) {
		print_message("no right to mount: see the file-size limit's test\n");
		skip();
	}
	s = create(f->path);
	survive_a_full_disk(s, f->path, grow_tmpfs);
	assert_integrity(f->path);
	assert_int_equal(umount(f->path), 0);
}

static void fill(const char *folder, char path[128])
{
	static const char zeros[4096];
	int fd;

	snprintf(path, 128, "%s/others", folder);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
}

/* When other files fill the disk, the reserve makes room for the next writes. */
FOLDER_TEST(a_reserve_outlasts_a_full_disk)
{
	struct folder *f = *state;
	struct error err = { "" };
	struct store *s;
	char others[128];

	if (mount("skippipe-test", f->path, "tmpfs", 0, "size=20m") != 0) {
		print_message("no right to mount: a full disk is not tried\n");
		skip();
	}
	s = create(f->path);
	assert_false(store_reserved(s));
	assert_int_equal(store_reserve(s, &err), 0);
	commit_one(s, 1);
	fill(f->path, others);
	for (uint64_t i = 2; i < 30; i++)
		commit_one(s, i);
	assert_false(store_reserved(s));
	assert_int_equal(store_reserve(s, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "run.reserve"));
	assert_int_equal(unlink(others), 0);
	assert_int_equal(store_reserve(s, &err), 0);
	store_close(s);
	snprintf(others, sizeof(others), "%s/run.reserve", f->path);
	assert_int_equal(access(others, F_OK), -1);
	assert_int_equal(umount(f->path), 0);
}

/* The next writer uses the reserve that a writer left when it died on a full disk. */
FOLDER_TEST(a_successor_gets_the_reserve)
{
	struct folder *f = *state;
	struct error err = { "" };
	struct store *s;
	char others[128];
	pid_t child;
	int status;

	if (mount("skippipe-test", f->path, "tmpfs", 0, "size=20m") != 0)
		skip();
	store_close(create(f->path));
	child = fork();
	if (child == 0) {
		if (store_resume(&s, f->path, &err) != 0 || store_reserve(s, &err) != 0)
			_exit(1);
		_exit(0); /* dies without closing the store */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	fill(f->path, others);
	assert_int_equal(store_resume(&s, f->path, &err), 0);
	for (uint64_t i = 1; i < 30; i++)
		commit_one(s, i);
	store_close(s);
	assert_int_equal(umount(f->path), 0);
}

static bool lift_limit(const char *folder)
{
	struct rlimit r;

	(void)folder;
	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_FSIZE, &r) == 0;
}

FOLDER_TEST(a_file_size_limit_is_reported_and_survived)
{
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct rlimit r;

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = 300 * 1024;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
	survive_a_full_disk(s, f->path, lift_limit);
	assert_integrity(f->path);
}

FOLDER_TEST(a_read_only_file_system_can_be_read)
{
	struct folder *f = *state;
	struct store *s;
	struct error err;
	uint64_t last;

	if (mount("skippipe-test", f->path, "tmpfs", 0, "size=4m") != 0)
		skip();
	s = create(f->path);
	commit_one(s, 1);
	store_close(s);
	assert_int_equal(mount("skippipe-test", f->path, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL),
			 0);
	assert_int_equal(store_resume(&s, f->path, &err), -EROFS);
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_last_commit(s, &last, &err), 0);
	assert_int_equal(last, 1);
	store_close(s);
	assert_int_equal(umount(f->path), 0);
}

static void overwrite(const char *folder, long at, const char *bytes, size_t n)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/run.db", folder);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, at), n);
	close(fd);
}

FOLDER_TEST(every_kind_of_bad_file_has_its_error)
{
	struct folder *f = *state;
	struct store *s = NULL;
	struct store_commit c;
	struct error err;
	char junk[4096];

	assert_int_equal(store_open(&s, f->path, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no run in this folder"));
	assert_int_equal(store_resume(&s, "/nonexistent", &err), -ENOENT);
	overwrite(f->path, 0, "This is a text file, not a run.", 31);
	assert_int_equal(store_open(&s, f->path, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is not a run"));
	remove_folder(state);
	make_folder(state);
	f = *state;

	s = create(f->path);
	commit_one(s, 1);
	store_close(s);
	sql(f->path, "UPDATE counted SET items = 'L3 X4' WHERE node = 5");
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_read_commit(s, 1, &c, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "iteration 1"));
	store_close(s);
	sql(f->path, "UPDATE counted SET items = 'L3' WHERE node = 5; "
		     "UPDATE route SET nodes = substr(replace(hex(zeroblob(65)), '00', ' 1'), 2), "
		     "stages = substr(replace(hex(zeroblob(65)), '00', ' 1'), 2) "
		     "WHERE microbatch = 7"); /* 65 hops; a route holds 64 */
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_read_commit(s, 1, &c, &err), -EBADMSG);
	store_close(s);
	sql(f->path, "UPDATE commits SET visits = '7 x' WHERE iteration = 1");
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_read_commit(s, 1, &c, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "the visits of iteration 1"));
	store_close(s);
	sql(f->path, "UPDATE commits SET visits = '' WHERE iteration = 1");
	sql(f->path, "DELETE FROM alike");
	assert_int_equal(store_open(&s, f->path, &err), 0);
	assert_int_equal(store_read_commit(s, 1, &c, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "incomplete"));
	store_close(s);

	sql(f->path, "PRAGMA user_version = 99");
	assert_int_equal(store_open(&s, f->path, &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "version 99"));
	sql(f->path, "PRAGMA user_version = 2");
	assert_int_equal(store_open(&s, f->path, &err), -EPROTONOSUPPORT);
	sql(f->path, "PRAGMA user_version = 10; PRAGMA application_id = 5");
	assert_int_equal(store_open(&s, f->path, &err), -EINVAL);
	sql(f->path, "PRAGMA application_id = 1397444690"); /* the id of a run's file */
	assert_int_equal(store_open(&s, f->path, &err), 0);
	store_close(s);

	memset(junk, 0xa5, sizeof(junk));
	for (long page = 1; page < 20; page++)
		overwrite(f->path, page * 4096, junk, sizeof(junk));
	assert_int_equal(store_open(&s, f->path, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "is damaged"));
}

/* A list that does not have the printed form is refused. */
FOLDER_TEST(malformed_lists_are_refused)
{
	static const char *const bad[] = { " ",    "1 ",  " 1",
					   "1  2", "01",  "65536",
					   "-1",   "1,2", "999999999999999999999",
					   "0x1" };
	struct folder *f = *state;
	struct store *s = create(f->path);
	struct store_commit c;
	struct error err;
	char text[128];

	commit_one(s, 1);
	store_close(s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text),
			 "UPDATE reduction SET nodes = '%s' WHERE stage = 0", bad[i]);
		sql(f->path, text);
		assert_int_equal(store_open(&s, f->path, &err), 0);
		assert_int_equal(store_read_commit(s, 1, &c, &err), -EBADMSG);
		store_close(s);
	}
}
