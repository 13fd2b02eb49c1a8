/* processor_time.h - how long the threads of this process have run, and how long they were ready to
 * run while other threads used the processors. The kernel counts both (sched_info, in
 * /proc/self/task/N/schedstat). */
#ifndef AGENT_NETWORK_PROCESSOR_TIME_H
#define AGENT_NETWORK_PROCESSOR_TIME_H

#include <stdint.h>

struct processor_time {
	/* Times since the threads began, us; both 0: the system does not report them. */
	uint64_t ran_us, waited_us;
};

/* Returns the sums over all living threads, so a sum falls when a thread ends. tasks: the folder to
 * read, "/proc/self/task" except in tests. */
struct processor_time processor_time_read(const char *tasks);

#endif
