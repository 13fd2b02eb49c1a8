/* Tests that a written file has the old or the new contents, never a mixture. Writing to a pipe, a
 * link or an open descriptor must not replace it by a new file. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/not_text.h"
#include "base/tests/test.h"

TEST(files_are_complete_or_unchanged)
{
	char folder[] = "/tmp/skippipe-base-XXXXXX", path[128], deep[160], *data;
	struct error e = { "" };
	struct file_aside a;
	struct stat st;
	size_t size;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	assert_int_equal(file_read(path, 100, &data, &size, &e), -ENOENT);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(file_write(path, "first", 5, 0600, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(file_read(path, 4, &data, &size, &e), -EFBIG);
	assert_int_equal(file_read(path, 5, &data, &size, &e), 0);
	assert_string_equal(data, "first");
	free(data);
	assert_int_equal(file_read(folder, 100, &data, &size, &e), -EINVAL);
	/* A failed write leaves the old contents and no temporary file. */
	snprintf(deep, sizeof(deep), "%s/not/there", folder);
	assert_int_equal(file_write(deep, "x", 1, 0600, &e), -ENOENT);
	assert_int_equal(file_make_folder(deep, &e), 0);
	assert_int_equal(file_make_folder(deep, &e), 0);
	/* A folder is refused at once, before the caller has computed what to write. */
	assert_int_equal(file_aside_open(&a, deep, 0600, &e), -EISDIR);
	assert_int_equal(stat(deep, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	/* The path is a file, not a folder. */
	assert_int_equal(file_make_folder(path, &e), -ENOTDIR);
	rmdir(deep);
	snprintf(deep, sizeof(deep), "%s/not", folder);
	assert_int_equal(rmdir(deep), 0); /* succeeds because the folder is empty */
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

/* Two writers in different containers on one volume may have the same process number. */
TEST(two_writers_of_one_file_do_not_meet)
{
	char folder[] = "/tmp/skippipe-base-XXXXXX", path[128], *data;
	struct file_aside a, b;
	size_t size;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	assert_int_equal(file_aside_open(&a, path, FILE_RESULT, NULL), 0);
	assert_int_equal(file_aside_open(&b, path, FILE_RESULT, NULL), 0);
	assert_int_equal(file_aside_write(&a, "first", 5, NULL), 0);
	assert_int_equal(file_aside_write(&b, "second", 6, NULL), 0);
	assert_int_equal(file_aside_close(&a, 0, NULL), 0);
	assert_int_equal(file_read(path, 100, &data, &size, NULL), 0);
	assert_string_equal(data, "first");
	free(data);
	assert_int_equal(file_aside_close(&b, 0, NULL), 0);
	assert_int_equal(file_read(path, 100, &data, &size, NULL), 0);
	assert_string_equal(data, "second");
	free(data);
	unlink(path);
	assert_int_equal(rmdir(folder), 0); /* succeeds because no temporary file is left */
}

/* Writes half of a file in another process, which is then killed. */
static void leave_aside(const char *path, char aside[FILE_ASIDE])
{
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		struct file_aside a;

		if (file_aside_open(&a, path, FILE_RESULT, NULL) ||
		    write(ends[1], a.aside, FILE_ASIDE) != FILE_ASIDE)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], aside, FILE_ASIDE), FILE_ASIDE);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ends[0]);
	close(ends[1]);
}

/* The next writer removes the file that a killed writer left, and keeps files with similar
 * names. */
TEST(what_a_killed_writer_left_is_removed)
{
	static const char *const users[] = { "file.tmp.17", "file.tmp.0123456789abcdeg",
					     "other.tmp.0123456789abcdef",
					     "file.tmp.0123456789abcdef.bak" };
	char folder[] = "/tmp/skippipe-base-XXXXXX", path[128], other[160], aside[FILE_ASIDE];
	struct file_aside busy;
	struct stat st;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		snprintf(other, sizeof(other), "%s/%s", folder, users[i]);
		close(open(other, O_CREAT | O_WRONLY, 0600));
	}
	leave_aside(path, aside);
	assert_true(file_is_aside(aside + strlen(path)));
	assert_int_equal(file_aside_open(&busy, path, FILE_RESULT, NULL), 0);
	assert_int_equal(lstat(aside, &st), -1);
	/* Even if somebody guesses the temporary name and makes a link there, the link is not
	 * followed. */
	assert_int_equal(symlink(path, aside), 0);
	assert_int_equal(file_write(path, "whole", 5, FILE_RESULT, NULL), 0);
	assert_int_equal(lstat(aside, &st), 0);
	unlink(aside);
	/* Fails if a later writer has removed the temporary file of `busy`. */
	assert_int_equal(file_aside_close(&busy, 0, NULL), 0);
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		snprintf(other, sizeof(other), "%s/%s", folder, users[i]);
		assert_int_equal(unlink(other), 0);
	}
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

static void expect_mode(const char *path, mode_t mode)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
}

TEST(the_umask_decides_who_may_read_results)
{
	static const mode_t masks[] = { 0, 002, 022, 027, 077 };
	const mode_t before = umask(0);

	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		char top[] = "/tmp/skippipe-base-XXXXXX", folder[128], path[160];

		assert_non_null(mkdtemp(top));
		umask(masks[i]);
		snprintf(folder, sizeof(folder), "%s/new/export", top);
		assert_int_equal(file_make_folder(folder, NULL), 0);
		expect_mode(folder, 0777 & ~masks[i]);
		snprintf(path, sizeof(path), "%s/file", folder);
		assert_int_equal(file_write(path, "x", 1, FILE_RESULT, NULL), 0);
		expect_mode(path, 0666 & ~masks[i]);
		assert_int_equal(file_write(path, "x", 1, FILE_PRIVATE, NULL), 0);
		expect_mode(path, 0600);
		snprintf(folder, sizeof(folder), "%s/new", top);
		expect_mode(folder, 0777 & ~masks[i]);
		snprintf(folder, sizeof(folder), "%s/own", top);
		assert_int_equal(file_make_private_folder(folder, NULL), 0);
		expect_mode(folder, 0700);
		file_remove_folder(top);
	}
	umask(before);
}

TEST(texts_are_read_without_a_byte_order_mark)
{
	static const struct {
		const char *file, *text;
	} cases[] = { { "\xef\xbb\xbf{}", "{}" },
		      { "\xef\xbb\xbf", "" },
		      { "\xef\xbb{}", "\xef\xbb{}" },
		      { "{}\xef\xbb\xbf", "{}\xef\xbb\xbf" },
		      { "", "" } };
	char path[] = "/tmp/skippipe-base-XXXXXX", *text;
	size_t size;

	close(mkstemp(path));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *file = cases[i].file;

		assert_int_equal(file_write(path, file, strlen(file), 0600, NULL), 0);
		assert_int_equal(file_read_text(path, 100, &text, &size, NULL), 0);
		assert_string_equal(text, cases[i].text);
		assert_int_equal(size, strlen(cases[i].text));
		free(text);
	}
	unlink(path);
}

TEST(files_that_are_no_text_are_refused_with_a_remedy)
{
	static const struct {
		const char *file, *reason;
	} cases[] = {
		{ "version https://git-lfs.github.com/spec/v1\noid", "git lfs pull" },
		{ "\x1f\x8b\x08", "gzip: unpack" },
		{ "\x28\xb5\x2f\xfd$", "zstd: unpack" },
		{ "\xfd\x37zXZ", "xz: unpack" },
		{ "BZh91AY&SY", "bzip2: unpack" },
		{ "PK\x03\x04", "zip archive: unpack" },
		{ "\xff\xfe{", "UTF-16: convert" },
		{ "\xfe\xff{", "UTF-16: convert" },
	};
	char path[] = "/tmp/skippipe-base-XXXXXX", *text = NULL;
	struct error e;
	size_t size;

	close(mkstemp(path));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *file = cases[i].file;

		assert_int_equal(file_write(path, file, strlen(file), 0600, NULL), 0);
		assert_int_equal(file_read_text(path, 100, &text, &size, &e), -EINVAL);
		assert_non_null(strstr(e.text, path));
		assert_non_null(strstr(e.text, cases[i].reason));
		/* One byte does not suffice to recognise the kind of the file. */
		assert_null(not_text_reason(file, 1));
	}
	assert_null(text);
	unlink(path);
}

/* Reads, as /dev/fd/N, the bytes that a child writes into a pipe one by one. */
static int read_from_pipe(size_t bytes, size_t most, char **data, size_t *size, struct error *e)
{
	int ends[2], rc, status;
	char path[32];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[0]);
		for (size_t i = 0; i < bytes; i++) {
			char c = (char)('a' + i % 26);

			if (write(ends[1], &c, 1) != 1)
				_exit(0); /* the reader has closed the pipe */
		}
		_exit(0);
	}
	close(ends[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	rc = file_read(path, most, data, size, e);
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return rc;
}

TEST(pipes_are_read_to_their_end)
{
	static const size_t sizes[] = { 0, 1, 65536, 65537, 200000 };
	struct error e = { "" };
	size_t size = 0;
	char *data = NULL;

	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(read_from_pipe(sizes[i], 200000, &data, &size, &e), 0);
		assert_int_equal(size, sizes[i]);
		assert_int_equal(data[size], '\0');
		for (size_t k = 0; k < size; k++)
			assert_int_equal(data[k], 'a' + k % 26);
		free(data);
		if (sizes[i] > 0)
			assert_int_equal(
				read_from_pipe(sizes[i], sizes[i] - 1, &data, &size, &e),
				-EFBIG);
	}
	/* Reading an endless file stops at the limit. */
	assert_int_equal(file_read("/dev/zero", 1 << 20, &data, &size, &e), -EFBIG);
}

TEST(pipes_are_written_to_and_not_replaced)
{
	char folder[] = "/tmp/skippipe-base-XXXXXX", path[64], got[8] = "";
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(file_write(path, "words", 5, 0600, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(read(fd, got, sizeof(got)), 5);
	assert_string_equal(got, "words");
	close(fd);
	unlink(path);
	rmdir(folder);
}

/* Fails unless the file has these contents and is a regular file, not a link. */
static void assert_file(const char *path, const char *contents)
{
	struct stat st;
	size_t size;
	char *data;

	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(file_read(path, 100, &data, &size, NULL), 0);
	assert_string_equal(data, contents);
	free(data);
}

TEST(links_stay_and_their_targets_are_written)
{
	char folder[] = "/tmp/skippipe-base-XXXXXX", file[64], below[64], near[64], far[64];
	struct stat st;

	assert_non_null(mkdtemp(folder));
	snprintf(below, sizeof(below), "%s/below", folder);
	snprintf(file, sizeof(file), "%s/below/file", folder);
	snprintf(near, sizeof(near), "%s/near", folder);
	snprintf(far, sizeof(far), "%s/below/far", folder);
	assert_int_equal(mkdir(below, 0700), 0);
	assert_int_equal(symlink("below/far", near), 0);
	assert_int_equal(symlink(file, far), 0);
	assert_false(file_would_replace(near));
	/* The file is missing, so it is created. */
	assert_int_equal(file_write(near, "first", 5, 0600, NULL), 0);
	assert_file(file, "first");
	assert_true(file_would_replace(file) && file_would_replace(near));
	assert_int_equal(file_write(near, "second", 6, 0600, NULL), 0);
	assert_file(file, "second");
	assert_true(lstat(near, &st) == 0 && S_ISLNK(st.st_mode));
	assert_true(lstat(far, &st) == 0 && S_ISLNK(st.st_mode));
	assert_int_equal(file_replace(near, "third", 5, 0600, NULL), 0);
	assert_file(near, "third");
	assert_file(file, "second");
	assert_int_equal(file_write(file, "", 0, 0600, NULL), 0);
	/* An empty file and a folder have no contents that writing could lose. */
	assert_false(file_would_replace(file) || file_would_replace(below));
	unlink(file);
	unlink(near);
	unlink(far);
	assert_int_equal(rmdir(below), 0); /* succeeds because no temporary file is left */
	assert_int_equal(rmdir(folder), 0);
}

/* Open descriptors are written from their offset on, as users of a shell's `>>FILE` and `>FILE`
 * expect. */
TEST(open_descriptors_are_written_and_not_replaced)
{
	char folder[] = "/tmp/skippipe-base-XXXXXX", file[64], link[64], number[32], target[32];
	struct error e = { "" };
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/file", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	fd = open(file, O_RDWR | O_CREAT, 0600);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
	assert_int_equal(symlink(target, link), 0); /* a link to a descriptor, as /dev/stdout is */
	assert_int_equal(write(fd, "a", 1), 1);
	snprintf(number, sizeof(number), "/dev/fd/%d", fd);
	assert_int_equal(file_write(number, "bc", 2, 0600, &e), 0);
	assert_int_equal(file_write(target, "bc", 2, 0600, &e), 0);
	assert_int_equal(file_write(link, "bc", 2, 0600, &e), 0);
	assert_int_equal(write(fd, "d", 1), 1);
	assert_file(file, "abcbcbcd");
	assert_true(file_would_replace(file));
	assert_false(file_would_replace(link) || file_would_replace(number));
	assert_true(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
	close(fd);
	assert_int_equal(file_write(link, "x", 1, 0600, &e), -EBADF);
	assert_non_null(strstr(e.text, link));
	unlink(file);
	unlink(link);
	assert_int_equal(rmdir(folder), 0);
}

/* Files in /dev/shm are written like other files, although /dev has devices. */
TEST(new_files_in_shared_memory_are_files)
{
	char path[64];

	if (access("/dev/shm", W_OK) != 0)
		skip();
	snprintf(path, sizeof(path), "/dev/shm/skippipe-base-%ld", (long)getpid());
	assert_int_equal(file_write(path, "first", 5, 0600, NULL), 0);
	assert_int_equal(file_write(path, "second", 6, 0600, NULL), 0);
	assert_file(path, "second");
	unlink(path);
	assert_int_equal(file_write("/dev/null", "x", 1, 0600, NULL), 0);
}

TEST(a_temporary_folder_is_where_one_can_be_made)
{
	static const char *const parents[] = {
		NULL, "relative", "/proc/self", "/tmp/a/path/that/is/too/long/for/sockets", "/tmp"
	};
	char folder[FILE_TEMPORARY];
	struct error err;

	assert_int_equal(file_make_temporary(folder, "skippipe-file", parents, 5, &err), 0);
	assert_memory_equal(folder, "/tmp/skippipe-file-", 19);
	file_remove_folder(folder);
	assert_int_equal(file_make_temporary(folder, "skippipe-file", parents, 4, &err),
			 -ENAMETOOLONG);
	assert_string_equal(folder, "");
	assert_true(file_make_temporary(folder, "skippipe-file", parents, 3, &err) < 0);
	assert_non_null(strstr(err.text, "TMPDIR): /proc/self: "));
}
