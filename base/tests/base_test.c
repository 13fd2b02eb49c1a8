/* Messages never overrun, files are complete or absent, random numbers are reproducible. */

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/tests/test.h"

TEST(messages_are_cut_not_overrun)
{
	struct error e;
	char big[2000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(error_set(&e, -EINVAL, "%s", big), -EINVAL);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_int_equal(error_prefix(&e, -EIO, "file %d", 7), -EIO);
	assert_int_equal(strncmp(e.text, "file 7: xxx", 11), 0);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	error_set(&e, 0, "why");
	error_prefix(&e, 0, "%s", "where");
	assert_string_equal(e.text, "where: why");
	assert_int_equal(error_set(NULL, -1, "nobody listens"), -1);
}

/* Values of xoshiro256** seeded by splitmix64(0), computed independently of this code. */
TEST(numbers_are_the_same_everywhere)
{
	static const uint64_t seeds[] = { 0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u,
					  0x06c45d188009454fu, 0xf88bb8a8724c81ecu };
	struct rng r, again;

	rng_init(&r, 0);
	for (int i = 0; i < 4; i++)
		assert_true(r.state[i] == seeds[i]);
	assert_true(rng_next(&r) == 0x99ec5f36cb75f2b4u);
	rng_init_stream(&r, 5, 1);
	rng_init_stream(&again, 5, 2);
	assert_true(rng_next(&r) != rng_next(&again));
}

TEST(numbers_have_the_right_distribution)
{
	struct rng r;
	uint32_t seen[7] = { 0 };
	double sum = 0, squares = 0;

	rng_init(&r, 42);
	for (int i = 0; i < 70000; i++) {
		double x = rng_normal(&r), u = rng_uniform(&r);

		seen[rng_below(&r, 7)]++;
		sum += x;
		squares += x * x;
		assert_true(u >= 0 && u < 1);
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 9500, 10500);
	assert_true(fabs(sum / 70000) < 0.02 && fabs(squares / 70000 - 1) < 0.03);
	assert_int_equal(rng_below(&r, 1), 0);
}

/* Replicas on different kinds of machines initialise their weights with these numbers. */
TEST(normal_numbers_are_the_same_bits_everywhere)
{
	uint64_t hash = 0;
	struct rng r;

	rng_init(&r, 7);
	for (int i = 0; i < 10000; i++) {
		double x = rng_normal(&r);
		uint64_t bits;

		memcpy(&bits, &x, sizeof(bits));
		hash = (hash ^ bits) * 0x100000001b3u;
	}
	assert_true(hash == 0xbff5a6ac1a372c90u);
}

TEST(files_are_complete_or_unchanged)
{
	char folder[] = "/tmp/skippipe-base-XXXXXX", path[128], deep[160], *data;
	struct error e = { "" };
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
	/* A link that another user created under the temporary name is not followed. */
	snprintf(deep, sizeof(deep), "%s/file.tmp.%ld", folder, (long)getpid());
	assert_int_equal(symlink(path, deep), 0);
	assert_int_equal(file_write(path, "second", 6, 0600, &e), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 6);
	assert_int_equal(lstat(deep, &st), -1);
	/* A failed write leaves the old contents and no temporary file. */
	snprintf(deep, sizeof(deep), "%s/not/there", folder);
	assert_int_equal(file_write(deep, "x", 1, 0600, &e), -ENOENT);
	assert_int_equal(file_make_folder(deep, &e), 0);
	assert_int_equal(file_make_folder(deep, &e), 0);
	assert_true(file_write(deep, "x", 1, 0600, &e) < 0); /* deep is a folder */
	assert_int_equal(stat(deep, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	rmdir(deep);
	snprintf(deep, sizeof(deep), "%s/not", folder);
	assert_int_equal(rmdir(deep), 0); /* the folder is empty */
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
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

TEST(time_does_not_go_back)
{
	int64_t t = clock_monotonic_us();

	for (int i = 0; i < 1000; i++) {
		int64_t now = clock_monotonic_us();

		assert_true(now >= t);
		t = now;
	}
	assert_true(clock_wall_us() > 1700000000000000);
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

/* A list that grows by one element keeps its elements, and its room doubles. */
TEST(arrays_grow_and_keep_their_elements)
{
	size_t room = 0, moves = 0;
	uint32_t *list = NULL;

	for (uint32_t i = 0; i < 1000; i++) {
		size_t had = room;

		assert_true(array_grow(&list, &room, i + 1, sizeof(*list)));
		assert_true(room >= i + 1);
		moves += room != had;
		list[i] = i;
	}
	assert_in_range(moves, 1, 10);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
	free(list);
}

TEST(an_array_that_cannot_grow_is_unchanged)
{
	size_t room = 0, had;
	uint64_t *list;

	assert_true(array_grow(&list, &room, 3, sizeof(*list)));
	list[2] = 7;
	had = room;
	assert_false(array_grow(&list, &room, SIZE_MAX / 4, sizeof(*list)));
	assert_false(array_grow(&list, &room, SIZE_MAX, sizeof(*list)));
	assert_int_equal(room, had);
	assert_int_equal(list[2], 7);
	free(list);
}
