/* cgroup.c - reads limits from /sys/fs/cgroup. Groups of version 1 are not read. */
#include "base/process/cgroup.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t cgroup_least(uint64_t (*limit_of)(const char *folder))
{
	static const char root[] = "/sys/fs/cgroup";
	char line[256] = "", path[sizeof(root) + sizeof(line)];
	uint64_t least = UINT64_MAX;
	FILE *f = fopen("/proc/self/cgroup", "re");

	while (f && fgets(line, sizeof(line), f) && strncmp(line, "0::", 3) != 0)
		line[0] = 0;
	if (f)
		fclose(f);
	if (strncmp(line, "0::", 3) != 0)
		return least;
	line[strcspn(line, "\n")] = 0;
	snprintf(path, sizeof(path), "%s%s", root, line + 3);
	for (;;) {
		uint64_t here = limit_of(path);

		least = here < least ? here : least;
		if (strlen(path) < sizeof(root))
			return least;
		*strrchr(path, '/') = 0;
	}
}

uint64_t cgroup_cores(const char *folder)
{
	uint64_t quota, period, cores = UINT64_MAX;
	char file[512];
	FILE *f;

	snprintf(file, sizeof(file), "%s/cpu.max", folder);
	f = fopen(file, "re");
	/* "max 100000" is no limit */
	if (f && fscanf(f, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 && period > 0)
		cores = quota > period ? (quota - 1) / period + 1 : 1;
	if (f)
		fclose(f);
	return cores;
}

unsigned cores_usable(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t cores = online > 0 ? (uint64_t)online : 1, limit = cgroup_least(cgroup_cores);
	cpu_set_t set;

	/* The set has room for 1,024 processors. If the machine has more, the call fails. */
	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
		cores = (uint64_t)CPU_COUNT(&set);
	return (unsigned)(limit < cores ? limit : cores);
}
