/* snapshot.h - reads one snapshot of a run from a controller, with a token.
 *
 * The controller treats this program like a console that watches and gives no commands. The
 * controller therefore needs no additional message. */
#ifndef WIRE_SNAPSHOT_H
#define WIRE_SNAPSHOT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "wire/msg.h"

struct snapshot_options {
	/* A token, or @FILE for the token in a file. snapshot_read overwrites the text, because a
	 * token is secret. */
	char *token;
	const char *who; /* name of the session */
	const struct log *log;
	/* Handles one message of the snapshot, in the order in which the controller sent it. The
	 * message is valid until the call returns. If the connection is lost, the snapshot starts
	 * again with MSG_SEE_RUN. */
	void (*take)(void *context, struct msg *m);
	void *context;
};

/* Returns true if the text is a token, or has the form @FILE. */
bool snapshot_suits(const char *text);
/* Connects with the token and reads the snapshot. The first call makes this user's key,
 * watcher.key in the user's folder for state, and uses the invitation once. Later calls use the
 * same key. If two calls run at the same time, one call may end the session of the other. The
 * snapshot of the ended session then starts again.
 *
 * -EINVAL: no token, or a token for an agent; -EPERM: the controller refused; -EPROTO: another
 * version; -ETIMEDOUT; other errors come from the kernel. */
int snapshot_read(const struct snapshot_options *options, struct error *err);

#endif
