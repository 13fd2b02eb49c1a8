/* file_threads.h - replaces the threads of the controller that read and write files. Their work is
 * done when they begin, because a real thread would make the trace depend on the machine. A file
 * that includes this header then includes the threads' own source. */
#ifndef TESTS_SIM_FILE_THREADS_H
#define TESTS_SIM_FILE_THREADS_H

#include <pthread.h>

static int work_now(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
		    void *context)
{
	(void)thread;
	(void)attributes;
	work(context);
	return 0;
}

static int joined(pthread_t thread, void **result)
{
	(void)thread;
	(void)result;
	return 0;
}

#define pthread_create work_now
#define pthread_join joined

#endif
