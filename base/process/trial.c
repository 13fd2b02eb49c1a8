/* trial.c - runs a function in a child process, so that neither a hang nor a crash affects the
 * program. The child sends its result through a pipe. A child that hangs in the kernel cannot be
 * killed; the program does not wait for such a child. */
#include "base/process/trial.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { KILLED_WAIT_MS = 1000 };

struct report {
	int rc;
	struct error err;
	_Alignas(max_align_t) char result[]; /* aligned for any struct */
};

_Noreturn static void run_child(int to, int (*run)(void *, void *, struct error *), void *context,
				struct report *r, size_t size)
{
	const char *at = (const char *)r;

	/* Ends the child, even if it hangs, when the program ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	r->rc = run(context, r->result, &r->err);
	while (size > 0) {
		const ssize_t n = write(to, at, size);

		if (n < 0 && errno != EINTR)
			break;
		at += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	_exit(0); /* _exit, because the exit handlers belong to the program */
}

/* Reads the child's report until the pipe ends or the time is over. Returns the number of bytes. */
static size_t read_report(int from, void *to, size_t size, int64_t until_us)
{
	size_t n = 0;

	while (n < size) {
		const int64_t left_us = until_us - clock_monotonic_us();
		struct pollfd p = { .fd = from, .events = POLLIN };

		if (left_us <= 0)
			break;
		if (poll(&p, 1, (int)(left_us / 1000) + 1) <= 0)
			continue;
		const ssize_t got = read(from, (char *)to + n, size - n);

		if (got == 0 || (got < 0 && errno != EINTR))
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	return n;
}

/* Waits for the end of the child. Returns false if it does not end. */
static bool reap(pid_t child, int *status, int wait_ms)
{
	for (int i = 0; i <= wait_ms; i++) {
		if (waitpid(child, status, WNOHANG) != 0)
			return true;
		poll(NULL, 0, 1);
	}
	return false;
}

/* Describes why the child sent no report, and returns the error. */
static int explain(pid_t child, unsigned limit_s, bool late, const char *what, struct error *err)
{
	int status = 0;
	bool ended = reap(child, &status, late ? 0 : KILLED_WAIT_MS);

	if (!ended) {
		kill(child, SIGKILL);
		ended = reap(child, &status, KILLED_WAIT_MS);
	} else if (WIFSIGNALED(status)) {
		return error_set(err, -EIO, "%s: the program crashed in it: %s", what,
				 strsignal(WTERMSIG(status)));
	} else if (!late) {
		return error_set(err, -EIO, "%s: the process ended without a result", what);
	}
	return error_set(err, -ETIMEDOUT, "%s: nothing happened within %u s%s", what, limit_s,
			 ended ? "" : ", and the process hangs in the kernel");
}

int trial_run(int (*run)(void *context, void *result, struct error *err), void *context,
	      void *result, size_t size, unsigned limit_s, const char *what, struct error *err)
{
	const size_t whole = sizeof(struct report) + size;
	const int64_t until_us = clock_monotonic_us() + (int64_t)limit_s * 1000000;
	struct report *r = alloc_new(whole);
	int ends[2] = { -1, -1 }, rc = 0, status;
	pid_t child;

	if (pipe(ends) < 0)
		rc = -errno;
	child = rc == 0 ? fork() : -1;
	if (child == 0)
		run_child(ends[1], run, context, r, whole);
	if (rc == 0)
		close(ends[1]);
	if (child < 0) {
		rc = error_set(err, rc < 0 ? rc : -errno, "%s: no process can be started: %s", what,
			       strerror(errno));
	} else if (read_report(ends[0], r, whole, until_us) == whole) {
		reap(child, &status, KILLED_WAIT_MS);
		rc = r->rc;
		memcpy(result, r->result, size);
		if (err)
			*err = r->err;
	} else {
		rc = explain(child, limit_s, clock_monotonic_us() >= until_us, what, err);
	}
	if (ends[0] >= 0)
		close(ends[0]);
	free(r);
	return rc;
}
