/* assign.c - assigns a stage to a node.
 *
 * A node joins when a new run begins, after its process restarted, or when the controller lost
 * contact for a while. This module chooses the stage if none is fixed, and lets the node build the
 * stage from the seed, load its standby copy, or fetch the weights from another node first. */
#include "controller/weights/assign.h"

#include <string.h>

#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/network/measuring.h"
#include "controller/run/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/first_weights.h"
#include "controller/weights/placement.h"

/* Returns the stage with the fewest replicas, for a node that was not in the first plan. Stages
 * whose sums this node would not delay come first. */
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
	struct msg a = { .type = MSG_ASSIGN }, first;

	if (member_is_replica(m)) /* its own weights are no evidence for the new stage */
		member_apply(members->run, m, EVENT_LEAVE, "moves to another stage");
	m->assigned.at_us = members->run->now_us;
	if (fetch && !measuring_knows(members, m)) {
		member_apply(members->run, m, EVENT_WAIT, "its links are measured first");
		return;
	}
	if (stage < 0)
		stage = poorest_stage(members, m);
	if (fetch && !m->move.is_loading)
		stage = placement_for(members, m, stage);
	if (stage < 0) {
		copies_release(members, m);
		if (strcmp(m->why, too_slow) != 0)
			note(members->run, NOTE_WARNING, m->id, 0,
			     "n%02u gets no stage: %s, and would delay its sums", m->id, too_slow);
		member_apply(members->run, m, EVENT_WAIT, too_slow);
		return;
	}
	members->run->cluster->nodes[m->id].stage = stage;
	if (fetch && !copy_usable(members->run, m, stage) && !copies_own(members, m, stage)) {
		if (copies_fetch(members, m, stage))
			member_apply(members->run, m, EVENT_ASSIGN, "fetching weights");
		else
			member_apply(members->run, m, EVENT_WAIT,
				     "its stage has no living copy of the weights");
		return;
	}
	m->weights.stage = (uint8_t)stage;
	m->weights.iterations = members->run->committed;
	/* Weights built from the seed that differed once will differ again */
	m->weights.differ = m->weights.differ && !fetch;
	m->assigned.number = ++members->assignments;
	a.u.assign = (struct msg_assign){ m->assigned.number, (uint8_t)stage, fetch };
	member_apply(members->run, m, EVENT_ASSIGN,
		     fetch ? "loading weights" : "building its stage");
	if (!fetch && first_weights_order(members->run, &a.u.assign, &first))
		a = first;
	member_send(members->run, m, &a);
}
