/* join_requests.c - admits the keys of machines that have an invitation.
 *
 * The peer's session uses the invitation's key, which proves that the peer knows the secret. In
 * such a session the peer may only ask for the admission of a key. The controller stores the
 * admission durably before it answers. The admission then has the same effect as an operator's
 * `skippipe admit`. */
#include "controller/joining/join_requests.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "controller/joining/agents.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/run/journal.h"
#include "wire/invite/invitations.h"

enum { LINES = 50 /* journal lines about refused requests allowed in one burst */ };
static const double lines_per_s = 0.1;

bool join_requests_is_invited(const struct members *members, post_peer_id peer)
{
	struct post_peer_info info;

	return post_peer(members->run->post, peer, &info) == 0 && info.role == KEYS_INVITATION;
}

static void answer(struct run *run, post_peer_id peer, const char *name)
{
	struct msg m = { .type = MSG_ADMITTED };
	struct member nobody = { .peer = peer };

	snprintf(m.u.admitted.name, sizeof(m.u.admitted.name), "%s", name);
	member_send(run, &nobody, &m);
}

/* Refuses a request for admission. final: true if the controller would refuse the same request
 * again; false if the controller cannot read or write the list of keys now. If `final` is false,
 * the reason names a file, so only the operator sees the reason. */
static void refuse(struct members *members, post_peer_id peer, const char *invitation,
		   const struct error *reason, bool final)
{
	members_refuse(members->run, peer,
		       final ? reason->text
			     : "the controller's list of admitted keys cannot be changed now",
		       final);
	if (rate_limit_take(&members->admission.requests, 1, LINES, lines_per_s,
			    members->run->now_us))
		note(members->run, NOTE_WARNING, -1, 0, "invitation %.20s: refused: %.160s",
		     invitation, reason->text);
}

static void join(struct members *members, post_peer_id peer, const struct msg_join *j)
{
	struct run *run = members->run;
	struct invitation_request request = { .role = (enum keys_role)j->role,
					      .is_exact = j->is_exact };
	struct invitation_answer given;
	struct post_peer_info info;
	struct error err = { "" };
	int rc;

	if (post_peer(run->post, peer, &info) != 0)
		return;
	request.invitation = info.key;
	memcpy(request.key.bytes, j->key, sizeof(request.key.bytes));
	snprintf(request.name, sizeof(request.name), "%s", j->name);
	rc = invitations_admit(run->keys.admitted, &request, clock_wall_us() / 1000000, &given,
			       &err);
	if (rc != 0) {
		refuse(members, peer, info.name, &err, rc == -EPERM);
		return;
	}
	answer(run, peer, given.name);
	if (given.is_new)
		note(run, NOTE_EVENT, -1, 0,
		     "%.63s was admitted as %s by invitation %.20s (%u of %u uses)", given.name,
		     keys_role_name(request.role), given.invitation, given.terms.used,
		     given.terms.uses);
}

void join_requests_take(struct members *members, post_peer_id peer, const struct msg *m)
{
	if (m->type == MSG_JOIN)
		join(members, peer, &m->u.join);
	else
		admission_wrong(members, peer, msg_name(m->type));
}
