/* children.h - the processes a supervisor started: started with care, ended by number.
 *
 * A child dies with its supervisor whatever happens to that (PR_SET_PDEATHSIG), gets no signal
 * of the terminal (a process group of its own) unless it is to own the terminal, and writes to a
 * log. Only exec follows a fork.
 */
#ifndef CLI_CHILDREN_H
#define CLI_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/args.h"

struct child {
	pid_t pid;       /* 0: not running */
	int status;      /* of waitpid, when it has ended */
	bool started;    /* ever */
	char *log;       /* path; its stderr, and stdout where not kept; NULL: the terminal */
	struct args args;
};

struct child_start {
	bool terminal;    /* keeps stdin, stdout and stderr, and the terminal's signals */
	bool keep_stdout; /* stdout stays the supervisor's */
	int pass_fd;      /* stays open in the child; -1 none */
	int dies_by;      /* signal it gets when the supervisor dies */
};

/* Starts c->args (program first). The child's log is appended to. */
int child_start(struct child *c, const struct child_start *how, struct error *err);
/* Sends a signal, if it runs. */
void child_signal(const struct child *c, int signal);
/* Takes note of an ended process: true when it was this child. */
bool child_ended(struct child *c, pid_t pid, int status);
/* "exit status 1", "signal 9 (Killed)". */
void child_how_it_ended(const struct child *c, char *text, size_t room);
/* The exit status as a shell gives it. */
int child_exit_status(const struct child *c);
/* The last line of its log that says something, without time and level; "" when there is none. */
void child_last_words(const struct child *c, char *text, size_t room);
/* When its log holds more than so many bytes they become LOG.1, in place of the one before, and it begins anew. */
void child_bound_log(const struct child *c, off_t most);
void child_free(struct child *c);

/* Runs args to its end and gives what it wrote, at most room - 1 bytes, without the newlines at
 * its end. An exit status other than 0 is -EIO, with what it wrote in err. */
int child_output(const struct args *args, char *out, size_t room, struct error *err);

#endif
