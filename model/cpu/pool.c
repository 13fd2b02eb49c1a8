/* Threads that run one function on different parts of a piece of work. The calling thread does a
 * part too. */
#include "model/cpu/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Number of times that a thread looks for new work before it sleeps. A layer's work comes in pieces
 * of tens of microseconds. Sleeping between two pieces would take longer than a piece, and spinning
 * for long would take the processor from other programs. */
enum { SPINS = 4000 };

struct worker {
	struct pool *pool;
	uint32_t part;
	pthread_t thread;
};

struct pool {
	uint32_t threads;
	struct worker *workers; /* threads - 1 workers, because the caller's thread works too */
	uint32_t started;
	pool_work *work;
	void *arg;
	bool stop;
	atomic_uint round;   /* number of calls of pool_run */
	atomic_uint pending; /* number of workers that are still busy in this round */
	pthread_mutex_t lock;
	pthread_cond_t begin, end;
};

static void pause_cpu(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

static void wait_round(struct pool *p, unsigned seen)
{
	for (int i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(&p->round, memory_order_acquire) != seen)
			return;
		pause_cpu();
	}
	pthread_mutex_lock(&p->lock);
	while (atomic_load_explicit(&p->round, memory_order_acquire) == seen)
		pthread_cond_wait(&p->begin, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct pool *p = w->pool;

	for (unsigned seen = 0;; seen++) {
		wait_round(p, seen);
		if (p->stop)
			return NULL;
		p->work(p->arg, w->part, p->threads);
		if (atomic_fetch_sub_explicit(&p->pending, 1, memory_order_acq_rel) == 1) {
			pthread_mutex_lock(&p->lock);
			pthread_cond_signal(&p->end);
			pthread_mutex_unlock(&p->lock);
		}
	}
}

static void start_round(struct pool *p)
{
	atomic_store_explicit(&p->pending, p->started, memory_order_relaxed);
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add_explicit(&p->round, 1, memory_order_release);
	pthread_cond_broadcast(&p->begin);
	pthread_mutex_unlock(&p->lock);
}

static void wait_end(struct pool *p)
{
	for (int i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(&p->pending, memory_order_acquire) == 0)
			return;
		pause_cpu();
	}
	pthread_mutex_lock(&p->lock);
	while (atomic_load_explicit(&p->pending, memory_order_acquire) != 0)
		pthread_cond_wait(&p->end, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

void pool_run(struct pool *p, pool_work *work, void *arg)
{
	if (p->threads == 1) {
		work(arg, 0, 1);
		return;
	}
	p->work = work;
	p->arg = arg;
	start_round(p);
	work(arg, 0, p->threads);
	wait_end(p);
}

/* Starts a thread with all signals blocked, because only the caller's thread handles signals
 * (program/interrupt.c). */
static int start_deaf(pthread_t *thread, struct worker *w)
{
	sigset_t all, was;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = pthread_create(thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return rc;
}

/* The calling thread is one of the threads. pool_free ends only threads that were started, so it
 * also frees an incomplete pool. */
int pool_new(struct pool **out, uint32_t threads, struct error *err)
{
	struct pool *p = alloc_new(sizeof(*p));

	p->threads = threads;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->begin, NULL);
	pthread_cond_init(&p->end, NULL);
	p->workers = alloc_array(threads - 1, sizeof(*p->workers));
	for (uint32_t i = 0; i + 1 < threads; i++) {
		struct worker *w = &p->workers[i];
		int rc;

		*w = (struct worker){ .pool = p, .part = i + 1 };
		rc = start_deaf(&w->thread, w);
		if (rc) {
			pool_free(p);
			return error_set(err, -rc, "cannot start thread %u of %u: %s", i + 2,
					 threads, strerror(rc));
		}
		p->started++;
	}
	*out = p;
	return 0;
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	p->stop = true;
	start_round(p);
	for (uint32_t i = 0; i < p->started; i++)
		pthread_join(p->workers[i].thread, NULL);
	pthread_cond_destroy(&p->end);
	pthread_cond_destroy(&p->begin);
	pthread_mutex_destroy(&p->lock);
	free(p->workers);
	free(p);
}

void pool_slice(size_t n, size_t grain, uint32_t part, uint32_t parts, size_t *from, size_t *to)
{
	size_t grains = (n + grain - 1) / grain;

	*from = grains * part / parts * grain;
	*to = grains * (part + 1) / parts * grain;
	if (*to > n)
		*to = n;
	if (*from > *to)
		*from = *to;
}
