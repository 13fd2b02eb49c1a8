/* assign.c - a node is told which stage to hold. */
#include "controller/members/assign.h"

#include <string.h>

#include "controller/controller.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/placement.h"
#include "controller/network/measuring.h"
#include "controller/operator/journal.h"
#include "controller/weights/copies.h"

/* For one that was not there for the first plan: of those whose sums it would not hold up, if there are any. */
static int poorest_stage(const struct controller *c, const struct member *m)
{
	int best = 0;

	for (int s = 1; s < c->cluster->n_stages; s++) {
		bool near = placement_near(c, m, s), best_near = placement_near(c, m, best);

		if (near == best_near ? stage_replicas(c, s, NULL) < stage_replicas(c, best, NULL) : near)
			best = s;
	}
	return best;
}

void members_assign(struct controller *c, struct member *m, int stage, bool fetch)
{
	static const char too_slow[] = "its links to its stage are too slow";
	struct msg a = { .type = MSG_ASSIGN };

	m->replica = false;
	m->ready = false;
	m->assigned_us = c->now_us;
	if (fetch && !measuring_knows(c, m)) {
		members_set(c, m, NODE_JOINING, "its links are measured first");
		return;
	}
	if (stage < 0)
		stage = poorest_stage(c, m);
	if (fetch)
		stage = placement_for(c, m, stage);
	if (stage < 0) {
		copies_release(c, m);
		if (strcmp(m->why, too_slow) != 0)
			note(c, NOTE_WARNING, m->id, 0, "n%02u has no place: %s, and would hold up its sums", m->id,
			     too_slow);
		members_set(c, m, NODE_JOINING, too_slow);
		return;
	}
	c->cluster->nodes[m->id].stage = stage;
	if (fetch && !copy_usable(c, m, stage) && !copies_own(c, m, stage)) {
		if (copies_fetch(c, m, stage))
			members_set(c, m, NODE_SYNCING, "fetching weights");
		else
			members_set(c, m, NODE_JOINING,
				    "its stage has no living copy of the weights");
		return;
	}
	m->held_stage = (uint8_t)stage;
	m->holds = c->committed;
	m->differs = m->differs && !fetch; /* a seed's weights that differ will do so again */
	m->assignment = ++c->assignments;
	a.u.assign = (struct msg_assign){ m->assignment, (uint8_t)stage, fetch };
	members_set(c, m, NODE_SYNCING, fetch ? "loading weights" : "building its stage");
	member_send(c, m, &a);
}
