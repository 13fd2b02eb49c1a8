/* pool.h - threads that divide a piece of work and wait for one another at its end.
 *
 * The caller is thread 0. A thread's part depends on the number of threads alone, so results are
 * the same from run to run. Only one thread at a time may call these functions.
 */
#ifndef MODEL_CPU_POOL_H
#define MODEL_CPU_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct pool; /* opaque */

typedef void pool_work(void *arg, uint32_t part, uint32_t parts);

/* Starts threads - 1 threads; the caller is the first. -EAGAIN: the system has no more threads. */
int pool_new(struct pool **out, uint32_t threads, struct error *err);
void pool_free(struct pool *p); /* ends the threads and waits for them; NULL is allowed */

/* Calls work(arg, i, threads) once for each i in parallel, and returns when all calls have
 * returned. */
void pool_run(struct pool *p, pool_work *work, void *arg);

/* Gives the range [*from, *to) of n elements for one of `parts` parts. Ranges begin at multiples of
 * `grain` and may be empty. */
void pool_slice(size_t n, size_t grain, uint32_t part, uint32_t parts, size_t *from,
		size_t *to);

#endif
