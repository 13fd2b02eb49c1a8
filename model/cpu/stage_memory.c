/* Finds out how much memory the kernel would give, and allocates a stage's memory in one piece. */
#include "model/cpu/stage_memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/cgroup.h"

/* Returns the number after `key` at the start of a line of a file, or `missing`. */
static uint64_t number_in(const char *path, const char *key, uint64_t missing)
{
	char line[256];
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
	return value;
}

/* Returns the bytes that the control group at path may still use: its limit minus its use, not
 * counting cached files that the kernel would drop. */
static uint64_t group_free(const char *path)
{
	char file[512];
	uint64_t most, used, dropped;

	snprintf(file, sizeof(file), "%s/memory.max", path);
	most = number_in(file, "", UINT64_MAX); /* the text "max" is not a number */
	snprintf(file, sizeof(file), "%s/memory.current", path);
	used = number_in(file, "", 0);
	snprintf(file, sizeof(file), "%s/memory.stat", path);
	dropped = number_in(file, "inactive_file", 0);
	used = used > dropped ? used - dropped : 0;
	if (most == UINT64_MAX)
		return most;
	return most > used ? most - used : 0;
}

size_t stage_memory_free_bytes(void)
{
	uint64_t kib = number_in("/proc/meminfo", "MemAvailable:", UINT64_MAX >> 10);
	uint64_t group = cgroup_least(group_free);

	return kib << 10 < group ? kib << 10 : group;
}

int stage_memory_new(void **out, size_t size, size_t most, struct error *err)
{
	size_t room = (size + STAGE_ALIGN - 1) / STAGE_ALIGN * STAGE_ALIGN;
	size_t left = most ? most : stage_memory_free_bytes();
	void *arena = room <= left ? aligned_alloc(STAGE_ALIGN, room) : NULL;

	if (!arena && room <= left)
		return error_set(err, -ENOMEM, "needs %.1f MiB, which the system does not give",
				 (double)room / 0x1p20);
	if (!arena)
		return error_set(err, -ENOMEM,
				 "needs %.1f MiB, %.1f are free: %.1f are missing",
				 (double)room / 0x1p20, (double)left / 0x1p20,
				 (double)(room - left) / 0x1p20);
	memset(arena, 0, room);
	*out = arena;
	return 0;
}

void stage_memory_free(void *arena)
{
	free(arena);
}
