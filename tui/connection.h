/* connection.h - the connection to the controller: attaches, reattaches after every loss, sends
 * commands and delivers messages. Never blocks.
 */
#ifndef TUI_CONNECTION_H
#define TUI_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/msg.h"

struct connection; /* opaque */

struct connection_options {
	const char *address; /* "tcp://HOST:PORT" or "ipc://PATH" */
	/* The controller's public key as 64 hex digits, or the path of a file with it. */
	const char *controller_key;
	const char *key;            /* file of this console's key; created if it is missing */
	const char *name;           /* this console's name */
	bool readonly;
};

/* Succeeds if the address and keys are valid. The controller is reached later, by itself. */
int connection_open(struct connection **out, const struct connection_options *o,
		    struct error *err);
void connection_close(struct connection *c); /* c may be NULL */

int connection_fd(const struct connection *c); /* returns a descriptor to poll for POLLIN */
/* Returns the time at which connection_next must be called even if nothing has arrived. */
int64_t connection_deadline_us(const struct connection *c);

enum connection_event {
	CONNECTION_NOTHING, /* no event is left */
	CONNECTION_MESSAGE, /* a message has arrived: data and size, borrowed until the next call */
	CONNECTION_UP,
	CONNECTION_DOWN,
	CONNECTION_REFUSED,
	CONNECTION_UNREACHED /* no address accepts a connection; `why` names the cause for each */
};

struct connection_notice {
	enum connection_event event;
	const void *data;
	size_t size;
	char why[160]; /* reason, for DOWN and REFUSED */
};

/* Gives the next event. A message in *out is borrowed until the next call. */
void connection_next(struct connection *c, int64_t now_us, struct connection_notice *out);
/* Requests a new snapshot after messages were lost. At most one request a second is sent. */
void connection_attach(struct connection *c, int64_t now_us);
/* Sends a command. -EAGAIN: too many messages are unacknowledged; -ENOTCONN: there is no
 * connection. */
int connection_command(struct connection *c, const struct msg_command *m, int64_t now_us);
/* Returns true if everything that was sent has been acknowledged. */
bool connection_idle(const struct connection *c);

#endif
