/* trial.h - runs a function in a child process, with a time limit.
 *
 * Use it for calls that may hang in the kernel or crash in a foreign library: the driver of a
 * device, a disk on the network. The program must have no other thread yet, because a child has
 * only the thread that forks.
 */
#ifndef BASE_PROCESS_TRIAL_H
#define BASE_PROCESS_TRIAL_H

#include <stddef.h>

#include "base/error.h"

/* Calls `run` in a child, and waits for at most `limit_s`. `run` may fill in its result, which has
 * `size` bytes. Returns what `run` returned, and copies its message and its result. -ETIMEDOUT: the
 * child did not end, and was killed if the kernel could kill it. -EIO: the child crashed, and the
 * message names the signal. Another negative errno: the child could not be started. These messages
 * begin with `what`, such as "cuda:0". */
int trial_run(int (*run)(void *context, void *result, struct error *err), void *context,
	      void *result, size_t size, unsigned limit_s, const char *what, struct error *err);

#endif
