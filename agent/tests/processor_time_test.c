/* Tests the times that the kernel counts for this process. A thread that shares a processor with
 * other threads runs for a part of the time, and waits for the rest of the time. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "agent/network/processor_time.h"
#include "base/clock.h"
#include "base/tests/test.h"

static atomic_bool ended;

static void *compute(void *context)
{
	while (!atomic_load(&ended))
		;
	return context;
}

TEST(threads_on_one_processor_wait_for_each_other)
{
	struct processor_time before = processor_time_read("/proc/self/task"), now;
	pthread_t threads[3];
	cpu_set_t all, one;
	int64_t limit = clock_monotonic_us() + 60000000;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, compute, NULL), 0);
	do {
		nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
		now = processor_time_read("/proc/self/task");
	} while ((now.ran_us < before.ran_us + 200000 ||
		  now.waited_us < before.waited_us + now.ran_us - before.ran_us) &&
		 now.ran_us > 0 && clock_monotonic_us() < limit);
	/* Only one of three threads can run at a time, so each thread waits longer than it runs. */
	if (now.ran_us > 0)
		assert_true(now.waited_us - before.waited_us >= now.ran_us - before.ran_us);
	atomic_store(&ended, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	sched_setaffinity(0, sizeof(all), &all);
}

TEST(a_system_without_the_figures_gives_none)
{
	struct processor_time t = processor_time_read("/proc/self/nothing");

	assert_true(t.ran_us == 0 && t.waited_us == 0);
}
