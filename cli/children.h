/* children.h - the child processes of a supervisor.
 *
 * A child dies with its supervisor, even if the supervisor is killed (PR_SET_PDEATHSIG). A child
 * that does not own the terminal has a process group of its own, so that Ctrl-C does not reach it.
 * A child writes to a log. Between fork and exec, only async-signal-safe functions run.
 */
#ifndef CLI_CHILDREN_H
#define CLI_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/args.h"

struct child {
	pid_t pid;    /* process id; 0: the process is not running */
	int status;   /* status that waitpid gave once the process ended */
	bool started; /* child_start has started the process at least once */
	/* Path of the log that gets stderr, and stdout too unless keep_stdout; NULL: output goes to
	 * the terminal. */
	char *log;
	struct args args;
};

struct child_start {
	/* The child keeps the supervisor's stdin, stdout and stderr, and receives the terminal's
	 * signals. */
	bool terminal;
	bool keep_stdout;        /* the child writes to the supervisor's stdout */
	int pass_fd;             /* descriptor that stays open in the child; -1: none */
	int parent_death_signal; /* signal that the child receives when the supervisor dies */
};

/* Starts the program with the arguments c->args; the first argument is its path. Output is appended
 * to the log. */
int child_start(struct child *c, const struct child_start *how, struct error *err);
/* Sends a signal to a child that runs. */
void child_signal(const struct child *c, int signal);
/* If process `pid` is this child, records that it has ended with `status`, and returns true. */
bool child_ended(struct child *c, pid_t pid, int status);
/* Writes why the child ended: "exit status 1" or "signal 9 (Killed)". */
void child_ending_text(const struct child *c, char *text, size_t room);
/* Returns the child's exit status as a shell reports it: 128 plus the signal's number if a signal
 * ended the child. */
int child_exit_status(const struct child *c);
/* Copies the last line of the child's log that is not blank to `text`, without the line's time and
 * level. Sets `text` to "" if there is no such line. */
void child_last_line(const struct child *c, char *text, size_t room);
/* If the log has more than `most` bytes, moves its content to LOG.1, replacing that file. */
void child_rotate_log(const struct child *c, off_t most);
void child_free(struct child *c);

/* Runs a program and waits for its end. Copies at most `room` - 1 bytes of its output to `out`, and
 * leaves out newlines at the end. -EIO: the exit status is not 0, and err has the output.
 * -ETIMEDOUT: the program had not ended after wait_us and was killed. */
int child_output(const struct args *args, char *out, size_t room, int64_t wait_us,
		 struct error *err);
/* Time limit for child_output, for programs of this project that do one thing and end. It is long
 * because a GPU's driver may need many seconds at its first use. */
enum { CHILD_WAIT_US = 120000000 };

#endif
