/* Starts, signals and reaps child processes, and rotates their logs.
 *
 * The demo starts up to a thousand processes. None of them may outlive the demo, disturb the
 * terminal or fill the disk, so every start goes through child_start. */
#include "cli/children.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process/ending.h"

enum {
	TAIL_BYTES = 4096,
	EXEC_FAILED = 127,
	TERM_US = 1000000 /* time between SIGTERM and SIGKILL */
};

/* Runs in the child between fork and exec. It must not allocate memory or take a lock, because
 * another thread of the parent may have held the lock at the fork. */
static void run_as_child(const struct child *c, const struct child_start *how, pid_t parent,
			 int log)
{
	sigset_t none;
	int null = how->terminal ? -1 : open("/dev/null", O_RDONLY);

	if (!how->terminal) {
		setpgid(0, 0);
		/* A child in the background may write to the terminal without being stopped. */
		signal(SIGTTOU, SIG_IGN);
		if (null >= 0)
			dup2(null, STDIN_FILENO);
	}
	prctl(PR_SET_PDEATHSIG, how->parent_death_signal);
	if (getppid() != parent)
		/* The parent died before prctl was called, so no signal will come. */
		_exit(EXEC_FAILED);
	if (log >= 0) {
		if (!how->keep_stdout)
			dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
	}
	if (how->pass_fd >= 0)
		fcntl(how->pass_fd, F_SETFD, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(c->args.list[0], c->args.list);
	dprintf(STDERR_FILENO, "%s: %s\n", c->args.list[0], strerror(errno));
	_exit(EXEC_FAILED);
}

int child_start(struct child *c, const struct child_start *how, struct error *err)
{
	pid_t parent = getpid(), pid;
	int log = -1;

	if (c->log) {
		log = open(c->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		if (log < 0)
			return error_set(err, -errno, "%s: %s", c->log, strerror(errno));
	}
	pid = fork();
	if (pid == 0)
		run_as_child(c, how, parent, log);
	if (log >= 0)
		close(log);
	if (pid < 0)
		return error_set(err, -errno, "%s: cannot be started: %s", c->args.list[0],
				 strerror(errno));
	c->pid = pid;
	c->started = true;
	return 0;
}

void child_signal(const struct child *c, int sig)
{
	if (c->pid > 0)
		kill(c->pid, sig);
}

bool child_ended(struct child *c, pid_t pid, int status)
{
	if (c->pid != pid)
		return false;
	c->pid = 0;
	c->status = status;
	return true;
}

void child_ending_text(const struct child *c, char *text, size_t room)
{
	if (WIFSIGNALED(c->status))
		snprintf(text, room, "signal %d (%s)", WTERMSIG(c->status),
			 strsignal(WTERMSIG(c->status)));
	else
		snprintf(text, room, "exit status %d", WEXITSTATUS(c->status));
}

int child_exit_status(const struct child *c)
{
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void child_last_line(const struct child *c, char *text, size_t room)
{
	char tail[TAIL_BYTES + 1], *line;
	ssize_t n;
	int fd = c->log ? open(c->log, O_RDONLY | O_CLOEXEC) : -1;
	off_t size;

	text[0] = '\0';
	if (fd < 0)
		return;
	size = lseek(fd, 0, SEEK_END);
	n = pread(fd, tail, TAIL_BYTES, size > TAIL_BYTES ? size - TAIL_BYTES : 0);
	close(fd);
	while (n > 0 && (tail[n - 1] == '\n' || tail[n - 1] == ' '))
		n--;
	if (n <= 0)
		return;
	tail[n] = '\0';
	line = strrchr(tail, '\n');
	snprintf(text, room, "%s", log_message(line ? line + 1 : tail));
}

/* The child keeps its descriptor and writes at the log's new end (O_APPEND). Lines that the child
 * writes while its log is copied can be lost. If the disk has no room for the copy, the whole old
 * log is lost. */
void child_rotate_log(const struct child *c, off_t most)
{
	char old[PATH_MAX];
	struct stat st;
	int from, to;

	if (!c->log || stat(c->log, &st) != 0 || st.st_size <= most ||
	    snprintf(old, sizeof(old), "%s.1", c->log) >= (int)sizeof(old))
		return;
	from = open(c->log, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	to = open(old, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (from >= 0 && to >= 0)
		while (sendfile(to, from, NULL, 1 << 20) > 0)
			;
	if (from >= 0)
		(void)!ftruncate(from, 0);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
}

void child_free(struct child *c)
{
	args_free(&c->args);
	free(c->log);
	*c = (struct child){ 0 };
}

/* Reads a pipe to its end, and drops the bytes that do not fit into `out`. Returns false if the
 * pipe has not ended by until_us. */
static bool read_pipe(int fd, char *out, size_t room, int64_t until_us)
{
	size_t got = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left_us = until_us - clock_monotonic_us();
		char spill[512];
		bool full = got + 1 >= room;
		ssize_t n;

		if (left_us <= 0)
			break;
		if (poll(&p, 1, (int)(left_us / 1000 + 1)) <= 0)
			continue;
		n = read(fd, full ? spill : out + got, full ? sizeof(spill) : room - 1 - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (!full)
			got += (size_t)n;
	}
	while (got > 0 && out[got - 1] == '\n')
		got--;
	out[got] = '\0';
	return clock_monotonic_us() < until_us;
}

/* The function reads the pipe of stdout and stderr to its end and only then waits for the child: a
 * child that blocks on a full pipe never ends. */
int child_output(const struct args *args, char *out, size_t room, int64_t wait_us,
		 struct error *err)
{
	int pipes[2], status = 0;
	bool is_late = false;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return error_set(err, -errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		sigset_t none;

		dup2(pipes[1], STDOUT_FILENO);
		dup2(pipes[1], STDERR_FILENO);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execv(args->list[0], args->list);
		_exit(EXEC_FAILED);
	}
	close(pipes[1]);
	if (pid > 0)
		is_late = !read_pipe(pipes[0], out, room, clock_monotonic_us() + wait_us);
	close(pipes[0]);
	if (pid < 0)
		return error_set(err, -errno, "%s: cannot be started: %s", args->list[0],
				 strerror(errno));
	if (is_late || process_wait(pid, wait_us, &status) != 0) {
		process_end(pid, false, TERM_US, &status);
		return error_set(err, -ETIMEDOUT, "%s has not ended for %.0f s and was killed",
				 args->list[0], (double)wait_us * 1e-6);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return error_set(err, -EIO, "%s failed: %s", args->list[0], out);
}
