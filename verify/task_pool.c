#include "verify/task_pool.h"

#include <pthread.h>
#include <stdbool.h>

struct task_pool {
	const struct task_pool_work *work;
	void *context;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a piece was finished, or all is over */
	unsigned busy;
	bool over;
	int result;
	struct error why;
};

struct worker {
	struct task_pool *pool;
	unsigned number;
};

/* Locked. The first error stands. */
static void end_work(struct task_pool *c, int result, const struct error *why)
{
	if (c->over)
		return;
	c->over = true;
	c->result = result;
	if (why)
		c->why = *why;
}

/* Locked, but not while the piece runs. */
static void do_piece(struct task_pool *c, unsigned worker)
{
	struct error why = { "" };
	int rc;

	c->busy++;
	pthread_mutex_unlock(&c->lock);
	rc = c->work->run(c->context, worker, &why);
	pthread_mutex_lock(&c->lock);
	c->busy--;
	if (rc != 0)
		end_work(c, rc, &why);
	else
		c->work->finish(c->context, worker);
	pthread_cond_broadcast(&c->changed);
}

static void wait_or_unblock(struct task_pool *c)
{
	struct error why = { "" };
	int rc;

	if (c->busy > 0) {
		pthread_cond_wait(&c->changed, &c->lock);
		return;
	}
	rc = c->work->stuck(c->context, &why);
	if (rc != 0)
		end_work(c, rc, &why);
	pthread_cond_broadcast(&c->changed);
}

static void *run_worker(void *argument)
{
	const struct worker *w = argument;
	struct task_pool *c = w->pool;

	pthread_mutex_lock(&c->lock);
	while (!c->over) {
		switch (c->work->find(c->context, w->number)) {
		case TASK_POOL_FOUND:
			do_piece(c, w->number);
			break;
		case TASK_POOL_NOTHING_NOW:
			wait_or_unblock(c);
			break;
		case TASK_POOL_ALL_DONE:
			end_work(c, 0, NULL);
			pthread_cond_broadcast(&c->changed);
			break;
		}
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int task_pool_run(const struct task_pool_work *w, void *context, unsigned n, struct error *err)
{
	struct task_pool c = { .work = w, .context = context, .lock = PTHREAD_MUTEX_INITIALIZER,
			  .changed = PTHREAD_COND_INITIALIZER };
	struct worker workers[TASK_POOL_MOST];
	pthread_t threads[TASK_POOL_MOST];
	unsigned started = 1;

	for (unsigned i = 0; i < TASK_POOL_MOST; i++)
		workers[i] = (struct worker){ &c, i };
	while (started < n && started < TASK_POOL_MOST &&
	       pthread_create(&threads[started], NULL, run_worker, &workers[started]) == 0)
		started++;
	run_worker(&workers[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_cond_destroy(&c.changed);
	pthread_mutex_destroy(&c.lock);
	if (c.result != 0)
		return error_set(err, c.result, "%s", c.why.text);
	return 0;
}
