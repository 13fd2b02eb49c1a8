/* admission.h - limits the time, memory and disk space that one agent or console may use up at the
 * controller. It charges senders for messages, limits journal lines about refusals, and removes
 * nodes whose key was expelled. */
#ifndef CONTROLLER_MEMBERS_ADMISSION_H
#define CONTROLLER_MEMBERS_ADMISSION_H

#include <stdint.h>

#include "controller/run/rate_limit.h"
#include "wire/sessions/link.h"
#include "wire/post.h"

struct members;
struct run;
struct member;
struct msg;

struct admission {
	int64_t next_look_us, next_refresh_us;
	/* Version of the list of admitted keys that was last applied to the nodes */
	uint64_t keys_seen;
	/* Counters of refused connections at the time of the last report */
	uint64_t refused_reported[LINK_REASON_COUNT];
	/* Limits log lines about messages that their sender must not send */
	struct rate_limit wrong;
	/* Limits journal lines about requests for admission that were refused (join_requests.c) */
	struct rate_limit requests;
};

void admission_charge(struct run *run, post_peer_id from, const struct msg *m);
/* Charges the sender for a message that it must not send, and sometimes writes a log line. `what`
 * names the message. */
void admission_wrong(struct members *members, post_peer_id from, const char *what);
/* Counts a message that the controller did not request, or that repeats an earlier message.
 * Honest agents send a few such messages. If m sends many of these messages, m is charged for
 * them and the journal reports this. */
void admission_stray(struct run *run, struct member *m, const char *what);
/* Reports in the journal, at most once in ten minutes, that the controller ignores messages of m.
 * `what` is a phrase that says what m does. */
void admission_ignored(struct run *run, struct member *m, const char *what);
void admission_down(struct members *members, post_peer_id peer, enum link_reason reason);
void admission_turn(struct members *members);

#endif
