/* lifecycle.c - the table of a member's states and events, and the function that carries it out.
 *
 * Every change of a member's state goes through this table. The record, the journal and the
 * consoles therefore never miss a change. An event that a state does not allow becomes an error in
 * the log, instead of a state that no other module expects. */
#include "controller/members/lifecycle.h"

#include <stdio.h>

#include "controller/members/failures.h"
#include "controller/members/member.h"
#include "controller/members/member_record.h"
#include "controller/members/members.h"
#include "controller/members/peers.h"
#include "controller/members/saved_state.h"
#include "controller/run/journal.h"

/* number of state changes of one node that the controller records in one burst */
enum { ROWS = 500 };
static const double rows_per_s = 0.5;

/* ---- the table ---- */

#define IN(STATE) (1u << MEMBER_##STATE)

enum {
	REPLICA = IN(SUMMING) | IN(LIVE) | IN(SUSPECT),
	WITH_STAGE = IN(SYNCING) | IN(READY),
	RESTORES = IN(RESTORING) | IN(RESTORED),
	/* States of connected members that may become replicas */
	CANDIDATE = IN(JOINING) | WITH_STAGE | RESTORES,
	AWAY = IN(ABSENT) | IN(DEAD) | IN(LEFT),
	SAME = -1 /* the event changes neither the state nor its reason */
};

enum action {
	NOTHING,
	REQUEST_LOST, /* other nodes take over the work of the lost node */
	/* The commit may have waited for a sum from this node's standby copy, so the loop checks
	 * again whether all sums have arrived */
	REQUEST_SUMS
};

static const struct transition {
	unsigned from; /* set of the states in which the event can occur */
	enum member_event event;
	int to; /* the next state, or SAME */
	enum action action;
} table[] = {
	/* A member is assigned a stage, later holds it, and then works on it. */
	{ AWAY | CANDIDATE | IN(FAILED), EVENT_HELLO, MEMBER_JOINING, NOTHING },
	{ CANDIDATE, EVENT_ASSIGN, MEMBER_SYNCING, NOTHING },
	/* A node that is marked failed can be assigned a stage, because the mark may be removed
	 * later */
	{ IN(FAILED), EVENT_ASSIGN, SAME, NOTHING },
	{ WITH_STAGE, EVENT_HAS_STAGE, MEMBER_READY, NOTHING },
	{ RESTORES, EVENT_HAS_STAGE, MEMBER_RESTORED, NOTHING },
	/* The node reports a stage that the controller has meanwhile taken from it. */
	{ IN(JOINING) | IN(FAILED), EVENT_HAS_STAGE, SAME, NOTHING },
	{ IN(JOINING) | IN(READY), EVENT_HOLDS, MEMBER_READY, NOTHING },
	{ IN(SYNCING) | IN(FAILED) | IN(DEAD), EVENT_HOLDS, SAME, NOTHING },
	{ IN(READY), EVENT_JOIN_SUMS, MEMBER_SUMMING, NOTHING },
	{ IN(SUMMING), EVENT_JOIN_SUMS, SAME, NOTHING },
	{ IN(READY) | IN(RESTORED) | IN(SUMMING), EVENT_ADMIT, MEMBER_LIVE, NOTHING },

	/* Members lose their stage. Replicas leave only while no iteration computes. */
	{ CANDIDATE, EVENT_WAIT, MEMBER_JOINING, NOTHING },
	{ IN(FAILED), EVENT_WAIT, SAME, NOTHING },
	{ REPLICA, EVENT_LEAVE, MEMBER_JOINING, NOTHING },
	{ CANDIDATE | REPLICA, EVENT_REWIND, MEMBER_JOINING, NOTHING },
	{ AWAY | IN(FAILED), EVENT_REWIND, SAME, NOTHING },

	/* A member restores a stage that no member holds. */
	{ IN(JOINING) | WITH_STAGE | IN(LIVE), EVENT_RESTORE, MEMBER_RESTORING, NOTHING },
	{ IN(RESTORING), EVENT_ABANDON, MEMBER_SYNCING, NOTHING },
	{ IN(RESTORED), EVENT_ABANDON, MEMBER_READY, NOTHING },
	{ AWAY | IN(JOINING) | WITH_STAGE | REPLICA | IN(FAILED), EVENT_ABANDON, SAME, NOTHING },
	{ IN(JOINING) | WITH_STAGE | IN(DEAD), EVENT_REINSTATE, MEMBER_LIVE, NOTHING },

	/* Members fall silent and return. */
	{ IN(LIVE), EVENT_QUIET, MEMBER_SUSPECT, NOTHING },
	{ CANDIDATE | IN(SUMMING) | IN(SUSPECT) | IN(FAILED), EVENT_QUIET, SAME, NOTHING },
	{ IN(SUSPECT), EVENT_HEARD, MEMBER_LIVE, NOTHING },
	{ CANDIDATE | IN(SUMMING) | IN(LIVE) | IN(FAILED), EVENT_HEARD, SAME, NOTHING },
	{ REPLICA, EVENT_LOST, MEMBER_DEAD, REQUEST_LOST },
	{ CANDIDATE | IN(FAILED), EVENT_LOST, MEMBER_DEAD, REQUEST_SUMS },
	{ CANDIDATE | IN(FAILED), EVENT_DEPART, MEMBER_LEFT, REQUEST_SUMS },
	{ AWAY | IN(FAILED), EVENT_MISS, MEMBER_DEAD, NOTHING },
	{ IN(DEAD), EVENT_RETURN, MEMBER_JOINING, NOTHING },

	/* Members are excluded. */
	{ CANDIDATE | IN(FAILED), EVENT_MARK, MEMBER_FAILED, NOTHING },
	{ IN(ABSENT), EVENT_MARK, MEMBER_ABSENT, NOTHING },
	{ IN(DEAD), EVENT_MARK, MEMBER_DEAD, NOTHING },
	{ IN(LEFT), EVENT_MARK, MEMBER_LEFT, NOTHING },
	{ REPLICA, EVENT_MARK, SAME, NOTHING },
	{ REPLICA, EVENT_RETIRE, MEMBER_FAILED, NOTHING },
	{ CANDIDATE | IN(FAILED) | IN(DEAD), EVENT_BAR, MEMBER_FAILED, NOTHING },
	{ IN(FAILED), EVENT_RECOVER, MEMBER_JOINING, NOTHING },
	{ AWAY | CANDIDATE | REPLICA, EVENT_RECOVER, SAME, NOTHING },
};

static const struct transition *find(enum member_state from, enum member_event event)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].event == event && (table[i].from >> from & 1))
			return &table[i];
	return NULL;
}

static const char *const event_names[MEMBER_EVENTS] = {
	[EVENT_HELLO] = "hello",     [EVENT_HEARD] = "heard",
	[EVENT_RETURN] = "return",   [EVENT_REINSTATE] = "reinstate",
	[EVENT_WAIT] = "wait",       [EVENT_LEAVE] = "leave",
	[EVENT_ASSIGN] = "assign",   [EVENT_HAS_STAGE] = "has stage",
	[EVENT_HOLDS] = "holds",     [EVENT_RESTORE] = "restore",
	[EVENT_ABANDON] = "abandon", [EVENT_JOIN_SUMS] = "join sums",
	[EVENT_ADMIT] = "admit",     [EVENT_REWIND] = "rewind",
	[EVENT_QUIET] = "quiet",     [EVENT_MARK] = "mark",
	[EVENT_RETIRE] = "retire",   [EVENT_BAR] = "bar",
	[EVENT_RECOVER] = "recover", [EVENT_LOST] = "lost",
	[EVENT_MISS] = "miss",       [EVENT_DEPART] = "depart",
};

/* ---- carrying it out ---- */

/* Records a change of state if consoles and the record show it. For example, consoles and the
 * record do not distinguish a member that has its stage from a member that fetches its stage. */
static void record_change(struct run *run, struct member *m)
{
	m->since_us = run->now_us;
	m->shown.sent_us = 0;
	if (m->state != MEMBER_SUSPECT &&
	    rate_limit_take(&m->quota.rows, 1, ROWS, rows_per_s, run->now_us))
		record_node(run, m);
}

/* Sets the state of m's drain. DRAIN_EXCLUDED also marks m, so that plans exclude m. When another
 * state follows, this mark is removed. Other states leave an operator's mark unchanged. */
static void set_drain(struct member *m, enum member_drain to)
{
	if (to == DRAIN_EXCLUDED || m->move.drain == DRAIN_EXCLUDED)
		m->is_marked = to == DRAIN_EXCLUDED;
	m->move.drain = to;
}

/* Clears the state that does not survive the death or the suspension of the process. */
static void forget_process(struct run *run, struct member *m)
{
	set_drain(m, DRAIN_NOT);
	m->fault_pending = m->stuck.is_cut_off = false;
	m->compute.slots = 0;
	m->copy.sum_state = COPY_NO_SUM;
	m->move.is_returning = false;
	m->move.use = USE_UNDECIDED;
	note(run, NOTE_ALERT, m->id, 'F', "n%02u S%d %s", m->id, member_stage(run, m), m->why);
}

bool member_apply(struct run *run, struct member *m, enum member_event event, const char *why)
{
	const struct transition *t = find(m->state, event);
	enum node_state was = member_shown(m);

	if (!t) {
		run->record.refused_events++;
		log_line(&run->log, LOG_ERROR, "node %u: no transition from state %s (%d) by '%s'",
			 m->id, node_state_name(was), (int)m->state, event_names[event]);
		return false;
	}
	if (t->to == SAME)
		return true;
	if (why)
		snprintf(m->why, sizeof(m->why), "%s", why);
	if (event == EVENT_ADMIT && !*m->why)
		failures_reason(m, m->why, sizeof(m->why));
	m->state = (enum member_state)t->to;
	m->shown.is_stale = true;
	if (member_shown(m) != was)
		record_change(run, m);
	if (m->state == MEMBER_LIVE)
		m->copy.n_refused = 0;
	if ((m->state == MEMBER_LIVE && m->move.use == USE_UNDECIDED) || event == EVENT_LEAVE)
		m->move.use = USE_ALWAYS;
	if (event == EVENT_DEPART)
		set_drain(m, DRAIN_NOT);
	if (event == EVENT_LOST)
		forget_process(run, m);
	if (t->action == REQUEST_LOST)
		request_lost(&run->requests, m->id);
	if (t->action == REQUEST_SUMS)
		run->requests.look_at_sums = true;
	return true;
}

void member_mark(struct members *members, struct member *m, bool is_marked)
{
	m->is_marked = is_marked;
	m->assigned.is_left_out = false;
	m->checkpoint.silent_in = is_marked ? m->checkpoint.silent_in : 0;
	if (!is_marked)
		member_shun(members, m, false);
	resume_save_change(members);
}

void member_drain(struct members *members, struct member *m, enum member_drain to)
{
	if (m->move.drain == to)
		return;
	set_drain(m, to);
	m->shown.is_stale = true;
	record_change(members->run, m);
}
