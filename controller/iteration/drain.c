/* drain.c - lets a node leave after a notice, so that none of its work must be repeated.
 *
 * An agent that gets SIGTERM announces in its heartbeats that it drains, and continues to work.
 * The next plan does not use the node, as if the operator had marked it failed. When an iteration
 * begins with that plan, the node has no more work and the controller orders it to stop.
 *
 * A stage's last replica first hands the stage over between two iterations. The node that takes
 * over loads its standby copy, or fetches the weights from the node that drains (recover.c). If no
 * node can take over, the draining node works until its notice ends. */
#include "controller/iteration/drain.h"

#include <stdio.h>

#include "controller/iteration/iteration.h"
#include "controller/members/member.h"
#include "controller/planning/replan.h"
#include "controller/planning/spares.h"
#include "controller/run/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/stage_moves.h"

/* Longest time for which a draining node stays because it has the only standby copy of a stage.
 * While another node fetches a copy, the limit is COPY_WAIT_US. While no other node has been
 * chosen to fetch a copy, the limit is KEEPER_WAIT_US. A notice is usually 30 s or more. */
enum { COPY_WAIT_US = 20000000, KEEPER_WAIT_US = 1000000 };

static bool is_last_replica(const struct members *members, const struct member *m)
{
	return stage_replicas(members, member_stage(members->run, m), m) == 0;
}

/* Returns true if m is a replica of its stage and does not drain. */
static bool stays(const struct member *m)
{
	return m->state == MEMBER_LIVE && m->move.drain == DRAIN_NOT && !m->is_marked;
}

static uint32_t count_staying(const struct members *members, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++)
		n += stays(&members->list[i]) &&
		     member_stage(members->run, &members->list[i]) == stage;
	return n;
}

/* Returns true if some node can take `stage` over: a node that does not drain, and whose own stage
 * has a second replica that stays. Returns false while a copy of `stage` is being fetched, because
 * the takeover will be shorter with this copy. */
static bool has_taker(const struct members *members, int stage)
{
	bool any = false;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (member_alive(m) && m->copy.stage == stage && m->copy.state == COPY_FETCHING)
			return false;
		any = any || (stays(m) &&
			      count_staying(members, member_stage(members->run, m)) >= 2);
	}
	return any;
}

void drain_hear(struct members *members, struct member *m)
{
	if (!m->beat.drains || m->move.drain != DRAIN_NOT || !member_alive(m))
		return;
	member_drain(members, m, DRAIN_WANTED);
	note(members->run, NOTE_EVENT, m->id, 0, "n%02u S%d is draining: its agent is to end",
	     m->id, member_stage(members->run, m));
	if (member_is_replica(m) && is_last_replica(members, m))
		note(members->run, NOTE_WARNING, m->id, 0,
		     "n%02u holds S%d alone, and works until another node takes it over", m->id,
		     member_stage(members->run, m));
}

void drain_keep(struct members *members, int stage)
{
	for (uint32_t i = 0; i < members->n && stage_replicas(members, stage, NULL) == 0; i++) {
		struct member *m = &members->list[i];

		if (member_computes(m) && m->move.drain == DRAIN_EXCLUDED &&
		    member_stage(members->run, m) == stage)
			member_drain(members, m, DRAIN_WANTED);
	}
}

/* Returns true if m must stay because it has the only standby copy of a stage that has one
 * replica. If m were excluded now, it would release this copy at once. */
static bool keeps_only_copy(const struct members *members, const struct member *m)
{
	int64_t waited_us = members->run->now_us - m->since_us;
	bool is_fetched = false;

	if (m->copy.stage < 0 || !copy_expected(members->run, m, m->copy.stage) ||
	    stage_replicas(members, m->copy.stage, NULL) != 1)
		return false;
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *o = &members->list[i];

		if (o == m || o->copy.stage != m->copy.stage || !member_alive(o) || o->is_marked ||
		    o->move.drain != DRAIN_NOT)
			continue;
		if (copy_expected(members->run, o, m->copy.stage))
			return false;
		is_fetched = is_fetched || o->copy.state == COPY_FETCHING;
	}
	return waited_us < (is_fetched ? COPY_WAIT_US : KEEPER_WAIT_US);
}

/* Excludes m from plans. During a pause, retires m at once, because no plan takes effect and no
 * iteration needs m. */
static void exclude(struct iteration *it, struct member *m)
{
	if (is_last_replica(it->members, m)) {
		/* The stage's other replicas have died, so m must hand the stage over. */
		if (m->move.drain == DRAIN_EXCLUDED)
			member_drain(it->members, m, DRAIN_WANTED);
		return;
	}
	if (!m->is_marked && keeps_only_copy(it->members, m))
		return;
	if (!m->is_marked) {
		member_drain(it->members, m, DRAIN_EXCLUDED);
		spares_replace(it->members, m);
		replan(it->planning, "a node drains");
	}
	if (it->run->phase == PHASE_PAUSED)
		member_apply(it->run, m, EVENT_RETIRE, NULL);
}

/* Returns true if m's weights are not needed as a backup: they are older than the last commit, or
 * two other nodes have them. */
static bool is_replaced(struct members *members, const struct member *m)
{
	int stage = m->weights.stage;

	return stage == MSG_NO_STAGE || m->weights.iterations < members->run->committed ||
	       stage_replicas(members, stage, m) >= 2 ||
	       (stage_replicas(members, stage, m) > 0 && copies_holder(members, stage, m));
}

static bool is_coming(const struct members *members, int stage, const struct member *but)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (m != but && member_alive(m) && !m->is_marked &&
		    member_stage(members->run, m) == stage)
			return true;
	}
	return false;
}

/* Returns true if m has given up its stage, no node took the stage over, and the run is stalled
 * because only m holds the weights. */
static bool is_missed(const struct iteration *it, const struct member *m)
{
	int stage = m->weights.stage;

	return it->run->phase == PHASE_STALLED && m->move.drain == DRAIN_EXCLUDED &&
	       m->state == MEMBER_FAILED && member_holds(it->run, m, stage) &&
	       stage_replicas(it->members, stage, NULL) == 0 &&
	       !has_taker(it->members, stage) && !is_coming(it->members, stage, m);
}

/* Lets m work again until another node can take over m's stage (iteration_readmit). */
static void take_back(struct members *members, struct member *m)
{
	member_drain(members, m, DRAIN_WANTED);
	member_apply(members->run, m, EVENT_RECOVER, "its stage has no other node");
}

static bool may_go(struct iteration *it, const struct member *m)
{
	if (it->run->phase == PHASE_GATHERING)
		return !it->run->resumed;
	return !copy_needed(it->members, m) && m->checkpoint.saving == 0 &&
	       is_replaced(it->members, m);
}

static void let_go(struct members *members, struct member *m)
{
	struct msg stop = { .type = MSG_STOP };

	snprintf(stop.u.stop.reason, sizeof(stop.u.stop.reason),
		 "drained: the run goes on without this node");
	member_send(members->run, m, &stop);
	copies_forget(m);
	member_apply(members->run, m, EVENT_DEPART, "drained");
	note(members->run, NOTE_EVENT, m->id, 0, "n%02u S%d has left", m->id,
	     member_stage(members->run, m));
}

void drain_turn(struct iteration *it)
{
	if (it->run->ending.stopping) /* every node must write its last checkpoint */
		return;
	for (uint32_t i = 0; i < it->members->n; i++) {
		struct member *m = &it->members->list[i];

		if (m->move.drain == DRAIN_NOT)
			continue;
		if (member_is_replica(m))
			exclude(it, m);
		else if (is_missed(it, m))
			take_back(it->members, m);
		else if (may_go(it, m))
			let_go(it->members, m);
	}
}

/* Returns true if m has to hand its stage over to another node. */
static bool hands_over(const struct members *members, const struct member *m)
{
	return m->move.drain == DRAIN_WANTED && m->state == MEMBER_LIVE && !m->is_marked &&
	       members->run->committed > 0 && is_last_replica(members, m) &&
	       has_taker(members, member_stage(members->run, m));
}

/* Returns true if other nodes may fetch the last commit's weights from m. */
static bool is_source(const struct members *members, const struct member *m)
{
	return member_holds(members->run, m, member_stage(members->run, m)) &&
	       m->weights.hash != 0;
}

bool drain_awaited(const struct backups *backups)
{
	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *m = &backups->members->list[i];

		if (hands_over(backups->members, m) && !is_source(backups->members, m))
			return stage_moves_settle(backups->members, backups->run->committed_us);
	}
	return false;
}

const struct member *drain_last_replica(struct backups *backups)
{
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];

		if (!hands_over(backups->members, m) || !is_source(backups->members, m))
			continue;
		member_drain(backups->members, m, DRAIN_EXCLUDED);
		member_apply(backups->run, m, EVENT_RETIRE, NULL);
		return m;
	}
	return NULL;
}
