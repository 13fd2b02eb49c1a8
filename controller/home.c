/* home.c - back to the places that the first plan gave.
 *
 * While nodes are away others take their places (copies.c, places.c), and the exchange stays when they
 * are back, though links to the other replicas may be far slower from there. So of two that work, one of which stands
 * where the other belongs, each fetches a copy of the other's stage beside its own. When both are
 * whole, between two iterations, they change places; the next iteration waits for that a moment.
 */
#include "controller/controller.h"

enum { SETTLE_US = 500000, AGAIN_US = 5000000 };

static bool away(const struct controller *c, const struct member *m)
{
	return m->home >= 0 && member_stage(c, m) != m->home;
}

static bool at_work(const struct controller *c, const struct member *m)
{
	return m->replica && m->state == NODE_LIVE && !m->marked &&
	       stage_replicas(c, member_stage(c, m), m) > 0;
}

static bool may_move(const struct controller *c, const struct member *m, int stage)
{
	return at_work(c, m) && away(c, m) && m->keeps < 0 && copies_room(c, m, stage) &&
	       place_near(c, m, stage);
}

/* Who should leave that stage for `m` to come home; best if that brings both home. */
static struct member *partner(struct controller *c, const struct member *m)
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

static void forget(struct controller *c)
{
	for (int k = 0; k < 2; k++) {
		struct member *m = c->homing[k];

		c->homing[k] = NULL;
		if (!m)
			continue;
		m->homing = false;
		if (m->replica && member_alive(m) && m->keeps >= 0)
			copies_release(c, m);
	}
	c->next_homing_us = c->now_us + AGAIN_US;
}

static bool fetch(struct controller *c, struct member *m, int stage)
{
	m->homing = copies_fetch(c, m, stage);
	return m->homing;
}

static void look_for_two(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i], *x;

		if (!away(c, m) || !may_move(c, m, m->home) || !(x = partner(c, m)))
			continue;
		c->homing[0] = m;
		c->homing[1] = x;
		note(c, NOTE_EVENT, m->id, 0, "n%02u and n%02u are to change places: S%d and S%d", m->id,
		     x->id, member_stage(c, m), member_stage(c, x));
		if (!fetch(c, m, member_stage(c, x)) || !fetch(c, x, member_stage(c, m)))
			forget(c);
		return;
	}
}

void home_turn(struct controller *c)
{
	if (c->home_moving || c->phase != PHASE_COMPUTING)
		return;
	if (!c->homing[0]) {
		if (c->now_us >= c->next_homing_us)
			look_for_two(c);
		return;
	}
	for (int k = 0; k < 2; k++) {
		const struct member *m = c->homing[k];

		if (at_work(c, m) && m->homing && m->keeps == member_stage(c, c->homing[!k]))
			continue;
		forget(c);
		return;
	}
}

static void change_places(struct controller *c)
{
	struct member *m = c->homing[0], *x = c->homing[1];
	int stage = member_stage(c, m), other = member_stage(c, x);

	note(c, NOTE_EVENT, m->id, 'R', "n%02u moves to S%d and n%02u to S%d", m->id, other, x->id,
	     stage);
	m->replica = x->replica = false; /* neither stands in the other's way */
	c->cluster->nodes[m->id].stage = other;
	c->cluster->nodes[x->id].stage = stage;
	members_assign(c, m, other, true);
	members_assign(c, x, stage, true);
	resume_save(c);
	c->home_moving = true;
	c->home_moved_us = c->now_us;
}

/* Both copies are of the last commit, or are about to be. */
static bool both_whole(const struct controller *c, bool *now)
{
	*now = true;
	for (int k = 0; k < 2; k++) {
		const struct member *m = c->homing[k];

		if (!at_work(c, m) || !m->kept || m->keeps != member_stage(c, c->homing[!k]))
			return false;
		if (copy_usable(c, m, m->keeps))
			continue;
		if (m->copy_told != c->committed)
			return false;
		*now = false;
	}
	return true;
}

bool home_awaited(struct controller *c)
{
	bool there = true, now;

	if (!c->homing[0])
		return false;
	if (!c->home_moving) {
		if (!both_whole(c, &now))
			return false;
		if (!now)
			return c->now_us - c->committed_us < SETTLE_US;
		change_places(c);
		return true;
	}
	for (int k = 0; k < 2; k++)
		there = there && c->homing[k]->replica;
	if (!there && c->now_us - c->home_moved_us < SETTLE_US &&
	    member_alive(c->homing[0]) && member_alive(c->homing[1]))
		return true;
	c->home_moving = false;
	forget(c); /* whoever is not ready yet joins like any other */
	c->next_homing_us = c->now_us;
	return false;
}
