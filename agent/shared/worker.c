/* worker.c - the thread that computes, and the pipe that signals the end of its job. The main loop
 * polls the pipe, so the loop never waits for a computation. */
#include "agent/shared/worker.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"

struct worker {
	pthread_t thread;
	const char *name;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int fd;
	bool busy; /* a job runs; only the main loop uses this flag, so it needs no lock */
	/* These fields are protected by the lock. */
	bool quit, wanted, done;
	void (*work)(void *context, void *job);
	void *context, *job;
};

static void *run_jobs(void *argument)
{
	struct worker *w = argument;
	const uint64_t one = 1;

	pthread_setname_np(pthread_self(), w->name);
	/* On Linux a nice value belongs to one thread, so this call affects only the worker. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + 5);
	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (!w->wanted && !w->quit)
			pthread_cond_wait(&w->wake, &w->lock);
		if (!w->wanted)
			break;
		w->wanted = false;
		pthread_mutex_unlock(&w->lock);
		w->work(w->context, w->job);
		pthread_mutex_lock(&w->lock);
		w->done = true;
		while (write(w->fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int worker_new(struct worker **out, const char *name, struct error *err)
{
	struct worker *w = alloc_new(sizeof(*w));
	int rc;

	w->name = name;
	w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->fd < 0) {
		rc = error_set(err, -errno, "eventfd: %s", strerror(errno));
		free(w);
		return rc;
	}
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	rc = pthread_create(&w->thread, NULL, run_jobs, w);
	if (rc) {
		pthread_cond_destroy(&w->wake);
		pthread_mutex_destroy(&w->lock);
		close(w->fd);
		free(w);
		return error_set(err, -rc, "cannot start the compute thread: %s", strerror(rc));
	}
	*out = w;
	return 0;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->quit = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	close(w->fd);
	free(w);
}

int worker_fd(const struct worker *w)
{
	return w->fd;
}

void worker_start(struct worker *w, void (*work)(void *context, void *job), void *context,
		  void *job)
{
	assert(!w->busy);
	w->busy = true;
	pthread_mutex_lock(&w->lock);
	w->work = work;
	w->context = context;
	w->job = job;
	w->wanted = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

bool worker_busy(const struct worker *w)
{
	return w->busy;
}

void *worker_finished(struct worker *w)
{
	uint64_t count;
	bool done;

	if (!w->busy)
		return NULL;
	pthread_mutex_lock(&w->lock);
	done = w->done;
	w->done = false;
	pthread_mutex_unlock(&w->lock);
	if (!done)
		return NULL;
	while (read(w->fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	w->busy = false;
	return w->job;
}
