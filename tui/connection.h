/* connection.h - the connection to the controller. It attaches to the controller, attaches again
 * whenever the connection was lost, sends commands and delivers messages. No function blocks. */
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
	/* File of this console's key; if the file is missing, connection_open creates a key. */
	const char *key;
	const char *name;           /* this console's name */
	bool readonly;
};

/* Opens a connection. Returns 0 if the address and the keys are valid. The controller is dialed
 * later, by connection_next. */
int connection_open(struct connection **out, const struct connection_options *o,
		    struct error *err);
void connection_close(struct connection *c); /* c may be NULL */

int connection_fd(const struct connection *c); /* returns a descriptor to poll for POLLIN */
/* Returns the time at which connection_next must be called although nothing has arrived. */
int64_t connection_deadline_us(const struct connection *c);

enum connection_event {
	CONNECTION_NOTHING, /* no event is left */
	CONNECTION_MESSAGE, /* a message has arrived; `data` is borrowed until the next call */
	CONNECTION_UP,
	CONNECTION_DOWN,
	CONNECTION_REFUSED,
	/* No address of the controller accepts a connection; `why` gives each address's cause. */
	CONNECTION_UNREACHED
};

struct connection_notice {
	enum connection_event event;
	const void *data;
	size_t size;
	char why[160]; /* reason for DOWN, REFUSED and UNREACHED */
};

/* Fetches the next event into *out. A message in it is borrowed until the next call. */
void connection_next(struct connection *c, int64_t now_us, struct connection_notice *out);
/* Asks the controller for a new snapshot after messages were lost. Sends at most one request a
 * second. */
void connection_attach(struct connection *c, int64_t now_us);
/* Sends a command. -EAGAIN: too many sent messages are not acknowledged yet. -ENOTCONN: there is no
 * connection. */
int connection_command(struct connection *c, const struct msg_command *m, int64_t now_us);
/* Returns true if the controller has acknowledged everything that was sent. */
bool connection_idle(const struct connection *c);

#endif
