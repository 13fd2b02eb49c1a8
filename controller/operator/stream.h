/* stream.h - messages to consoles, numbered for each of them: who loses one gets a fresh snapshot (consoles.c). */
#ifndef CONTROLLER_OPERATOR_STREAM_H
#define CONTROLLER_OPERATOR_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/trust/rate_limit.h"
#include "wire/post.h"

struct run;
struct msg;

struct console {
	post_peer_id peer;
	char name[64];
	bool may_command;
	bool live;    /* has its snapshot, gets the stream */
	bool lagging; /* lost messages for want of room; gets a fresh snapshot when there is
			 some */
	uint64_t sequence;
	uint64_t dropped;
};

struct stream {
	struct console *consoles; /* (n_consoles) */
	uint32_t n_consoles;
	size_t room_consoles;
	int64_t next_us, next_status_us, next_links_us; /* 0: now */
	bool links_changed;
	struct rate_limit visits; /* lines of consoles that come and go */
};

struct console *console_of_peer(struct run *run, post_peer_id peer);
void consoles_tell(struct run *run, struct msg *m); /* to all that are live */
void console_send(struct run *run, struct console *to, struct msg *m);

#endif
