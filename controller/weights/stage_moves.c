/* stage_moves.c - moves nodes between stages: nodes exchange stages, and a standby copy becomes a
 * node's own weights.
 *
 * If a stage has only one replica left, a node with a standby copy moves to this stage. The
 * node's own stage must have enough other replicas. After the move the stage has two replicas,
 * although no weights were fetched. If the node moved only after the death of the last replica,
 * the stage would again have one replica and no copy. */
#include "controller/weights/stage_moves.h"

#include "controller/members/failure_detector.h"
#include "controller/members/member.h"
#include "controller/members/member_record.h"
#include "controller/members/saved_state.h"
#include "controller/planning/planning.h"
#include "controller/planning/replan.h"
#include "controller/run/journal.h"
#include "controller/weights/assign.h"
#include "controller/weights/copies.h"
#include "controller/weights/placement.h"

enum { SETTLE_US = 500000 }; /* time to load a copy, in addition to two round trips */

struct member *stage_moves_place(struct members *members, int stage)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (member_stage(members->run, m) == stage && !member_is_replica(m) &&
		    (!member_alive(m) || m->is_marked))
			/* a marked replica is not returned, because it works for the stage until
			 * a plan excludes it */
			return m;
	}
	return NULL;
}

/* Returns a node that is assigned to the stage but is not a replica yet. */
static struct member *idle_in(struct members *members, int stage, const struct member *but)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (m != but && member_stage(members->run, m) == stage && !member_is_replica(m) &&
		    !member_is_restoring(m))
			return m;
	}
	return NULL;
}

/* Exchanges the stages of m and a node of `stage`, so that every stage keeps its number of nodes.
 * If that node is absent, it gets m's former stage when it returns. */
void stage_moves_exchange(struct members *members, struct member *m, int stage)
{
	struct member *other = stage_moves_place(members, stage);
	int was = member_stage(members->run, m);

	if (!other)
		other = idle_in(members, stage, m);
	if (other) {
		members->run->cluster->nodes[other->id].stage = was;
		if (member_alive(other) && !other->is_marked) {
			copies_release(members, other);
			member_apply(members->run, other, EVENT_WAIT, "its place was taken");
		}
		other->shown.is_stale = true;
		record_node(members->run, other);
	}
	members->run->cluster->nodes[m->id].stage = stage;
}

void stage_moves_move(struct members *members, struct member *m, int stage)
{
	stage_moves_exchange(members, m, stage);
	members_assign(members, m, stage, members->run->committed > 0);
	resume_save(members);
}

void stage_moves_load(struct members *members, struct member *m, int stage)
{
	/* While is_loading is set, members_assign keeps the stage even if m's links to it are
	 * slow */
	m->move.is_loading = true;
	members_assign(members, m, stage, true);
	members->moved_us = members->run->now_us;
	resume_save(members);
}

bool stage_moves_settle(const struct members *members, int64_t since_us)
{
	return members->run->now_us - since_us <
	       SETTLE_US + 2 * failure_detector_farthest_us(members);
}

static bool still_moving(struct members *members)
{
	bool any = false;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		m->move.is_loading = m->move.is_loading && !member_is_replica(m) &&
				     member_alive(m) &&
				     stage_moves_settle(members, members->moved_us);
		any = any || m->move.is_loading;
	}
	return any;
}

/* Counts the nodes that become replicas with the next iteration. */
static uint32_t count_joiners(const struct members *members, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		n += !member_is_replica(m) && member_joins(members->run, m) &&
		     member_stage(members->run, m) == stage;
	}
	return n;
}

/* Returns true if m should move to the stage of its copy. That stage must have one replica and an
 * absent node, and m's own stage must have enough other replicas. */
static bool should_move(struct members *members, const struct member *m)
{
	return member_is_replica(m) && m->copy.stage >= 0 && !m->move.is_returning &&
	       m->copy.purpose == COPY_FOR_SAFETY &&
	       copy_expected(members->run, m, m->copy.stage) &&
	       placement_near(members, m, m->copy.stage) &&
	       stage_replicas(members, m->copy.stage, NULL) +
			       count_joiners(members, m->copy.stage) <=
		       1 &&
	       stage_replicas(members, member_stage(members->run, m), NULL) >= 3 &&
	       stage_moves_place(members, m->copy.stage);
}

bool stage_moves_balance(struct planning *planning)
{
	bool coming = false;

	for (uint32_t i = 0; i < planning->members->n; i++) {
		struct member *m = &planning->members->list[i];
		int stage = m->copy.stage;

		if (!should_move(planning->members, m))
			continue;
		if (!copy_usable(planning->run, m, stage)) {
			coming = stage_moves_settle(planning->members, planning->run->committed_us);
			continue;
		}
		note(planning->run, NOTE_EVENT, m->id, 0,
		     "S%d is down to one replica: n%02u moves there from S%d", stage, m->id,
		     member_stage(planning->run, m));
		stage_moves_exchange(planning->members, m, stage);
		stage_moves_load(planning->members, m, stage);
		replan(planning, "a node moved to a stage that was down to one replica");
	}
	return still_moving(planning->members) || coming;
}
