/* remote.h - runs the script (script.h) on many hosts side by side, over ssh or on this machine.
 *
 * ssh is the user's, with the user's configuration. It asks nothing (BatchMode). One connection for
 * each host serves all commands of a program (ControlMaster), through sockets in a private folder.
 * A host may send anything: its output is bounded and cleaned (words.h).
 */
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
	const char *folder;  /* where the script's process lives: ID/agent-NAME */
	const char *program; /* path of skippipe on the host; "": the script looks for it */
	struct args words;   /* a verb of the script, and the arguments of this verb */
	const char *text;    /* standard input; NULL: none */
	const char *file;    /* standard input is this file; NULL: none */
	bool is_endless;     /* true: no limit of time; standard input stays open until the end */

	/* Outcome. 0: the script succeeded. -EIO: the script failed. -ETIMEDOUT. -ECANCELED: a
	 * signal ended this program. */
	int rc;
	int status;             /* exit status of the command; -1: it has none */
	char why[REMOTE_LINE];  /* reason of the failure */
	char said[REMOTE_LINE]; /* the last line that is no answer */
};

/* Takes an answer (key and value) or, with key NULL, another line. Lines are cleaned. */
typedef void remote_line(void *owner, struct remote_job *job, const char *key, const char *value);
/* Is called when a job begins (done: false) and when it ends. */
typedef void remote_turn(void *owner, struct remote_job *job, bool done);

struct remote_calls {
	void *owner;
	remote_line *line;
	remote_turn *turn; /* NULL: none */
};

/* Makes the folder of the sockets. Signals that end programs are blocked from then on, and end
 * remote_run. */
int remote_new(struct remote **out, const char *version, struct error *err);
/* Runs the jobs, at most PARALLEL at a time, each for at most limit_us. Returns 0 when all have
 * ended, whatever their outcome; -EINTR after a signal; another negative errno if nothing can be
 * started. */
int remote_run(struct remote *r, struct remote_job *jobs, size_t n, int64_t limit_us,
	       const struct remote_calls *calls, struct error *err);
/* Waits. Returns -EINTR after a signal. */
int remote_sleep(struct remote *r, int64_t us);
/* Closes the connections and removes the folder. */
void remote_free(struct remote *r);

#endif
