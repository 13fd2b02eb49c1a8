/* processor_time.c - reads the processor times of this process. The controller compares the times
 * of all agents on a machine (controller/members/shared_machines.c). */
#include "agent/network/processor_time.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

struct processor_time processor_time_read(const char *tasks)
{
	struct processor_time sum = { 0, 0 };
	struct dirent *entry;
	DIR *folder = opendir(tasks);

	while (folder && (entry = readdir(folder)) != NULL) {
		uint64_t ran_ns, waited_ns;
		char path[320];
		FILE *f;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/schedstat", tasks, entry->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns) == 2) {
			sum.ran_us += ran_ns / 1000;
			sum.waited_us += waited_ns / 1000;
		}
		if (f)
			fclose(f);
	}
	if (folder)
		closedir(folder);
	return sum;
}
