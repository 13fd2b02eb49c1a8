/* remote.h - runs the script (script.h) on many hosts at the same time, over ssh or on this
 * machine.
 *
 * ssh is the user's own, with the user's configuration, and never asks for a password (BatchMode).
 * The commands to a host share one connection (ControlMaster) through a socket in a private folder.
 * A host may be hostile, so its output is limited in size and cleaned (words.h).
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
	/* Folder on the host, ID/agent-NAME or ID/controller. The job's process has its files
	 * there. */
	const char *folder;
	const char *program; /* path of skippipe on the host; "": the script searches for it */
	struct args words;   /* a verb of the script, and the verb's arguments */
	const char *text;    /* text for standard input; NULL: none */
	const char *file;    /* path of a file for standard input; NULL: none */
	/* True: the job has no time limit, and its standard input stays open until the job ends. */
	bool is_endless;

	/* Outcome. 0: the script succeeded. -EIO: it failed or did not begin. -ETIMEDOUT: the time
	 * limit passed. -ECANCELED: a signal ended this program before the job was done. */
	int rc;
	/* Exit status of the command; -1: the command was killed or did not start. */
	int status;
	bool has_answered;     /* the script has begun, so ssh has reached the host */
	char why[REMOTE_LINE]; /* why the job failed */
	/* Last line of output that is not an answer. Before the script begins, this can be a line
	 * of ssh. */
	char said[REMOTE_LINE];
};

/* Receives a cleaned line of the script's output. An answer has a key and a value; any other line
 * has the key NULL. */
typedef void remote_line(void *owner, struct remote_job *job, const char *key, const char *value);
/* Called when a job begins (done false) and when a job ends (done true). */
typedef void remote_turn(void *owner, struct remote_job *job, bool done);

struct remote_calls {
	void *owner;
	remote_line *line;
	remote_turn *turn; /* NULL: nothing is called */
};

/* Makes the folder of the sockets. Blocks the signals that would end this program; a signal then
 * ends remote_run instead. */
int remote_new(struct remote **out, const char *version, struct error *err);
/* Runs the jobs, at most PARALLEL at a time. A job is ended after limit_us, counted from its start
 * or from the last part of a file that ssh took. At most LOGINS jobs log in at the same time, not
 * counting jobs whose login takes longer than LOGIN_US. Returns 0 when all jobs have ended, even
 * if some failed (job->rc). -EINTR: a signal arrived. Another negative errno: no command could be
 * started. */
int remote_run(struct remote *r, struct remote_job *jobs, size_t n, int64_t limit_us,
	       const struct remote_calls *calls, struct error *err);
/* Returns true if the job failed before the script could answer: ssh could not connect, or the host
 * was silent until the time limit. */
bool remote_is_unreachable(const struct remote_job *job);
/* Waits for `us` microseconds. Returns 0, or -EINTR if a signal arrived. */
int remote_sleep(struct remote *r, int64_t us);
/* Closes the connections, removes the folder of sockets and frees r. */
void remote_free(struct remote *r);

#endif
