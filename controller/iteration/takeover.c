/* takeover.c - an iteration that outlives its controller.
 *
 * Agents go on computing while nobody leads them, and remember what happened. The store has the plan,
 * and what became of its routes: written before agents are told. So a successor takes the iteration up
 * where it is: it asks for all that happened, and from there on hears the rest. Whoever had a part in
 * it and is not here is as one that died.
 *
 * Where anything does not fit (the start was told to some only, a part is not remembered) the iteration
 * begins anew, as restart_iteration has it.
 */
#include "controller/iteration/takeover.h"

#include "controller/controller.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/reroute.h"
#include "controller/members/assign.h"
#include "controller/members/member.h"
#include "controller/operator/journal.h"
#include "controller/members/node_state.h"

enum { RECALL_BEATS = 50, RECALL_TRIPS = 4 };

static bool in_it(const struct controller *c, const struct member *m)
{
	return m->hello.iteration == c->iteration && m->hello.epoch == c->epoch && !m->lost_here;
}

/* All who are here and have a part in it; and each stage has one of them that is in it. */
static bool everybody_in_it(const struct controller *c)
{
	bool held[MSG_STAGES] = { false };

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (m->differs && routes_visit(&c->routes, m->id))
			return false; /* what others made of what it did is of no use */
		if (!m->replica || m->lost_here)
			continue;
		if (in_it(c, m))
			held[member_stage(c, m)] = true;
		else if (routes_visit(&c->routes, m->id))
			return false;
	}
	for (int s = 0; s < c->cluster->n_stages; s++)
		if (!held[s])
			return false;
	return true;
}

/* Who came in for the sum, was taken for dead and is back, or began the iteration by another plan, may have counted what is
 * another's now: it joins anew, with a gradient of nothing. */
static void set_apart(struct controller *c, struct member *m)
{
	m->replica = false;
	members_assign(c, m, member_stage(c, m), c->committed > 0);
}

static void ask_what_happened(struct controller *c)
{
	struct msg recall = { .type = MSG_RECALL, .u.recall = { c->iteration } };

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!m->replica)
			continue;
		m->plan_epoch = c->epoch;
		m->recalling = true;
		m->recalled_beat = m->beat.beat;
		member_send(c, m, &recall);
	}
}

bool takeover_resume(struct controller *c)
{
	struct planned *p = c->takeover.plan;

	c->takeover.plan = NULL;
	if (!p || !everybody_in_it(c)) {
		planned_free(p);
		return false;
	}
	planned_free(c->current);
	c->current = p;
	c->first_attempt = c->takeover.first;
	c->reduce_attempt = c->own_attempt;
	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i].replica && !in_it(c, &c->members[i]))
			set_apart(c, &c->members[i]);
	ask_what_happened(c);
	reroute_tell_again(c); /* the predecessor may have died before it told everyone */
	iteration_taken_up(c);
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!m->replica && !m->lost_here && routes_visit(&c->routes, m->id) &&
		    c->phase == PHASE_COMPUTING)
			iteration_lost(c, m);
	}
	return true;
}

/* Heartbeats to wait for: RECALL_BEATS, and those of some round trips. */
static uint64_t patience_beats(const struct member *m)
{
	return RECALL_BEATS + (uint64_t)(RECALL_TRIPS * timeout_round_trip(&m->rounds) / TIMEOUT_BEAT_US);
}

/* Who has lived for that many heartbeats since, as it says itself, lacks no time. */
bool takeover_turn(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!m->replica || !m->recalling || m->beat.beat - m->recalled_beat < patience_beats(m))
			continue;
		if (stage_replicas(c, member_stage(c, m), m) > 0) {
			members_gone(c, m, "does not say what it has done");
		} else {
			note(c, NOTE_ALERT, m->id, 0, "n%02u S%d does not say what it has done: it%llu begins anew",
			     m->id, member_stage(c, m), (unsigned long long)c->iteration);
			request_anew(&c->requests, "what had been done is not known");
		}
		return true;
	}
	return false;
}
