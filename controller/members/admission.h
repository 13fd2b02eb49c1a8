/* admission.h - who may not come in, or no more: what was refused is told in the journal, what costs the controller
 * more than a message's usual work is charged to its sender, and an agent whose key was expelled or barred is out
 * at once, at the other agents' doors as well.
 */
#ifndef CONTROLLER_MEMBERS_ADMISSION_H
#define CONTROLLER_MEMBERS_ADMISSION_H

#include <stdint.h>

#include "controller/trust/rate_limit.h"
#include "wire/sessions/link.h"
#include "wire/post.h"

struct members;
struct run;
struct member;
struct msg;

struct admission {
	int64_t next_look_us, next_refresh_us;
	uint64_t keys_seen;                       /* version of the admitted */
	uint64_t refused_told[LINK_REASON_COUNT]; /* of the post's counters, in the journal */
	/* Lines of messages that nobody understands */
	struct rate_limit wrong;
};

void admission_charge(struct run *run, post_peer_id from, const struct msg *m);
/* A message that its sender should not send: charged, and a line in the log now and then. */
void admission_wrong(struct members *members, post_peer_id from, const char *what);
/* One more word that m was not asked for, or says again: some are honest. Of many the journal says so, now and then. */
void admission_stray(struct run *run, struct member *m, const char *what);
/* m is not listened to; `what` says, in words, what it does. */
void admission_ignored(struct run *run, struct member *m, const char *what);
void admission_down(struct members *members, post_peer_id peer, enum link_reason reason);
void admission_turn(struct members *members);

#endif
