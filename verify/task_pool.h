/* task_pool.h - several threads compute pieces of work that depend on one another.
 *
 * The caller knows which pieces can be computed now. The pool asks the caller for each worker's
 * next piece under a lock, runs the piece without the lock, and asks again after every finished
 * piece.
 */
#ifndef VERIFY_TASK_POOL_H
#define VERIFY_TASK_POOL_H

#include "base/error.h"

enum { TASK_POOL_MAX = 64 /* limit of workers */ };

enum task_pool_answer { TASK_POOL_FOUND, TASK_POOL_NOTHING_NOW, TASK_POOL_ALL_DONE };

struct task_pool_work {
	/* Called with the lock held. Chooses the worker's next piece. The caller of the pool
	 * stores which piece each worker has. */
	enum task_pool_answer (*find)(void *context, unsigned worker);
	/* Called without the lock. Runs the worker's piece. An error (negative errno) ends the
	 * pool's work. */
	int (*run)(void *context, unsigned worker, struct error *err);
	/* Called with the lock held after the worker's piece was run. */
	void (*finish)(void *context, unsigned worker);
	/* Called with the lock held if work is left, no worker is busy, and `find` finds nothing.
	 * Makes a piece available and returns 0, or returns a negative errno. */
	int (*unblock)(void *context, struct error *err);
};

/* Runs all pieces with n workers, 1 to TASK_POOL_MAX. The calling thread is worker 0. If the system
 * refuses to start a thread, the pool uses fewer workers. Returns 0 when all pieces are done, or
 * the first error. */
int task_pool_run(const struct task_pool_work *work, void *context, unsigned n, struct error *err);

#endif
