/* file_threads.h - replaces the controller's threads that read and write files. Their work is done
 * at once when it begins. With real threads, the trace would depend on the machine. A .c file
 * includes this header and then the source of a thread. */
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
