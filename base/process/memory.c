/* memory.c - reads the memory of this process from /proc. */
#include "base/process/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

uint64_t memory_resident(void)
{
	char text[64] = "", *at;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	strtoull(text, &at, 10); /* skips the first number, the total size */
	return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}
