/* stage_moves.c - nodes change stages: places are exchanged, and a copy that is kept becomes a node's own weights. */
#include "controller/weights/stage_moves.h"

#include "controller/controller.h"
#include "controller/history/record.h"
#include "controller/history/run_state.h"
#include "controller/members/assign.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/placement.h"
#include "controller/members/failure_detector.h"
#include "controller/operator/journal.h"
#include "controller/planning/replan.h"
#include "controller/weights/copies.h"

enum { SETTLE_US = 500000 }; /* to load a copy, and two round trips */

struct member *stage_moves_place(struct controller *c, int stage)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (member_stage(c, m) == stage && !m->replica && (!member_alive(m) || m->marked))
			return m; /* who is marked works on until there is a plan without it */
	}
	return NULL;
}

/* Here, and with nothing of the stage to lose. */
static struct member *idle_in(struct controller *c, int stage, const struct member *but)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m != but && member_stage(c, m) == stage && !m->replica && !m->restoring)
			return m;
	}
	return NULL;
}

/* m and a node of the stage exchange places, so that every stage keeps its size: should the lost one come back, it
 * takes the place that was given up for it. */
void stage_moves_exchange(struct controller *c, struct member *m, int stage)
{
	struct member *other = stage_moves_place(c, stage);
	int was = member_stage(c, m);

	if (!other)
		other = idle_in(c, stage, m);
	if (other) {
		c->cluster->nodes[other->id].stage = was;
		if (member_alive(other) && !other->marked) {
			copies_release(c, other);
			members_set(c, other, NODE_JOINING, "its place was taken");
		}
		other->changed = true;
		record_node(c, other);
	}
	c->cluster->nodes[m->id].stage = stage;
}

void stage_moves_move(struct controller *c, struct member *m, int stage)
{
	stage_moves_exchange(c, m, stage);
	members_assign(c, m, stage, c->committed > 0);
	resume_save(c);
}

void stage_moves_load(struct controller *c, struct member *m, int stage)
{
	members_assign(c, m, stage, true);
	m->moving = true;
	c->moved_us = c->now_us;
	resume_save(c);
}

bool stage_moves_settle(const struct controller *c, int64_t since_us)
{
	return c->now_us - since_us < SETTLE_US + 2 * failure_detector_farthest_us(c);
}

static bool still_moving(struct controller *c)
{
	bool any = false;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		m->moving = m->moving && !m->replica && member_alive(m) &&
			    stage_moves_settle(c, c->moved_us);
		any = any || m->moving;
	}
	return any;
}

/* Replicas that take part from the next iteration on. */
static uint32_t count_joiners(const struct controller *c, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		n += !m->replica && member_joins(c, m) && member_stage(c, m) == stage;
	}
	return n;
}

/* Whether m keeps the copy of a stage that is down to one, its own can spare it, and there is a place. */
static bool should_move(struct controller *c, const struct member *m)
{
	return m->replica && m->keeps >= 0 && !m->homing && copy_coming(c, m, m->keeps) &&
	       placement_near(c, m, m->keeps) && stage_replicas(c, m->keeps, NULL) + count_joiners(c, m->keeps) <= 1 &&
	       stage_replicas(c, member_stage(c, m), NULL) >= 3 && stage_moves_place(c, m->keeps);
}

bool stage_moves_balance(struct controller *c)
{
	bool coming = false;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		int stage = m->keeps;

		if (!should_move(c, m))
			continue;
		if (!copy_usable(c, m, stage)) {
			coming = stage_moves_settle(c, c->committed_us);
			continue;
		}
		note(c, NOTE_EVENT, m->id, 0,
		     "S%d is down to one replica: n%02u moves there from S%d", stage, m->id,
		     member_stage(c, m));
		stage_moves_exchange(c, m, stage);
		stage_moves_load(c, m, stage);
		replan(c, "a node moved to a stage that was down to one replica");
	}
	return still_moving(c) || coming;
}
