/* rebalance.c - back to the places that the first plan gave.
 *
 * While nodes are away others take their places (copies.c, placement.c), and the exchange stays when they
 * are back, though links to the other replicas may be far slower from there. So of two that work, one of which stands
 * where the other belongs, each fetches a copy of the other's stage beside its own. When both are
 * whole, between two iterations, they change places; the next iteration waits for that a moment. One alone changes
 * with a node that is still away, where the stage that it leaves has others enough.
 */
#include "controller/weights/rebalance.h"

#include "controller/controller.h"
#include "controller/members/member.h"
#include "controller/members/placement.h"
#include "controller/operator/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/stage_moves.h"

enum { AGAIN_US = 5000000 };

static bool is_away(const struct controller *c, const struct member *m)
{
	return m->home >= 0 && member_stage(c, m) != m->home;
}

/* At work and not hindered: while its links are slow it would fetch for long, and hold up another stage's sums. */
static bool at_work(const struct controller *c, const struct member *m)
{
	return m->replica && m->state == NODE_LIVE && !m->marked && m->links_ratio <= 1 &&
	       stage_replicas(c, member_stage(c, m), m) > 0;
}

static bool may_move(const struct controller *c, const struct member *m, int stage)
{
	return at_work(c, m) && is_away(c, m) && m->keeps < 0 && copies_room(c, m, stage) &&
	       placement_near(c, m, stage);
}

/* Who should leave that stage for `m` to come home; best if that brings both home. */
static struct member *find_partner(struct controller *c, const struct member *m)
{
	struct member *best = NULL;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *x = &c->members[i];

		if (member_stage(c, x) == m->home && may_move(c, x, member_stage(c, m)) &&
		    (!best || x->home == member_stage(c, m)))
			best = x;
	}
	return best;
}

static bool may_go_alone(struct controller *c, const struct member *m)
{
	return stage_replicas(c, member_stage(c, m), NULL) >= 3 && stage_moves_place(c, m->home);
}

/* Where the k-th of the two goes. */
static int bound_for(const struct controller *c, int k)
{
	const struct member *other = c->rebalance.pair[!k];

	return other ? member_stage(c, other) : c->rebalance.pair[k]->home;
}

static void forget_move(struct controller *c)
{
	for (int k = 0; k < 2; k++) {
		struct member *m = c->rebalance.pair[k];

		c->rebalance.pair[k] = NULL;
		if (!m)
			continue;
		m->homing = false;
		if (m->replica && member_alive(m) && m->keeps >= 0)
			copies_release(c, m);
	}
	c->rebalance.next_us = c->now_us + AGAIN_US;
}

static bool fetch_stage(struct controller *c, struct member *m, int stage)
{
	m->homing = copies_fetch(c, m, stage);
	return m->homing;
}

static void look_for_two(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i], *x;

		if (!is_away(c, m) || !may_move(c, m, m->home))
			continue;
		x = find_partner(c, m);
		if (!x && !may_go_alone(c, m))
			continue;
		c->rebalance.pair[0] = m;
		c->rebalance.pair[1] = x;
		if (x)
			note(c, NOTE_EVENT, m->id, 0, "n%02u and n%02u are to change places: S%d and S%d",
			     m->id, x->id, member_stage(c, m), member_stage(c, x));
		else
			note(c, NOTE_EVENT, m->id, 0, "n%02u is to go back from S%d to S%d", m->id,
			     member_stage(c, m), m->home);
		if (!fetch_stage(c, m, m->home) || (x && !fetch_stage(c, x, member_stage(c, m))))
			forget_move(c);
		return;
	}
}

void rebalance_turn(struct controller *c)
{
	if (c->phase != PHASE_COMPUTING)
		return;
	if (!c->rebalance.pair[0]) {
		if (c->now_us >= c->rebalance.next_us)
			look_for_two(c);
		return;
	}
	for (int k = 0; k < 2; k++) {
		const struct member *m = c->rebalance.pair[k];

		if (!m || (at_work(c, m) && m->homing && m->keeps == bound_for(c, k) &&
			   (c->rebalance.pair[!k] || may_go_alone(c, m))))
			continue;
		forget_move(c);
		return;
	}
}

static void change_places(struct controller *c)
{
	struct member *pair[2] = { c->rebalance.pair[0], c->rebalance.pair[1] };
	int stages[2] = { bound_for(c, 0), member_stage(c, pair[0]) };

	c->rebalance.pair[0] = c->rebalance.pair[1] = NULL;
	if (pair[1]) {
		note(c, NOTE_EVENT, pair[0]->id, 'R', "n%02u moves to S%d and n%02u to S%d", pair[0]->id,
		     stages[0], pair[1]->id, stages[1]);
		for (int k = 0; k < 2; k++)
			c->cluster->nodes[pair[k]->id].stage = stages[k];
	} else {
		note(c, NOTE_EVENT, pair[0]->id, 'R', "n%02u goes back to S%d", pair[0]->id, stages[0]);
		stage_moves_exchange(c, pair[0], stages[0]);
	}
	for (int k = 0; k < 2; k++)
		if (pair[k])
			pair[k]->replica = false; /* neither stands in the other's way */
	for (int k = 0; k < 2; k++)
		if (pair[k])
			stage_moves_load(c, pair[k], stages[k]);
}

bool rebalance_awaited(struct controller *c)
{
	bool now = c->rebalance.pair[0] != NULL;

	for (int k = 0; k < 2; k++) {
		const struct member *m = c->rebalance.pair[k];

		if (k == 1 && !m)
			break;
		if (!m || !at_work(c, m) || !copy_coming(c, m, bound_for(c, k)) ||
		    (!c->rebalance.pair[!k] && !may_go_alone(c, m)))
			return false;
		now = now && copy_usable(c, m, bound_for(c, k));
	}
	if (now)
		change_places(c);
	return !now && stage_moves_settle(c, c->committed_us);
}
