/* processor_time.h - how long the threads of this process have run, and have waited for a processor
 * that something else used. The kernel counts both (sched_info, in /proc/self/task/N/schedstat). */
#ifndef AGENT_NETWORK_PROCESSOR_TIME_H
#define AGENT_NETWORK_PROCESSOR_TIME_H

#include <stdint.h>

struct processor_time {
	uint64_t ran_us, waited_us; /* since the threads began; both 0: the system does not say */
};

/* Returns the sum over all threads that live. The end of a thread makes it smaller. tasks: the
 * folder, "/proc/self/task" unless in tests. */
struct processor_time processor_time_read(const char *tasks);

#endif
