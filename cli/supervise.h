/* supervise.h - runs a controller, its agents and a console until the run is over.
 *
 * The controller writes orders to a pipe, one a line:
 *
 *     start N    start agent N again after it ended
 *     kill N     end agent N with SIGKILL, as a machine's failure would
 *     wake N     continue a stopped agent N
 *     end        the run is over, whatever the controller's exit status is
 *
 * The supervisor only logs the death of an agent. The controller detects that death by itself, as
 * it does for an agent on another machine. A controller that is killed, or ends with an exit status
 * other than 0 without an "end", is restarted and resumes the run. */
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
	struct args resume; /* command line of a restarted controller; empty: it is not restarted */
	/* Path of a file that exists once the run can be resumed; borrowed. NULL: the run can
	 * always be resumed. */
	const char *record;
	struct child console; /* the console's process; args is empty if there is no console */
	struct child *agents; /* array of n_agents */
	uint32_t n_agents;
	/* Number of agents that start at once; orders start the others; 0: all start at once */
	uint32_t n_started;
	bool headless;  /* there is no console, and the controller keeps stdout */
	bool echo;      /* the controller's log is also written to stdout */
	off_t log_most; /* a log that has more bytes is rotated; 0: 16 MiB */
	int orders;     /* read end of the pipe for orders */
	int orders_to;  /* write end of the pipe for orders, which the controller inherits */
};

/* Blocks SIGINT, SIGTERM and SIGHUP until supervise() handles them. Without this a signal during
 * the preparations would leave folders and sockets behind. */
void supervise_hold_signals(void);

/* Starts all processes. Returns when all have ended and the terminal has its former settings. Ends
 * them on SIGINT, SIGTERM, SIGHUP, and when the console or the controller ends. *status is the
 * controller's exit status. It fails if a process could not be started, in which case no process is
 * left running, or if every agent ended by itself. err says why. */
int supervise(struct processes *processes, const struct log *log, int *status, struct error *err);

#endif
