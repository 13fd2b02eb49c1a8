/* rebalance.c - returns nodes to the stages that the first plan gave them.
 *
 * While nodes are away, other nodes take their stages (copies.c, placement.c). When a node
 * returns, it gets another stage at first, although its links to the replicas of that stage may
 * be far slower.
 *
 * Two running nodes exchange their stages if both would then be better placed. Each node first
 * fetches a copy of the other node's stage in the background. When both copies are complete, the
 * nodes exchange stages between two iterations, and the next iteration waits a moment for the
 * exchange. A single node exchanges stages with an absent node if the stage that it leaves has
 * enough other replicas. */
#include "controller/weights/rebalance.h"

#include "controller/members/member.h"
#include "controller/run/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/phase_moves.h"
#include "controller/weights/placement.h"
#include "controller/weights/stage_moves.h"
#include "controller/weights/backups.h"

enum { AGAIN_US = 5000000 };

static bool is_away(const struct run *run, const struct member *m)
{
	return m->move.home >= 0 && member_stage(run, m) != m->move.home;
}

/* Returns true if m runs and its links are not slow. With slow links the fetch would take long, and
 * m would delay the sums of its new stage. */
static bool is_unhindered(const struct members *members, const struct member *m)
{
	return m->state == MEMBER_LIVE && !m->is_marked && m->links.ratio <= 1 &&
	       stage_replicas(members, member_stage(members->run, m), m) > 0;
}

static bool may_move(const struct members *members, const struct member *m, int stage)
{
	return is_unhindered(members, m) && is_away(members->run, m) && m->copy.stage < 0 &&
	       copy_fits(members->run, m, stage) && placement_near(members, m, stage);
}

/* Returns a node that could leave m's home stage for m's stage. Prefers a node whose own home is
 * m's stage. */
static struct member *find_partner(struct members *members, const struct member *m)
{
	struct member *best = NULL;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *x = &members->list[i];

		if (member_stage(members->run, x) == m->move.home &&
		    may_move(members, x, member_stage(members->run, m)) &&
		    (!best || x->move.home == member_stage(members->run, m)))
			best = x;
	}
	return best;
}

static bool may_go_alone(struct members *members, const struct member *m)
{
	return stage_replicas(members, member_stage(members->run, m), NULL) >= 3 &&
	       stage_moves_place(members, m->move.home);
}

/* Returns the stage to which node k of the pair (0 or 1) moves. */
static int bound_for(const struct backups *backups, int k)
{
	const struct member *other = backups->rebalance.pair[!k];

	return other ? member_stage(backups->run, other) : backups->rebalance.pair[k]->move.home;
}

static void forget_move(struct backups *backups)
{
	for (int k = 0; k < 2; k++) {
		struct member *m = backups->rebalance.pair[k];

		backups->rebalance.pair[k] = NULL;
		if (!m)
			continue;
		m->move.is_returning = false;
		if (member_is_replica(m) && member_alive(m) && m->copy.stage >= 0)
			copies_release(backups->members, m);
	}
	backups->rebalance.next_us = backups->run->now_us + AGAIN_US;
}

static bool fetch_stage(struct members *members, struct member *m, int stage)
{
	m->move.is_returning = copies_fetch(members, m, stage);
	return m->move.is_returning;
}

static void find_pair(struct backups *backups)
{
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i], *x;

		if (!is_away(backups->run, m) || !may_move(backups->members, m, m->move.home))
			continue;
		x = find_partner(backups->members, m);
		if (!x && !may_go_alone(backups->members, m))
			continue;
		backups->rebalance.pair[0] = m;
		backups->rebalance.pair[1] = x;
		if (x)
			note(backups->run, NOTE_EVENT, m->id, 0,
			     "n%02u and n%02u are to exchange their stages: S%d and S%d", m->id,
			     x->id, member_stage(backups->run, m), member_stage(backups->run, x));
		else
			note(backups->run, NOTE_EVENT, m->id, 0,
			     "n%02u is to return from S%d to S%d", m->id,
			     member_stage(backups->run, m), m->move.home);
		if (!fetch_stage(backups->members, m, m->move.home) ||
		    (x && !fetch_stage(backups->members, x, member_stage(backups->run, m))))
			forget_move(backups);
		return;
	}
}

void rebalance_turn(struct backups *backups)
{
	if (backups->run->phase != PHASE_COMPUTING)
		return;
	if (!backups->rebalance.pair[0]) {
		if (backups->run->now_us >= backups->rebalance.next_us &&
		    !phase_moves_pending(backups))
			find_pair(backups);
		return;
	}
	for (int k = 0; k < 2; k++) {
		const struct member *m = backups->rebalance.pair[k];

		if (!m || (is_unhindered(backups->members, m) && m->move.is_returning &&
			   m->copy.stage == bound_for(backups, k) &&
			   (backups->rebalance.pair[!k] || may_go_alone(backups->members, m))))
			continue;
		forget_move(backups);
		return;
	}
}

static void exchange_stages(struct backups *backups)
{
	struct member *pair[2] = { backups->rebalance.pair[0], backups->rebalance.pair[1] };
	int stages[2] = { bound_for(backups, 0), member_stage(backups->run, pair[0]) };

	backups->rebalance.pair[0] = backups->rebalance.pair[1] = NULL;
	if (pair[1]) {
		note(backups->run, NOTE_EVENT, pair[0]->id, 'R',
		     "n%02u moves to S%d and n%02u to S%d", pair[0]->id, stages[0], pair[1]->id,
		     stages[1]);
		for (int k = 0; k < 2; k++)
			backups->run->cluster->nodes[pair[k]->id].stage = stages[k];
	} else {
		note(backups->run, NOTE_EVENT, pair[0]->id, 'R', "n%02u returns to S%d",
		     pair[0]->id, stages[0]);
		stage_moves_exchange(backups->members, pair[0], stages[0]);
	}
	for (int k = 0; k < 2; k++)
		if (pair[k])
			member_apply(backups->run, pair[k], EVENT_LEAVE,
				     /* Each node of the pair leaves a stage that the other node
				      * gets */
				     "moves to another stage");
	for (int k = 0; k < 2; k++)
		if (pair[k])
			stage_moves_load(backups->members, pair[k], stages[k]);
}

bool rebalance_awaited(struct backups *backups)
{
	bool now = backups->rebalance.pair[0] != NULL;

	for (int k = 0; k < 2; k++) {
		const struct member *m = backups->rebalance.pair[k];

		if (k == 1 && !m)
			break;
		if (!m || !is_unhindered(backups->members, m) ||
		    !copy_expected(backups->run, m, bound_for(backups, k)) ||
		    (!backups->rebalance.pair[!k] && !may_go_alone(backups->members, m)))
			return false;
		now = now && copy_usable(backups->run, m, bound_for(backups, k));
	}
	if (now)
		exchange_stages(backups);
	return !now && stage_moves_settle(backups->members, backups->run->committed_us);
}
