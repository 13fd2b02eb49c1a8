/* node_state.c - a node's state, and who is gone.
 *
 *     ABSENT -> JOINING (said hello) -> SYNCING (told its stage) -> LIVE
 *     LIVE -> SUSPECT (quiet) -> LIVE, or DEAD;  LIVE -> FAILED (marked out by the operator)
 *     DEAD -> SYNCING when it is heard again, or JOINING when a new process says hello
 */
#include "controller/members/node_state.h"

#include <stdio.h>

#include "controller/controller.h"
#include "controller/history/record.h"
#include "controller/history/run_state.h"
#include "controller/members/member.h"
#include "controller/members/peers.h"
#include "controller/operator/journal.h"

enum { ROWS = 500 }; /* of a node's states in the store, at once */
static const double rows_per_s = 0.5;

void members_set(struct controller *c, struct member *m, enum node_state state, const char *why)
{
	bool changed = m->state != state;

	snprintf(m->why, sizeof(m->why), "%s", why);
	m->changed = true;
	if (!changed)
		return;
	m->state = state;
	if (state == NODE_LIVE)
		m->n_refused = 0;
	m->since_us = c->now_us;
	m->told_us = 0;
	if (state != NODE_SUSPECT && rate_limit_take(&m->rows, 1, ROWS, rows_per_s, c->now_us))
		record_node(c, m);
}

/* A successor must know it too. */
void members_mark(struct controller *c, struct member *m, bool out)
{
	m->marked = out;
	m->silent_restore_in = out ? m->silent_restore_in : 0;
	if (!out)
		member_shun(c, m, false);
	resume_save(c);
}

void members_gone(struct controller *c, struct member *m, const char *why)
{
	bool was_replica = m->replica;

	m->doomed = m->cut = false;
	members_set(c, m, NODE_DEAD, why);
	m->replica = false;
	m->ready = false;
	m->slots = 0;
	m->copies = m->homing = false;
	m->restoring = false;
	note(c, NOTE_ALERT, m->id, 'F', "n%02u S%d %s", m->id, member_stage(c, m), why);
	if (was_replica)
		request_lost(&c->requests, m->id);
	else
		c->requests.look_at_sums = true; /* they may have waited for its copy */
}
