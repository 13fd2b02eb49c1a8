/* task_pool.h - several threads on one heap of work whose pieces depend on one another.
 *
 * The caller knows what can be done now; the pool asks it, one worker at a time, runs what it said
 * without the lock, and asks again whenever something was finished.
 */
#ifndef VERIFY_TASK_POOL_H
#define VERIFY_TASK_POOL_H

#include "base/error.h"

enum { TASK_POOL_MOST = 64 };

enum task_pool_finding { TASK_POOL_FOUND, TASK_POOL_NOTHING_NOW, TASK_POOL_ALL_DONE };

struct task_pool_work {
	/* Locked. Chooses the worker's next piece and remembers it. */
	enum task_pool_finding (*find)(void *context, unsigned worker);
	/* Not locked. A negative errno ends everything. */
	int (*run)(void *context, unsigned worker, struct error *err);
	/* Locked. The worker's piece was run. */
	void (*finish)(void *context, unsigned worker);
	/* Locked, nobody at work, nothing to be found, not all done: 0 when there is something now. */
	int (*stuck)(void *context, struct error *err);
};

/* With the calling thread as worker 0; n from 1 to TASK_POOL_MOST, fewer where threads cannot be had.
 * Returns 0 when all is done, or the first error. */
int task_pool_run(const struct task_pool_work *work, void *context, unsigned n, struct error *err);

#endif
