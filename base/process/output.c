/* Checks that results on standard output were written. stdio records a failed write in a flag
 * that is easily ignored. If the disk is full and nobody looks at this flag, results are lost
 * although the exit status is 0. All programs register one handler that looks at the flag when
 * the program ends. */
#include "base/process/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FAILED = 1 };

static const char *name;
static int first_error; /* errno of the first failed write; 0: none */
static bool reported;   /* a caller has received first_error and prints it */

/* Records the cause. stdio does not keep the errno of an earlier write, so this function writes one
 * more byte, which fails in the same way. The output is incomplete already, so the byte does no
 * harm. */
static void note_failure(bool failed_now)
{
	if (first_error != 0 || (!failed_now && !ferror(stdout)))
		return;
	if (!failed_now && write(STDOUT_FILENO, "\n", 1) == 1)
		errno = EIO;
	first_error = errno;
}

static void close_output(void)
{
	bool pending = __fpending(stdout) != 0;
	bool failed;

	note_failure(pending && fflush(stdout) != 0);
	/* Writing nothing to a standard output that was closed from the start is no error. */
	failed = fclose(stdout) != 0 && (pending || errno != EBADF);
	if (first_error == 0 && failed)
		first_error = errno;
	if (first_error == 0)
		return;
	if (!reported)
		fprintf(stderr, "%s: stdout: %s\n", name, strerror(first_error));
	_exit(EXIT_FAILED);
}

/* Occupies the standard descriptors that are closed. Without this, the next file or socket would
 * get their numbers, and lines for standard error would be written into it. Reading standard
 * input and writing standard output or error still fail, because /dev/null is opened for the
 * opposite direction. */
static void occupy_closed(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void output_check_at_exit(const char *program)
{
	occupy_closed();
	signal(SIGXFSZ, SIG_IGN);
	name = program;
	atexit(close_output);
}

int output_flush(struct error *err)
{
	note_failure(fflush(stdout) != 0);
	if (first_error != 0 && err) {
		error_set(err, 0, "stdout: %s", strerror(first_error));
		reported = true;
	}
	return -first_error;
}
