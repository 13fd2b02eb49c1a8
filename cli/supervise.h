/* supervise.h - keeps a controller, its agents and a console going until the run is over.
 *
 * The controller gives orders on a pipe, one a line: "start N" starts agent N again after it
 * ended, "kill N" ends it with SIGKILL, as a machine's failure would, "end" says that the run is
 * over however the controller ends. That an agent died is
 * only logged here: the controller finds out for itself, as it would for another machine's. A
 * controller that is killed is started again, to go on with the run, and so is one that ends with an exit
 * status other than 0 without having said so.
 */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/children.h"

struct cast { /* everyone on the stage; made ready (args, log), not started */
	struct child controller;
	struct args resume; /* its command line after it has failed; empty: that ends the run */
	const char *record; /* a file, there once something can be resumed; borrowed; NULL:
			       always */
	struct child console; /* args empty: headless */
	struct child *agents; /* (n_agents) */
	uint32_t n_agents;
	bool headless; /* the controller keeps stdout */
	off_t log_most; /* bytes of each log, and as many of the one before; 0: 16 MiB */
	bool echo;     /* what the controller logs is also written to stdout */
	int orders;    /* the pipe's read end */
	int orders_to; /* its write end, the controller's */
};

/* From here on SIGINT, SIGTERM and SIGHUP wait for supervise, which then ends at once: so that
 * what is made before it is also cleaned up after it. */
void supervise_hold_signals(void);

/* Starts all, and returns when all have ended and the terminal is as it was. Ends them on
 * SIGINT, SIGTERM, SIGHUP, and when the console or the controller ends. *status is the
 * controller's exit status. An error: something could not be started (nothing is left running),
 * or every agent gave up by itself; its message says why. */
int supervise(struct cast *cast, const struct log *log, int *status, struct error *err);

#endif
