/* node_state.c - changes the state of a node, and records the change.
 *
 *     ABSENT -> JOINING (HELLO arrived) -> SYNCING (has a stage) -> LIVE
 *     LIVE -> SUSPECT (silent) -> LIVE, or DEAD;  LIVE -> FAILED (marked by the operator)
 *     DEAD -> JOINING when it is heard again, or when a new process sends HELLO
 *
 * The record, the journal and the consoles follow these changes, so no other module writes
 * member.state. */
#include "controller/members/node_state.h"

#include <stdio.h>

#include "controller/members/members.h"
#include "controller/history/record.h"
#include "controller/history/run_state.h"
#include "controller/members/member.h"
#include "controller/members/peers.h"
#include "controller/operator/journal.h"

enum { ROWS = 500 }; /* a node's state changes in the store, in one burst */
static const double rows_per_s = 0.5;

void members_set(struct run *run, struct member *m, enum node_state state, const char *why)
{
	bool changed = m->state != state;

	snprintf(m->why, sizeof(m->why), "%s", why);
	m->shown.is_stale = true;
	if (!changed)
		return;
	m->state = state;
	if (state == NODE_LIVE)
		m->copy.n_refused = 0;
	m->since_us = run->now_us;
	m->shown.sent_us = 0;
	if (state != NODE_SUSPECT &&
	    rate_limit_take(&m->quota.rows, 1, ROWS, rows_per_s, run->now_us))
		record_node(run, m);
}

/* A restarted controller must know the mark, too. */
void members_mark(struct members *members, struct member *m, bool out)
{
	m->is_marked = out;
	m->checkpoint.silent_in = out ? m->checkpoint.silent_in : 0;
	if (!out)
		member_shun(members, m, false);
	resume_save(members);
}

void members_gone(struct run *run, struct member *m, const char *why)
{
	bool was_replica = m->is_replica;

	m->fault_pending = m->stuck.is_cut_off = false;
	members_set(run, m, NODE_DEAD, why);
	m->is_replica = false;
	m->assigned.is_ready = false;
	m->compute.slots = 0;
	m->copy.gets_sum = m->move.is_returning = false;
	m->checkpoint.is_restoring = false;
	note(run, NOTE_ALERT, m->id, 'F', "n%02u S%d %s", m->id, member_stage(run, m), why);
	if (was_replica)
		request_lost(&run->requests, m->id);
	else
		run->requests.look_at_sums = true; /* they may be waiting for its copy */
}
