/* crew.h - several threads on one heap of work whose pieces depend on one another.
 *
 * The caller knows what can be done now; the crew asks it, one worker at a time, runs what it said
 * without the lock, and asks again whenever something was finished.
 */
#ifndef VERIFY_CREW_H
#define VERIFY_CREW_H

#include "base/error.h"

enum { CREW_MOST = 64 };

enum crew_finding { CREW_FOUND, CREW_NOTHING_NOW, CREW_ALL_DONE };

struct crew_work {
	/* Locked. Chooses the worker's next piece and remembers it. */
	enum crew_finding (*find)(void *context, unsigned worker);
	/* Not locked. A negative errno ends everything. */
	int (*run)(void *context, unsigned worker, struct error *err);
	/* Locked. The worker's piece was run. */
	void (*finish)(void *context, unsigned worker);
	/* Locked, nobody at work, nothing to be found, not all done: 0 when there is something now. */
	int (*stuck)(void *context, struct error *err);
};

/* With the calling thread as worker 0; n from 1 to CREW_MOST, fewer where threads cannot be had.
 * Returns 0 when all is done, or the first error. */
int crew_run(const struct crew_work *work, void *context, unsigned n, struct error *err);

#endif
