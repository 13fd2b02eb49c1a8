/* assign.c - assigns a stage to a node.
 *
 * A node joins when a new run begins, after its process restarted, or after the controller had
 * lost contact with the node for a while. This module chooses the stage if the node has no fixed
 * stage. The module then orders the node to build the stage from the seed, to load its standby
 * copy, or to fetch the weights from another node first. */
#include "controller/weights/assign.h"

#include <string.h>

#include "controller/members/failures.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/saved_state.h"
#include "controller/network/measuring.h"
#include "controller/run/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/first_weights.h"
#include "controller/weights/placement.h"
#include "controller/weights/stage_moves.h"

/* Returns true if fewer nodes are assigned to the stage than plans can use in it. */
static bool has_room(const struct members *members, int stage)
{
	int n = 0;

	for (uint32_t i = 0; i < members->n; i++)
		n += member_stage(members->run, &members->list[i]) == stage;
	return n < members->run->cluster->stages[stage];
}

/* Returns the number of the stage's replicas that did not fail often (failures.c). */
static uint32_t sound_replicas(const struct members *members, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		n += member_is_replica(m) && !m->is_marked && !failures_are_many(m) &&
		     member_stage(members->run, m) == stage;
	}
	return n;
}

/* Returns a stage for a node that has none: the stage with the fewest sound replicas, because
 * this stage is most likely to lose all of them; -1: none. Prefers stages whose sums m would not
 * delay. Plans cannot use more nodes in a stage than its size in the cluster. Therefore m gets a
 * full stage only if it can replace an absent node of the stage. */
static int poorest_stage(struct members *members, const struct member *m)
{
	int best = -1;

	for (int s = 0; s < members->run->cluster->n_stages; s++) {
		bool near = placement_near(members, m, s),
		     best_near = best >= 0 && placement_near(members, m, best);

		if (!has_room(members, s) &&
		    (!stage_moves_place(members, s) || stage_replicas(members, s, NULL) == 0))
			/* the stage must not be taken from an absent node that may have the
			 * stage's only weights */
			continue;
		if (best < 0 ||
		    (near == best_near ? sound_replicas(members, s) < sound_replicas(members, best)
				       : near))
			best = s;
	}
	return best;
}

/* Assigns a stage to m, which has none. If all stages are full, an absent node loses its stage to
 * m. */
static int take_place(struct members *members, struct member *m)
{
	int stage = poorest_stage(members, m);

	if (stage >= 0 && !has_room(members, stage))
		stage_moves_exchange(members, m, stage);
	else if (stage >= 0)
		members->run->cluster->nodes[m->id].stage = stage;
	return stage;
}

/* Saves the stages of the nodes if the run is recorded. Otherwise a restarted controller could give
 * a node's stage to a second node. */
static void save_stages(struct members *members)
{
	if (members->run->record.store)
		resume_save(members);
}

/* Lets m wait without a stage, and reports why. */
static void give_no_stage(struct members *members, struct member *m, const char *why)
{
	copies_release(members, m);
	if (strcmp(m->why, why) != 0)
		note(members->run, NOTE_WARNING, m->id, 0, "n%02u gets no stage: %s", m->id, why);
	member_apply(members->run, m, EVENT_WAIT, why);
}

void members_assign(struct members *members, struct member *m, int stage, bool fetch)
{
	const char *why = "its links to its stage are too slow, and would delay its sums";
	struct msg a = { .type = MSG_ASSIGN }, first;
	int was = member_stage(members->run, m);

	if (member_is_replica(m)) /* the replica's weights say nothing about the new stage */
		member_apply(members->run, m, EVENT_LEAVE, "moves to another stage");
	m->assigned.at_us = members->run->now_us;
	if (measuring_isolates(members, m)) {
		give_no_stage(members, m,
			      "the other nodes do not reach it, or it does not reach them");
		return;
	}
	if (fetch && !measuring_knows(members, m)) {
		member_apply(members->run, m, EVENT_WAIT, "its links are measured first");
		return;
	}
	if (stage < 0) {
		stage = take_place(members, m);
		if (stage < 0)
			why = "no stage has a place for it";
	}
	if (stage >= 0 && fetch && !m->move.is_loading)
		stage = placement_for(members, m, stage);
	if (stage < 0) {
		if (member_stage(members->run, m) != was) {
			/* m may have taken the stage of an absent node. m gives the stage up, so
			 * the absent node can get it when it returns. */
			members->run->cluster->nodes[m->id].stage = was;
			save_stages(members);
		}
		give_no_stage(members, m, why);
		return;
	}
	members->run->cluster->nodes[m->id].stage = stage;
	if (stage != was)
		save_stages(members);
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
	/* Weights made from the seed are deterministic. If they differed once, they will differ
	 * again. */
	m->weights.differ = m->weights.differ && !fetch;
	m->assigned.number = ++members->assignments;
	a.u.assign = (struct msg_assign){ m->assigned.number, (uint8_t)stage, fetch };
	member_apply(members->run, m, EVENT_ASSIGN,
		     fetch ? "loading weights" : "building its stage");
	if (!fetch && first_weights_order(members->run, &a.u.assign, &first))
		a = first;
	member_send(members->run, m, &a);
}
