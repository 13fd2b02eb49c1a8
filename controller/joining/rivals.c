/* rivals.c - decides which of two processes with the same key is a node's agent.
 *
 * Two processes have the same key if an agent is killed and started again, or if an agent's machine
 * was cloned together with the key. The machine, its host name and its address do not tell these
 * two cases apart: a restarted machine may have another address, and two containers share their
 * machine.
 *
 * The rule is therefore: a process keeps its node for as long as it answers. If another process
 * with the key sends HELLO, the controller pings the node's process and waits for the answer, which
 * only a living process gives. A process that has ended was silent already when the new process
 * started, so the new process waits for a fraction of a second at most.
 *
 * If the newest process won instead, two machines with one key would take the node from each other
 * again and again, because their service managers restart them. */
#include "controller/joining/rivals.h"

#include <stdio.h>

#include "controller/joining/agents.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/run/journal.h"

enum {
	PING_EVERY_US = 100000,
	/* A message that was on its way when the HELLO arrived takes at most this long. A process
	 * that is heard after this time is alive, even if it answers no ping. */
	ANSWER_MOST_US = 5000000,
	ALERTS = 2 /* alerts about one node allowed in one burst */
};
static const double alerts_per_s = 1.0 / 300;

/* Returns the node to which another connected process with the same key belongs. NULL: none. */
static struct member *holder_of(struct members *members, post_peer_id peer,
				const struct msg_hello *hello)
{
	struct post_peer_info info;

	if (post_peer(members->run->post, peer, &info) != 0 || info.role != KEYS_AGENT)
		return NULL;
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		/* If the post (wire/post.h) has forgotten the session of a process, the process
		 * connects again with another peer id. */
		if (keys_equal(&m->key, &info.key))
			return m->peer != 0 && m->peer != peer && member_alive(m) &&
					       m->hello.incarnation != hello->incarnation
				       ? m
				       : NULL;
	}
	return NULL;
}

static void ping(struct run *run, struct member *m)
{
	m->rival.ping_us = run->now_us;
	member_ping(run, m);
}

static void refuse(struct members *members, struct member *m)
{
	struct run *run = members->run;
	char key[KEYS_TEXT_SIZE], reason[256];

	snprintf(reason, sizeof(reason),
		 "the process at %.60s (%.40s) has the same key and runs as n%02u: give this "
		 "machine a key of its own (skippipe keygen, skippipe admit)",
		 m->hello.address, m->hello.host, m->id);
	members_refuse(run, m->rival.peer, reason, true);
	m->rival.peer = 0;
	if (!rate_limit_take(&m->quota.rivals, 1, ALERTS, alerts_per_s, run->now_us))
		return;
	keys_text(&m->key, key);
	note(run, NOTE_ALERT, m->id, 0,
	     "n%02u: two processes have its key: %.50s (%.16s) keeps the node, %.50s (%.16s) was "
	     "refused",
	     m->id, m->hello.address, m->hello.host, m->rival.hello.address, m->rival.hello.host);
	note(run, NOTE_WARNING, m->id, 0,
	     "n%02u: both have the key %s: give one of them its own (skippipe keygen)", m->id, key);
}

bool rivals_wait(struct members *members, post_peer_id peer, const struct msg_hello *hello)
{
	struct member *m = holder_of(members, peer, hello);

	if (!m)
		return false;
	if (m->rival.peer != 0 && m->rival.peer != peer)
		refuse(members, m); /* if several processes wait, only the newest can be alive */
	m->rival.peer = peer;
	m->rival.hello = *hello;
	m->rival.since_us = members->run->now_us;
	ping(members->run, m);
	return true;
}

enum answer { NONE_YET, LIVES, HAS_ENDED };

static enum answer answer_of(const struct run *run, const struct member *m)
{
	struct post_peer_info info = { .heard_us = 0 };
	int64_t waited_us = run->now_us - m->rival.since_us, silent_us;

	if (m->peer == 0 || !member_alive(m) || post_peer(run->post, m->peer, &info) != 0)
		return HAS_ENDED;
	if (m->move.drain != DRAIN_NOT)
		return NONE_YET; /* the new process waits until the draining process has left */
	if (m->beat.echo_us >= m->rival.since_us || waited_us > ANSWER_MOST_US)
		return LIVES;
	silent_us = run->now_us - info.heard_us;
	return silent_us > timeout_hung_up(m->heard.gap_us, 0, run->options.limits.silence_us,
					   timeout_round_trip(&m->heard.rounds))
		       ? HAS_ENDED
		       : NONE_YET;
}

bool rivals_next(struct members *members, post_peer_id *peer, struct msg_hello *hello)
{
	struct run *run = members->run;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (m->rival.peer == 0)
			continue;
		switch (answer_of(run, m)) {
		case LIVES:
			refuse(members, m);
			break;
		case HAS_ENDED:
			*peer = m->rival.peer;
			*hello = m->rival.hello;
			m->rival.peer = 0;
			return true;
		case NONE_YET:
			if (run->now_us - m->rival.ping_us >= PING_EVERY_US)
				ping(run, m);
			break;
		}
	}
	return false;
}

void rivals_down(struct members *members, post_peer_id peer)
{
	struct post_peer_info info;

	if (member_of_peer(members, peer) || post_peer(members->run->post, peer, &info) != 0 ||
	    info.role != KEYS_AGENT)
		return;
	for (uint32_t i = 0; i < members->n; i++)
		if (members->list[i].rival.peer == peer)
			members->list[i].rival.peer = 0;
	post_forget(members->run->post, peer);
}
