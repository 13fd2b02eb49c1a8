/* placement.c - which stage a node takes that joins.
 *
 * A node has its place from the first plan; places are exchanged when a stage is taken over
 * (copies.c). Among replicas to which its links are very slow a node would make every sum wait:
 * it takes the place of another node that is away, or none.
 */
#include "controller/members/placement.h"

#include <math.h>

#include "controller/controller.h"
#include "controller/history/record.h"
#include "controller/history/run_state.h"
#include "controller/members/member.h"
#include "controller/operator/journal.h"

double placement_distance_s(const struct controller *c, const struct member *from,
			const struct member *to)
{
	size_t i = (size_t)from->id * (size_t)c->cluster->n_nodes + to->id;
	const double *pair = c->cluster->sync_pair_s;

	return pair && pair[i] >= 0 ? pair[i] : c->cluster->delay_s[i];
}

/* Of a sum's exchange with the replica that is farthest away, plan seconds. */
static double farthest_s(const struct controller *c, const struct member *m, int stage)
{
	double most = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *r = &c->members[i];
		double to = placement_distance_s(c, m, r);
		double from = placement_distance_s(c, r, m);

		if (r == m || !r->replica || member_stage(c, r) != stage)
			continue;
		if (to < 0 || from < 0)
			return INFINITY;
		most = fmax(most, fmax(to, from));
	}
	return most;
}

/* Of an exchange between two that belong to one stage: what the first plan put up with, however the stages are
 * manned by now. */
static double slowest_home_s(const struct controller *c)
{
	double most = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		for (uint32_t j = 0; j < c->n_members; j++)
			if (i != j && c->members[i].home >= 0 && c->members[i].home == c->members[j].home)
				most = fmax(most, placement_distance_s(c, &c->members[i], &c->members[j]));
	return most;
}

double placement_transfer_s(const struct controller *c, const struct member *from, const struct member *to,
			double bytes)
{
	double s = c->links ? link_table_transfer_s(c->links, from->id, to->id, bytes) : 0;

	return s > 0 ? s : 0;
}

bool placement_near(const struct controller *c, const struct member *m, int stage)
{
	double iteration_s, far_s, usual_s;

	if (!c->current)
		return true;
	iteration_s = c->current->plan->predicted.iteration_s;
	far_s = farthest_s(c, m, stage);
	if (far_s <= iteration_s / 2)
		return true;
	usual_s = slowest_home_s(c);
	return far_s <= fmax(usual_s, (iteration_s + usual_s) / 2);
}

int placement_for(struct controller *c, struct member *m, int stage)
{
	if (placement_near(c, m, stage))
		return stage;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *away = &c->members[i];
		int theirs = member_stage(c, away);

		if (away == m || theirs < 0 || theirs == stage || away->replica ||
		    (member_alive(away) && !away->marked) || !placement_near(c, m, theirs))
			continue;
		note(c, NOTE_EVENT, m->id, 0,
		     "n%02u takes the place of n%02u in S%d: its links to those of S%d are too slow",
		     m->id, away->id, theirs, stage);
		c->cluster->nodes[away->id].stage = stage;
		c->cluster->nodes[m->id].stage = theirs;
		away->changed = true;
		record_node(c, away);
		resume_save(c);
		return theirs;
	}
	return -1;
}
