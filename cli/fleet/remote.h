/* remote.h - runs the script (script.h) on many hosts side by side, over ssh or on this machine.
 *
 * The user's own ssh and its configuration are used. ssh never asks for a password (BatchMode).
 * All commands of this program to a host share one connection (ControlMaster), through sockets in a
 * private folder. A host may send anything: its output is bounded and cleaned (words.h). */
#ifndef CLI_FLEET_REMOTE_H
#define CLI_FLEET_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/args.h"
#include "cli/fleet/hosts.h"

enum { REMOTE_LINE = 1280 }; /* size of a line; the rest of a longer line is dropped */

struct remote;

/* One run of the script on one host. The pointers are borrowed until the job has ended. */
struct remote_job {
	const struct host *host;
	const char *folder;  /* folder of the script's process on the host: ID/agent-NAME */
	const char *program; /* path of skippipe on the host; "": the script looks for it */
	struct args words;   /* a verb of the script, and the arguments of this verb */
	const char *text;    /* text for standard input; NULL: none */
	const char *file;    /* path of a file for standard input; NULL: none */
	/* True: the job has no time limit, and its standard input stays open until its end */
	bool is_endless;

	/* Outcome. 0: the script succeeded. -EIO: the script failed. -ETIMEDOUT: it took too long.
	 * -ECANCELED: this program received a signal to end. */
	int rc;
	/* Exit status of the command; -1: the command did not exit by itself */
	int status;
	bool has_answered;      /* the script has sent an answer */
	char why[REMOTE_LINE];  /* reason of the failure */
	char said[REMOTE_LINE]; /* the last line of output that is not an answer */
};

/* Receives an answer (key and value), or any other line, for which key is NULL. Lines are
 * cleaned. */
typedef void remote_line(void *owner, struct remote_job *job, const char *key, const char *value);
/* Called when a job begins (done false) and when a job ends (done true). */
typedef void remote_turn(void *owner, struct remote_job *job, bool done);

struct remote_calls {
	void *owner;
	remote_line *line;
	remote_turn *turn; /* NULL: nothing is called */
};

/* Makes the folder of the sockets. Blocks the signals that end programs; they end remote_run
 * instead. */
int remote_new(struct remote **out, const char *version, struct error *err);
/* Runs the jobs, at most PARALLEL at a time, each for at most limit_us. Returns 0 when all have
 * ended, whatever their outcome; -EINTR after a signal; another negative errno if no command can be
 * started. */
int remote_run(struct remote *r, struct remote_job *jobs, size_t n, int64_t limit_us,
	       const struct remote_calls *calls, struct error *err);
/* Returns true if the job has failed before the script could answer, because ssh could not connect
 * or the host was silent until the time limit. */
bool remote_is_unreachable(const struct remote_job *job);
/* Waits for that time. Returns -EINTR after a signal, otherwise 0. */
int remote_sleep(struct remote *r, int64_t us);
/* Closes the connections and removes the folder. */
void remote_free(struct remote *r);

#endif
