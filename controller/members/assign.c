/* assign.c - a node is told which stage to hold. */
#include "controller/members/assign.h"

#include <string.h>

#include "controller/members/members.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/placement.h"
#include "controller/network/measuring.h"
#include "controller/operator/journal.h"
#include "controller/weights/copies.h"

/* For one that was not there for the first plan: of those whose sums it would not hold up, if there are any. */
static int poorest_stage(const struct members *members, const struct member *m)
{
	int best = 0;

	for (int s = 1; s < members->run->cluster->n_stages; s++) {
		bool near = placement_near(members, m, s),
		     best_near = placement_near(members, m, best);

		if (near == best_near
			    ? stage_replicas(members, s, NULL) < stage_replicas(members, best, NULL)
			    : near)
			best = s;
	}
	return best;
}

void members_assign(struct members *members, struct member *m, int stage, bool fetch)
{
	static const char too_slow[] = "its links to its stage are too slow";
	struct msg a = { .type = MSG_ASSIGN };

	m->is_replica = false;
	m->assigned.is_ready = false;
	m->assigned.at_us = members->run->now_us;
	if (fetch && !measuring_knows(members, m)) {
		members_set(members->run, m, NODE_JOINING, "its links are measured first");
		return;
	}
	if (stage < 0)
		stage = poorest_stage(members, m);
	if (fetch)
		stage = placement_for(members, m, stage);
	if (stage < 0) {
		copies_release(members, m);
		if (strcmp(m->why, too_slow) != 0)
			note(members->run, NOTE_WARNING, m->id, 0,
			     "n%02u has no place: %s, and would hold up its sums", m->id, too_slow);
		members_set(members->run, m, NODE_JOINING, too_slow);
		return;
	}
	members->run->cluster->nodes[m->id].stage = stage;
	if (fetch && !copy_usable(members->run, m, stage) && !copies_own(members, m, stage)) {
		if (copies_fetch(members, m, stage))
			members_set(members->run, m, NODE_SYNCING, "fetching weights");
		else
			members_set(members->run, m, NODE_JOINING,
				    "its stage has no living copy of the weights");
		return;
	}
	m->weights.stage = (uint8_t)stage;
	m->weights.iterations = members->run->committed;
	/* A seed's weights that differ will do so again */
	m->weights.differ = m->weights.differ && !fetch;
	m->assigned.number = ++members->assignments;
	a.u.assign = (struct msg_assign){ m->assigned.number, (uint8_t)stage, fetch };
	members_set(members->run, m, NODE_SYNCING,
		    fetch ? "loading weights" : "building its stage");
	member_send(members->run, m, &a);
}
