/* worker.h - a thread that runs jobs, one at a time.
 *
 * The main loop must never wait for a matrix product. Therefore the loop hands a job to the
 * thread and continues to poll. worker_fd becomes readable when the job has ended. Between
 * worker_start and worker_finished the job and all memory that it points to belong to the thread.
 */
#ifndef AGENT_WORKER_H
#define AGENT_WORKER_H

#include <stdbool.h>

#include "base/error.h"

struct worker; /* opaque */

/* Gives *out (worker_free). name: the thread's name, at most 15 characters, borrowed; tools such as
 * top show it. The thread's nice value is 5 above the caller's, so that the main loop and its
 * heartbeats run first. -EAGAIN, -EMFILE, -ENOMEM: errors of the kernel. */
int worker_new(struct worker **out, const char *name, struct error *err);
/* Waits until the running job ends, and frees the worker. NULL is allowed. */
void worker_free(struct worker *w);

int worker_fd(const struct worker *w); /* returns a descriptor to poll for POLLIN; never read it */
/* Runs work(context, job) in the thread. The worker must be idle. */
void worker_start(struct worker *w, void (*work)(void *context, void *job), void *context,
		  void *job);
/* Returns true while a job is running, and after its end until worker_finished has returned
 * it. */
bool worker_busy(const struct worker *w);
/* Returns the ended job. A second call does not return this job again. The job belongs to the
 * caller again. NULL: no job has ended. Never waits. */
void *worker_finished(struct worker *w);

#endif
