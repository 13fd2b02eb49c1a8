/* A small pool of threads for pieces of work that depend on one another. The replay uses it to
 * compute several stages at the same time. The caller finds the next piece and records results,
 * always under the pool's lock; the pool does not know the pieces. */
#include "verify/task_pool.h"

#include <pthread.h>
#include <stdbool.h>

struct task_pool {
	const struct task_pool_work *work;
	void *context;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a piece was finished, or the work has ended */
	unsigned busy;          /* number of workers that compute a piece */
	bool ended;
	int result;
	struct error why;
};

struct worker {
	struct task_pool *pool;
	unsigned number;
};

/* Ends the work with this result. A second call has no effect, so the first error is kept. The
 * caller holds the lock. */
static void end_work(struct task_pool *p, int result, const struct error *why)
{
	if (p->ended)
		return;
	p->ended = true;
	p->result = result;
	if (why)
		p->why = *why;
}

/* Runs a worker's piece. The caller holds the lock, which is released while the piece runs. */
static void run_piece(struct task_pool *p, unsigned worker)
{
	struct error why = { "" };
	int rc;

	p->busy++;
	pthread_mutex_unlock(&p->lock);
	rc = p->work->run(p->context, worker, &why);
	pthread_mutex_lock(&p->lock);
	p->busy--;
	if (rc != 0)
		end_work(p, rc, &why);
	else
		p->work->finish(p->context, worker);
	pthread_cond_broadcast(&p->changed);
}

static void wait_or_unblock(struct task_pool *p)
{
	struct error why = { "" };
	int rc;

	if (p->busy > 0) {
		pthread_cond_wait(&p->changed, &p->lock);
		return;
	}
	rc = p->work->unblock(p->context, &why);
	if (rc != 0)
		end_work(p, rc, &why);
	pthread_cond_broadcast(&p->changed);
}

static void *run_worker(void *argument)
{
	const struct worker *w = argument;
	struct task_pool *p = w->pool;

	pthread_mutex_lock(&p->lock);
	while (!p->ended) {
		switch (p->work->find(p->context, w->number)) {
		case TASK_POOL_FOUND:
			run_piece(p, w->number);
			break;
		case TASK_POOL_NOTHING_NOW:
			wait_or_unblock(p);
			break;
		case TASK_POOL_ALL_DONE:
			end_work(p, 0, NULL);
			pthread_cond_broadcast(&p->changed);
			break;
		}
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int task_pool_run(const struct task_pool_work *w, void *context, unsigned n, struct error *err)
{
	struct task_pool p = { .work = w, .context = context, .lock = PTHREAD_MUTEX_INITIALIZER,
			       .changed = PTHREAD_COND_INITIALIZER };
	struct worker workers[TASK_POOL_MAX];
	pthread_t threads[TASK_POOL_MAX];
	unsigned started = 1;

	for (unsigned i = 0; i < TASK_POOL_MAX; i++)
		workers[i] = (struct worker){ &p, i };
	while (started < n && started < TASK_POOL_MAX &&
	       pthread_create(&threads[started], NULL, run_worker, &workers[started]) == 0)
		started++;
	run_worker(&workers[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_cond_destroy(&p.changed);
	pthread_mutex_destroy(&p.lock);
	if (p.result != 0)
		return error_set(err, p.result, "%s", p.why.text);
	return 0;
}
