/* supervise.h - runs a controller, its agents and a console until the run is over.
 *
 * The controller writes orders to a pipe, one a line:
 *
 *     start N    start agent N again after it ended
 *     kill N     end agent N with SIGKILL, as the failure of its machine would
 *     wake N     continue agent N, which was stopped by a signal
 *     end        the run is over, whatever the controller's exit status will be
 *
 * When an agent dies, the supervisor only writes to its log. The controller finds out by itself, as
 * it does for an agent on another machine. The supervisor restarts a controller that is killed, or
 * that ends with an exit status other than 0 without having written "end". The new controller
 * resumes the run.
 */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/children.h"

/* The processes of a run, with their command lines and logs. supervise() starts them. */
struct processes {
	struct child controller;
	/* Command line of a restarted controller; empty: the controller is not restarted. */
	struct args resume;
	/* Path of a file that exists as soon as the run can be resumed; borrowed. NULL: the run can
	 * be resumed at any time. */
	const char *record;
	struct child console; /* the console's process; args is empty if there is no console */
	struct child *agents; /* array of n_agents */
	uint32_t n_agents;
	/* Number of agents that start with the run; 0: all. Orders of the controller start the
	 * others. */
	uint32_t n_started;
	bool headless;  /* there is no console, and the controller writes to stdout */
	bool echo;      /* the supervisor copies the controller's log to stdout */
	off_t log_most; /* a log that has more bytes is rotated; 0: 16 MiB */
	int orders;     /* read end of the pipe for orders */
	int orders_to;  /* write end of the pipe for orders, which the controller inherits */
};

/* Blocks the signals that end programs until supervise() handles them. A signal that ended this
 * process during the preparations would leave folders and sockets behind. */
void supervise_hold_signals(void);

/* Starts all processes. Ends them on SIGINT, SIGTERM or SIGHUP, or when the console or the
 * controller ends. Returns after all processes have ended and the terminal has got its former
 * settings back. *status gets the controller's exit status. If a process could not be started, or
 * if every agent ended by itself with an error, ends all processes, and returns a negative errno
 * with the reason in err. */
int supervise(struct processes *processes, const struct log *log, int *status, struct error *err);

#endif
