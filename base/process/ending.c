/* ending.c - ends a child process within a limit. A command may ignore SIGTERM, and a shell may end
 * before the command that it runs. A program that waits without a limit might therefore never
 * end. */
#include "base/process/ending.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

enum { LOOK_NS = 5000000, KILLED_US = 1000000 };

/* Waits until the child has ended and its group is empty. Sets *reaped once the child has
 * ended. */
static bool wait_until(pid_t pid, bool has_group, int64_t until_us, int *status, bool *reaped)
{
	static const struct timespec pause = { .tv_nsec = LOOK_NS };

	for (;;) {
		pid_t rc = *reaped ? pid : waitpid(pid, status, WNOHANG);

		*reaped = rc == pid || (rc < 0 && errno == ECHILD);
		/* Reaps the other processes of the group too. If this process is the first of a
		 * container, orphans become its children, and the group is empty only once they are
		 * reaped. */
		while (*reaped && has_group && waitpid(-pid, NULL, WNOHANG) > 0)
			;
		if (*reaped && (!has_group || kill(-pid, 0) != 0))
			return true;
		if (clock_monotonic_us() >= until_us)
			return false;
		nanosleep(&pause, NULL);
	}
}

int process_wait(pid_t pid, int64_t wait_us, int *status)
{
	bool reaped = false;

	return wait_until(pid, false, clock_monotonic_us() + wait_us, status, &reaped)
		       ? 0
		       : -ETIMEDOUT;
}

int process_end(pid_t pid, bool has_group, int64_t wait_us, int *status)
{
	pid_t whom = has_group ? -pid : pid;
	bool reaped = false;

	kill(whom, SIGTERM);
	kill(whom, SIGCONT); /* a stopped process handles SIGTERM only after SIGCONT */
	if (wait_until(pid, has_group, clock_monotonic_us() + wait_us, status, &reaped))
		return 0;
	kill(whom, SIGKILL);
	wait_until(pid, has_group, clock_monotonic_us() + KILLED_US, status, &reaped);
	return reaped ? 0 : -ETIMEDOUT;
}
