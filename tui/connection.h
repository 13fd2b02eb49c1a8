/* connection.h - the line to the controller: attaches, attaches again after every loss, sends
 * commands, hands over messages. Never blocks.
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
	const char *address;        /* "tcp://HOST:PORT", "ipc://PATH" */
	const char *controller_key; /* 64 hex digits, or a file that holds them */
	const char *key;            /* file of our own key; made when it is missing */
	const char *name;           /* what we call ourselves */
	bool readonly;
};

/* Succeeds when the address and keys are good; reaching the controller goes on by itself. */
int connection_open(struct connection **out, const struct connection_options *o,
		    struct error *err);
void connection_close(struct connection *c); /* NULL is allowed */

int connection_fd(const struct connection *c); /* poll for POLLIN */
/* When connection_next has something to do though nothing came. */
int64_t connection_deadline_us(const struct connection *c);

enum connection_event {
	CONNECTION_NOTHING, /* no more now */
	CONNECTION_MESSAGE, /* data, size: borrowed until the next call */
	CONNECTION_UP,
	CONNECTION_DOWN,
	CONNECTION_REFUSED
};

struct connection_news {
	enum connection_event event;
	const void *data;
	size_t size;
	char why[160]; /* DOWN, REFUSED */
};

/* The next event, CONNECTION_NOTHING when there is none now. A message in *out is borrowed
 * until the next call. */
void connection_next(struct connection *c, int64_t now_us, struct connection_news *out);
/* The snapshot again (messages are missing); at most one a second goes out. */
void connection_attach(struct connection *c, int64_t now_us);
/* 0, -EAGAIN: too much is unacknowledged, -ENOTCONN. */
int connection_command(struct connection *c, const struct msg_command *m, int64_t now_us);
/* Whether everything sent was acknowledged. */
bool connection_idle(const struct connection *c);

#endif
