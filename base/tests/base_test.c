/* Tests the small modules of base/: error messages never overrun, random numbers are reproducible,
 * arrays grow. */

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/process/cgroup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/tests/test.h"
#include "base/timestamp.h"
#include "base/process/user_folder.h"

/* Only the processors that a container or taskset allows are counted, not all processors of the
 * machine. */
TEST(cores_are_those_that_the_process_may_use)
{
	static const struct {
		const char *text;
		uint64_t quota;
	} cases[] = { { "max 100000", UINT64_MAX }, { "200000 100000", 2000 },
		      { "1000 20000", 50 },         { "100001 100000", 1001 },
		      { "0 0", UINT64_MAX },        { "18446744073709551615 1", UINT64_MAX } };
	char folder[] = "/tmp/skippipe-base-XXXXXX", file[64];
	cpu_set_t all, one;
	struct error err;
	size_t first = 0;

	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/cpu.max", folder);
	/* no limit, because cpu.max does not exist yet */
	assert_true(cgroup_quota(folder) == UINT64_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = cases[i].text;

		assert_int_equal(file_write(file, text, strlen(text), 0600, &err), 0);
		assert_true(cgroup_quota(folder) == cases[i].quota);
	}
	file_remove_folder(folder);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(cores_usable(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void put(const char *system, const char *name, const char *text)
{
	char *path = alloc_format("%s/%s", system, name), *folder = alloc_string(path);
	struct error err;

	*strrchr(folder, '/') = 0;
	assert_int_equal(file_make_folder(folder, &err), 0);
	assert_int_equal(file_write(path, text, strlen(text), 0600, &err), 0);
	free(folder);
	free(path);
}

/* Tests control groups of version 2, of version 1, and of both. In a container with version 1,
 * /proc names the group by its path on the host, but the container sees its own group as the
 * root. */
TEST(limits_of_groups_of_both_versions_are_found)
{
	static const struct {
		const char *groups, *file, *quota, *period;
		uint64_t limit;
	} cases[] = {
		{ "0::/a/b\n", "a/b/cpu.max", "300000 100000", NULL, 3000 },
		{ "0::/a/b\n", "a/cpu.max", "300000 100000", NULL, 3000 },
		{ "0::/a\n", "a/b/cpu.max", "300000 100000", NULL, UINT64_MAX },
		{ "3:cpuacct,cpu:/a/b\n", "cpu/a/b/cpu.cfs_", "250000\n", "100000\n", 2500 },
		{ "3:cpu,cpuacct:/a\n0::/\n", "cpu/a/cpu.cfs_", "50000\n", "100000\n", 500 },
		{ "4:cpuset:/a\n3:cpu:/a\n0::/\n", "cpu/cpu.cfs_", "200000\n", "50000\n", 4000 },
		{ "3:cpu:/a\n", "cpu/a/cpu.cfs_", "-1\n", "100000\n", UINT64_MAX },
		{ "3:cpuacct:/a\n", "cpu/a/cpu.cfs_", "100000\n", "100000\n", UINT64_MAX },
		{ "3:cpu:/a\n2:no colon\n\n", "cpu/a/cpu.cfs_", "100000\n", "100000\n", 1000 },
		{ "", "cpu.max", "300000 100000", NULL, UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char folder[] = "/tmp/skippipe-base-XXXXXX", name[96];

		assert_non_null(mkdtemp(folder));
		put(folder, "proc/self/cgroup", cases[i].groups);
		snprintf(name, sizeof(name), "sys/fs/cgroup/%s%s", cases[i].file,
			 cases[i].period ? "quota_us" : "");
		put(folder, name, cases[i].quota);
		snprintf(name, sizeof(name), "sys/fs/cgroup/%speriod_us", cases[i].file);
		if (cases[i].period)
			put(folder, name, cases[i].period);
		if (cgroup_least(folder, "cpu", cgroup_quota) != cases[i].limit)
			fail_msg("case %zu", i);
		file_remove_folder(folder);
	}
}

TEST(free_memory_of_groups_of_both_versions_is_found)
{
	char folder[] = "/tmp/skippipe-base-XXXXXX";

	assert_non_null(mkdtemp(folder));
	put(folder, "proc/self/cgroup", "5:memory:/a\n0::/a\n");
	put(folder, "sys/fs/cgroup/a/memory.max", "max\n");
	put(folder, "sys/fs/cgroup/a/memory.current", "700\n");
	assert_true(cgroup_least(folder, "memory", cgroup_memory_free) == UINT64_MAX);
	put(folder, "sys/fs/cgroup/a/memory.max", "1000\n");
	put(folder, "sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 50\n");
	assert_true(cgroup_least(folder, "memory", cgroup_memory_free) == 350);
	put(folder, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "900\n");
	put(folder, "sys/fs/cgroup/memory/a/memory.usage_in_bytes", "800\n");
	put(folder, "sys/fs/cgroup/memory/a/memory.stat",
	    "inactive_file 1\ntotal_inactive_file 30\n");
	assert_true(cgroup_least(folder, "memory", cgroup_memory_free) == 130);
	put(folder, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put(folder, "sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
	assert_true(cgroup_least(folder, "memory", cgroup_memory_free) == 130);
	file_remove_folder(folder);
}

/* The cause of an error, at the end of its message, is kept even if the message has a very long
 * path. */
TEST(long_messages_lose_their_middle)
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
	for (size_t n = sizeof(e.text) - 4; n < sizeof(e.text) + 8; n++) {
		error_set(&e, -EINVAL, "/begin/%.*s: end", (int)(n - strlen("/begin/: end")), big);
		assert_int_equal(strlen(e.text), n < sizeof(e.text) ? n : sizeof(e.text) - 1);
		assert_int_equal(strncmp(e.text, "/begin/xx", 9), 0);
		assert_string_equal(e.text + strlen(e.text) - strlen("x: end"), "x: end");
		assert_int_equal(strstr(e.text, " ... ") != NULL, n >= sizeof(e.text));
	}
	error_prefix(&e, -EIO, "%s", big);
	assert_string_equal(e.text + strlen(e.text) - strlen("x: end"), "x: end");
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

/* Normal numbers must be equal on all machines, because replicas initialise their weights with
 * them. */
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

/* The expected times are those of `date -u`. */
TEST(times_of_day_are_written_in_utc)
{
	static const struct {
		int64_t wall_us;
		const char *text, *name;
	} cases[] = { { 0, "1970-01-01T00:00:00.000Z", "19700101T000000Z" },
		      { 951782399999999, "2000-02-28T23:59:59.999Z", "20000228T235959Z" },
		      { 951782400000000, "2000-02-29T00:00:00.000Z", "20000229T000000Z" },
		      { 1795874639250000, "2026-11-28T14:03:59.250Z", "20261128T140359Z" },
		      { INT64_MIN, "1970-01-01T00:00:00.000Z", "19700101T000000Z" },
		      { INT64_MAX, "9999-12-31T23:59:59.999Z", "99991231T235959Z" } };
	char text[TIMESTAMP_SIZE], name[TIMESTAMP_NAME_SIZE];

	setenv("TZ", "Asia/Kolkata", 1);
	tzset();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		timestamp_text(cases[i].wall_us, text);
		timestamp_name(cases[i].wall_us, name);
		assert_string_equal(text, cases[i].text);
		assert_string_equal(name, cases[i].name);
		assert_true(timestamp_begins(text));
	}
	assert_false(timestamp_begins("2026-11-28"));
	assert_false(timestamp_begins(""));
}

TEST(a_line_of_a_log_has_time_level_name_and_message)
{
	char *text = NULL;
	size_t size;
	struct log log = { open_memstream(&text, &size), LOG_INFO, "agent 7" };

	log_line(&log, LOG_DEBUG, "not this");
	log_line(&log, LOG_WARN, "port %d: refused", 7);
	fclose(log.to);
	assert_true(timestamp_begins(text));
	assert_string_equal(text + TIMESTAMP_SIZE - 1, " warn  agent 7: port 7: refused\n");
	assert_string_equal(log_message(text), "port 7: refused\n");
	assert_string_equal(log_message("another: line"), "another: line");
	free(text);
}

/* In the table, NULL means that a variable is unset, or that no folder is found. */
TEST(the_folder_of_a_user_is_absolute)
{
	static const struct {
		const char *given, *home, *folder;
	} cases[] = { { NULL, "/home/ada", "/home/ada/.config/skippipe" },
		      { NULL, "/home/ada//", "/home/ada/.config/skippipe" },
		      { NULL, "/", "/.config/skippipe" },
		      { "/etc/x", "/home/ada", "/etc/x/skippipe" },
		      { "/", NULL, "/skippipe" },
		      { "", "/home/ada", "/home/ada/.config/skippipe" },
		      { "x", "/home/ada", "/home/ada/.config/skippipe" },
		      { NULL, NULL, NULL },
		      { "x", "", NULL },
		      { NULL, "ada", NULL } };
	char folder[64], *home = getenv("HOME");
	struct error err;

	home = home ? strdup(home) : NULL;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc;

		cases[i].given ? setenv("X_HOME", cases[i].given, 1) : unsetenv("X_HOME");
		cases[i].home ? setenv("HOME", cases[i].home, 1) : unsetenv("HOME");
		rc = user_folder(folder, sizeof(folder), "X_HOME", ".config", &err);
		assert_int_equal(rc, cases[i].folder ? 0 : -ENOENT);
		if (cases[i].folder)
			assert_string_equal(folder, cases[i].folder);
		else
			assert_string_equal(err.text,
					    "neither X_HOME nor HOME is an absolute path");
	}
	setenv("HOME", "/home/ada", 1);
	assert_int_equal(user_folder(folder, 20, "X_HOME", ".config", &err), -ENAMETOOLONG);
	if (home)
		setenv("HOME", home, 1);
	free(home);
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
