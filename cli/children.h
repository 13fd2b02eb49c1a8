/* children.h - the child processes of a supervisor.
 *
 * A child dies with its supervisor, even if the supervisor is killed (PR_SET_PDEATHSIG). It has a
 * process group of its own and therefore gets no signals of the terminal, unless it owns the
 * terminal. It writes to a log. Between fork and exec only async-signal-safe functions run.
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
	/* Path of the log of stderr, and of stdout unless keep_stdout; NULL: the terminal. */
	char *log;
	struct args args;
};

struct child_start {
	/* The process keeps stdin, stdout and stderr, and receives the terminal's signals. */
	bool terminal;
	bool keep_stdout;        /* stdout stays that of the supervisor */
	int pass_fd;             /* descriptor that stays open in the child; -1: none */
	int parent_death_signal; /* signal that the child receives when the supervisor dies */
};

/* Starts the program in c->args; the first argument is its name. Output is appended to the log. */
int child_start(struct child *c, const struct child_start *how, struct error *err);
/* Sends a signal to a child that runs. */
void child_signal(const struct child *c, int signal);
/* Records that process `pid` has ended. Returns true if it was this child. */
bool child_ended(struct child *c, pid_t pid, int status);
/* Writes the cause of the child's end: "exit status 1", "signal 9 (Killed)". */
void child_ending_text(const struct child *c, char *text, size_t room);
/* Returns the exit status as a shell reports it. */
int child_exit_status(const struct child *c);
/* Gives the last line of the child's log that is not blank, without its time and level; "" if there
 * is none. */
void child_last_line(const struct child *c, char *text, size_t room);
/* Moves a log of more than `most` bytes to LOG.1, replacing that file, and truncates the log. */
void child_rotate_log(const struct child *c, off_t most);
void child_free(struct child *c);

/* Runs args to its end and gives its output: at most room - 1 bytes, without trailing newlines.
 * -EIO if the exit status is not 0; err then has the output. -ETIMEDOUT: the program had not ended
 * after wait_us, and was killed. */
int child_output(const struct args *args, char *out, size_t room, int64_t wait_us,
		 struct error *err);
/* Time limit, for child_output, of programs of this project that start, do one thing, and end. A
 * GPU's driver may need many seconds at its first use. */
enum { CHILD_WAIT_US = 120000000 };

#endif
