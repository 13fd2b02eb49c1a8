/* rebalance.c - returns nodes to the stages that the first plan gave them.
 *
 * While nodes are away, others take their stages (copies.c, placement.c). The exchange remains when
 * they return, although links to the new replicas may be far slower. Therefore, if two running
 * nodes would both be better placed, each fetches a copy of the other's stage in the background.
 * When both copies are complete, the nodes exchange stages between two iterations; the next
 * iteration waits a moment for this. A single node exchanges stages with an absent one if the stage
 * that it leaves has enough other replicas. */
#include "controller/weights/rebalance.h"

#include "controller/members/member.h"
#include "controller/run/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/phase_moves.h"
#include "controller/weights/placement.h"
#include "controller/weights/stage_moves.h"
#include "controller/weights/weights.h"

enum { AGAIN_US = 5000000 };

static bool is_away(const struct run *run, const struct member *m)
{
	return m->move.home >= 0 && member_stage(run, m) != m->move.home;
}

/* Returns true if m runs and its links are not slow. With slow links the fetch would take long and
 * delay the sums of another stage. */
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

/* Returns the node that should leave m's home stage, preferably one whose own home is m's current
 * stage. */
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

/* Returns the stage to which the k-th node of the pair moves. */
static int bound_for(const struct weights *weights, int k)
{
	const struct member *other = weights->rebalance.pair[!k];

	return other ? member_stage(weights->run, other) : weights->rebalance.pair[k]->move.home;
}

static void forget_move(struct weights *weights)
{
	for (int k = 0; k < 2; k++) {
		struct member *m = weights->rebalance.pair[k];

		weights->rebalance.pair[k] = NULL;
		if (!m)
			continue;
		m->move.is_returning = false;
		if (member_is_replica(m) && member_alive(m) && m->copy.stage >= 0)
			copies_release(weights->members, m);
	}
	weights->rebalance.next_us = weights->run->now_us + AGAIN_US;
}

static bool fetch_stage(struct members *members, struct member *m, int stage)
{
	m->move.is_returning = copies_fetch(members, m, stage);
	return m->move.is_returning;
}

static void find_pair(struct weights *weights)
{
	for (uint32_t i = 0; i < weights->members->n; i++) {
		struct member *m = &weights->members->list[i], *x;

		if (!is_away(weights->run, m) || !may_move(weights->members, m, m->move.home))
			continue;
		x = find_partner(weights->members, m);
		if (!x && !may_go_alone(weights->members, m))
			continue;
		weights->rebalance.pair[0] = m;
		weights->rebalance.pair[1] = x;
		if (x)
			note(weights->run, NOTE_EVENT, m->id, 0,
			     "n%02u and n%02u are to exchange their stages: S%d and S%d", m->id,
			     x->id, member_stage(weights->run, m), member_stage(weights->run, x));
		else
			note(weights->run, NOTE_EVENT, m->id, 0,
			     "n%02u is to return from S%d to S%d", m->id,
			     member_stage(weights->run, m), m->move.home);
		if (!fetch_stage(weights->members, m, m->move.home) ||
		    (x && !fetch_stage(weights->members, x, member_stage(weights->run, m))))
			forget_move(weights);
		return;
	}
}

void rebalance_turn(struct weights *weights)
{
	if (weights->run->phase != PHASE_COMPUTING)
		return;
	if (!weights->rebalance.pair[0]) {
		if (weights->run->now_us >= weights->rebalance.next_us &&
		    !phase_moves_pending(weights))
			find_pair(weights);
		return;
	}
	for (int k = 0; k < 2; k++) {
		const struct member *m = weights->rebalance.pair[k];

		if (!m || (is_unhindered(weights->members, m) && m->move.is_returning &&
			   m->copy.stage == bound_for(weights, k) &&
			   (weights->rebalance.pair[!k] || may_go_alone(weights->members, m))))
			continue;
		forget_move(weights);
		return;
	}
}

static void exchange_stages(struct weights *weights)
{
	struct member *pair[2] = { weights->rebalance.pair[0], weights->rebalance.pair[1] };
	int stages[2] = { bound_for(weights, 0), member_stage(weights->run, pair[0]) };

	weights->rebalance.pair[0] = weights->rebalance.pair[1] = NULL;
	if (pair[1]) {
		note(weights->run, NOTE_EVENT, pair[0]->id, 'R',
		     "n%02u moves to S%d and n%02u to S%d", pair[0]->id, stages[0], pair[1]->id,
		     stages[1]);
		for (int k = 0; k < 2; k++)
			weights->run->cluster->nodes[pair[k]->id].stage = stages[k];
	} else {
		note(weights->run, NOTE_EVENT, pair[0]->id, 'R', "n%02u returns to S%d",
		     pair[0]->id, stages[0]);
		stage_moves_exchange(weights->members, pair[0], stages[0]);
	}
	for (int k = 0; k < 2; k++)
		if (pair[k])
			member_apply(weights->run, pair[k], EVENT_LEAVE,
				     "moves to another stage"); /* each makes room for the other */
	for (int k = 0; k < 2; k++)
		if (pair[k])
			stage_moves_load(weights->members, pair[k], stages[k]);
}

bool rebalance_awaited(struct weights *weights)
{
	bool now = weights->rebalance.pair[0] != NULL;

	for (int k = 0; k < 2; k++) {
		const struct member *m = weights->rebalance.pair[k];

		if (k == 1 && !m)
			break;
		if (!m || !is_unhindered(weights->members, m) ||
		    !copy_expected(weights->run, m, bound_for(weights, k)) ||
		    (!weights->rebalance.pair[!k] && !may_go_alone(weights->members, m)))
			return false;
		now = now && copy_usable(weights->run, m, bound_for(weights, k));
	}
	if (now)
		exchange_stages(weights);
	return !now && stage_moves_settle(weights->members, weights->run->committed_us);
}
