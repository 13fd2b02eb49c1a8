/* cgroup.c - reads limits from /sys/fs/cgroup.
 *
 * Version 2 has one tree of groups there. Version 1 has a tree for each controller, in a folder
 * named after the controller. A line of /proc/self/cgroup names the controllers of a tree (none for
 * version 2) and this process's group in the tree. A container may see its own group as the root of
 * the tree. The path in /proc/self/cgroup may then not exist below this root. A missing group
 * therefore counts as a group without a limit, and the root is always read. */
#include "base/process/cgroup.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

static bool is_in_list(const char *word, const char *list)
{
	size_t n = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
	return false;
}

/* Returns the smallest limit of a group and the groups above it, up to the root of the tree. */
static uint64_t least_in_tree(const char *root, const char *group,
			      uint64_t (*limit_of)(const char *folder))
{
	char *path = alloc_format("%s%s", root, group);
	uint64_t least = UINT64_MAX;

	for (;;) {
		uint64_t here = limit_of(path);

		least = here < least ? here : least;
		if (strlen(path) <= strlen(root))
			break;
		*strrchr(path, '/') = 0;
	}
	free(path);
	return least;
}

uint64_t cgroup_least(const char *system, const char *controller,
		      uint64_t (*limit_of)(const char *folder))
{
	/* `groups` is allocated and not an array, because the path of `system` may be long. */
	char *groups = alloc_format("%s/proc/self/cgroup", system), line[8192];
	FILE *f = fopen(groups, "re");
	uint64_t least = UINT64_MAX;

	while (f && fgets(line, sizeof(line), f)) {
		char *rest = line, *root, *list, *group;
		uint64_t here;

		strsep(&rest, ":");
		list = strsep(&rest, ":");
		group = strsep(&rest, "\n");
		if (!group || (*list && !is_in_list(controller, list)))
			continue;
		root = alloc_format("%s/sys/fs/cgroup%s%s", system, *list ? "/" : "",
				    *list ? controller : "");
		here = least_in_tree(root, group, limit_of);
		least = here < least ? here : least;
		free(root);
	}
	if (f)
		fclose(f);
	free(groups);
	return least;
}

/* Returns the number after `key` at the start of a line of a file, or `missing`. */
static uint64_t number_in(const char *folder, const char *name, const char *key, uint64_t missing)
{
	char *path = alloc_format("%s/%s", folder, name), line[256];
	uint64_t value = missing;
	size_t n = strlen(key);
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, n) == 0 && line[n] && strchr(" 0123456789", line[n])) {
			value = strtoull(line + n, NULL, 10);
			break;
		}
	if (f)
		fclose(f);
	free(path);
	return value;
}

enum { THOUSANDTHS = 1000 }; /* quotas are counted in thousandths of a processor */

/* Version 2 writes "max 100000" if there is no limit, and version 1 writes -1. */
uint64_t cgroup_quota(const char *folder)
{
	uint64_t quota = number_in(folder, "cpu.cfs_quota_us", "", 0);
	uint64_t period = number_in(folder, "cpu.cfs_period_us", "", 0);
	char *file = alloc_format("%s/cpu.max", folder);
	FILE *f = fopen(file, "re");

	if (f && fscanf(f, "%" SCNu64 " %" SCNu64, &quota, &period) != 2)
		quota = 0;
	if (f)
		fclose(f);
	free(file);
	if (quota == 0 || quota > UINT64_MAX / THOUSANDTHS || period == 0)
		return UINT64_MAX;
	return (quota * THOUSANDTHS - 1) / period + 1;
}

uint64_t cgroup_memory_free(const char *folder)
{
	uint64_t most = number_in(folder, "memory.limit_in_bytes", "", UINT64_MAX);
	bool v1 = most != UINT64_MAX;
	uint64_t used = number_in(folder, v1 ? "memory.usage_in_bytes" : "memory.current", "", 0);
	uint64_t dropped = number_in(folder, "memory.stat",
				     v1 ? "total_inactive_file" : "inactive_file", 0);

	if (!v1) /* in version 2, "max" is no number and means no limit */
		most = number_in(folder, "memory.max", "", UINT64_MAX);
	used = used > dropped ? used - dropped : 0;
	if (most == UINT64_MAX)
		return most;
	return most > used ? most - used : 0;
}

/* Returns the number of processors on which this process may run. */
static unsigned processors(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	/* The set has room for 1,024 processors, and the call fails on a machine that has more. */
	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
		return (unsigned)CPU_COUNT(&set);
	return online > 0 ? (unsigned)online : 1;
}

unsigned cores_usable(void)
{
	uint64_t cores = processors(), limit = cgroup_least("", "cpu", cgroup_quota);

	if (limit < cores * THOUSANDTHS)
		cores = (limit - 1) / THOUSANDTHS + 1;
	return (unsigned)cores;
}

double cores_quota(void)
{
	uint64_t limit = cgroup_least("", "cpu", cgroup_quota);

	return limit < (uint64_t)processors() * THOUSANDTHS ? (double)limit / THOUSANDTHS : 0;
}

size_t memory_usable(void)
{
	uint64_t kib = number_in("/proc", "meminfo", "MemAvailable:", UINT64_MAX >> 10);
	uint64_t group = cgroup_least("", "memory", cgroup_memory_free);

	return kib << 10 < group ? kib << 10 : group;
}
