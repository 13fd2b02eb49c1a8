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
	/* The pool calls this function with the lock held. The function chooses the worker's next
	 * piece, and stores which piece the worker has. */
	enum task_pool_answer (*find)(void *context, unsigned worker);
	/* The pool calls this function without the lock. The function runs the worker's piece. An
	 * error (negative errno) ends the pool's work. */
	int (*run)(void *context, unsigned worker, struct error *err);
	/* The pool calls this function with the lock held, after the worker's piece has run. */
	void (*finish)(void *context, unsigned worker);
	/* The pool calls this function with the lock held if work is left, no worker is busy, and
	 * `find` finds nothing. The function makes a piece available and returns 0, or returns a
	 * negative errno. */
	int (*unblock)(void *context, struct error *err);
};

/* Runs all pieces with n workers, 1 to TASK_POOL_MAX. The calling thread is worker 0. If the
 * system refuses to start a thread, the pool uses fewer workers. Returns 0 when all pieces are
 * done. After an error, returns the first error. */
int task_pool_run(const struct task_pool_work *work, void *context, unsigned n, struct error *err);

#endif
