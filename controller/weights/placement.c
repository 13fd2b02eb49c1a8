/* placement.c - chooses the stage of a node that joins.
 *
 * The first plan gives every node a stage, and nodes exchange stages when one of them takes over
 * another stage (copies.c). A node with very slow links to the replicas of its stage would delay
 * every sum. Such a node takes the stage of an absent node if its links to that stage are faster.
 * Otherwise it gets no stage. */
#include "controller/weights/placement.h"

#include <math.h>

#include "controller/members/member.h"
#include "controller/members/member_record.h"
#include "controller/members/members.h"
#include "controller/members/saved_state.h"
#include "controller/network/link_table.h"
#include "controller/planning/planner.h"
#include "controller/run/journal.h"

double placement_distance_s(const struct run *run, const struct member *from,
			    const struct member *to)
{
	size_t i = (size_t)from->id * (size_t)run->cluster->n_nodes + to->id;
	const double *pair = run->cluster->sync_pair_s;

	return pair && pair[i] >= 0 ? pair[i] : run->cluster->delay_s[i];
}

/* Returns the plan seconds in which m and the most distant replica of the stage exchange a
 * sum. */
static double farthest_s(const struct members *members, const struct member *m, int stage)
{
	double most = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *r = &members->list[i];
		double to = placement_distance_s(members->run, m, r);
		double from = placement_distance_s(members->run, r, m);

		if (r == m || !member_is_replica(r) || member_stage(members->run, r) != stage)
			continue;
		if (to < 0 || from < 0)
			return INFINITY;
		most = fmax(most, fmax(to, from));
	}
	return most;
}

/* Returns the plan seconds of the slowest exchange of a sum between two nodes of one stage. Each
 * node counts with its stage in the first plan, even if it has another stage now. */
static double slowest_home_s(const struct members *members)
{
	double most = 0;

	for (uint32_t i = 0; i < members->n; i++)
		for (uint32_t j = 0; j < members->n; j++)
			if (i != j && members->list[i].move.home >= 0 &&
			    members->list[i].move.home == members->list[j].move.home)
				most = fmax(most,
					    placement_distance_s(members->run, &members->list[i],
								 &members->list[j]));
	return most;
}

double placement_transfer_s(const struct members *members, const struct member *from,
			    const struct member *to, double bytes)
{
	double s =
		members->links ? link_table_transfer_s(members->links, from->id, to->id, bytes) : 0;

	return s > 0 ? s : 0;
}

bool placement_near(const struct members *members, const struct member *m, int stage)
{
	double iteration_s, far_s, usual_s;

	if (!members->run->plan)
		return true;
	iteration_s = members->run->plan->plan->predicted.iteration_s;
	far_s = farthest_s(members, m, stage);
	if (far_s <= iteration_s / 2)
		return true;
	usual_s = slowest_home_s(members);
	return far_s <= fmax(usual_s, (iteration_s + usual_s) / 2);
}

int placement_for(struct members *members, struct member *m, int stage)
{
	if (placement_near(members, m, stage))
		return stage;
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *away = &members->list[i];
		int theirs = member_stage(members->run, away);

		if (away == m || theirs < 0 || theirs == stage || member_is_replica(away) ||
		    (member_alive(away) && !away->is_marked) || !placement_near(members, m, theirs))
			continue;
		note(members->run, NOTE_EVENT, m->id, 0,
		     "n%02u takes the place of n%02u in S%d: its links to the nodes of S%d are "
		     "too slow",
		     m->id, away->id, theirs, stage);
		members->run->cluster->nodes[away->id].stage = stage;
		members->run->cluster->nodes[m->id].stage = theirs;
		away->shown.is_stale = true;
		record_node(members->run, away);
		resume_save(members);
		return theirs;
	}
	return -1;
}
