/* stream.h - sends messages to consoles, with a sequence number for each console. */
#ifndef CONTROLLER_RUN_STREAM_H
#define CONTROLLER_RUN_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/run/rate_limit.h"
#include "wire/post.h"

struct run;
struct msg;

struct console {
	post_peer_id peer;
	char name[64];
	bool may_command;
	bool live; /* the console has its snapshot and receives changes */
	/* A message to this console was dropped, so the console receives a new snapshot once its
	 * queue has room */
	bool lagging;
	uint64_t sequence;
	uint64_t dropped;
};

struct stream {
	struct console *consoles; /* array of n_consoles */
	uint32_t n_consoles;
	size_t room_consoles;
	/* Times at which tasks, the status and the links are sent next; 0: now */
	int64_t next_us, next_status_us, next_links_us;
	bool links_changed;
	/* limits the journal lines about consoles that attach and leave */
	struct rate_limit visits;
};

/* Encodes and sends a message. -EAGAIN: the queue has no room, and nothing was sent; -EINVAL: the
 * message exceeds a limit. */
int send_message_to(struct post *post, post_peer_id to, const struct msg *m, int64_t now_us);
/* Finds the console with this connection; NULL: none. */
struct console *console_of_peer(struct run *run, post_peer_id peer);
/* Sends a message to all live consoles. */
void consoles_tell(struct run *run, struct msg *m);
/* Sends a message to one console, or drops it and marks the console as lagging. */
void console_send(struct run *run, struct console *to, struct msg *m);

#endif
