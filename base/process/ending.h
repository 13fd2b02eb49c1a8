/* ending.h - waits for child processes with a limit, and ends them even if they ignore signals.
 */
#ifndef BASE_ENDING_H
#define BASE_ENDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Waits for the child's end and gives its status as waitpid does. Returns 0, or -ETIMEDOUT if the
 * child has not ended after wait_us. */
int process_wait(pid_t pid, int64_t wait_us, int *status);
/* Sends SIGTERM to the child, waits for its end, and sends SIGKILL after wait_us. Gives its status
 * as waitpid does. has_group: the child leads a process group, whose other processes are ended in
 * the same way. Returns 0, or -ETIMEDOUT if the child still lives a second after SIGKILL. This
 * happens if the kernel waits for a device. A child that still lives is not reaped. */
int process_end(pid_t pid, bool has_group, int64_t wait_us, int *status);

#endif
