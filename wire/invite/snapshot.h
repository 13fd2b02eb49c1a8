/* snapshot.h - reads one snapshot of a controller, as a console receives it, with a token.
 *
 * The session is that of a console that only watches, so that the controller needs no message of
 * its own for this.
 */
#ifndef WIRE_SNAPSHOT_H
#define WIRE_SNAPSHOT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "wire/msg.h"

struct snapshot_options {
	char *token;     /* a token, or @FILE with one; is overwritten, because it is secret */
	const char *who; /* name of the session */
	const struct log *log;
	/* Takes one message of the snapshot, in the controller's order. The message is valid until
	 * the call returns. If the connection is lost, the snapshot begins again with
	 * MSG_SEE_RUN. */
	void (*take)(void *context, struct msg *m);
	void *context;
};

/* Returns true if the text is a token, or names a file with @. */
bool snapshot_suits(const char *text);
/* Joins with the token and reads the snapshot. This user's key for it, watcher.key in the folder
 * for state, is made at the first call, and uses the invitation once. All calls of a user share the
 * key. If two run at the same time, one may replace the other's session, which then begins again.
 * -EINVAL: no token, or one for an agent; -EPERM: the controller refused; -EPROTO: another version;
 * -ETIMEDOUT; others are the system's. */
int snapshot_read(const struct snapshot_options *options, struct error *err);

#endif
