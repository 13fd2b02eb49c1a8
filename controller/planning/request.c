/* request.c - what a planner is asked: for whom, with which times, and whether a plan is still of use. */
#include "controller/planning/request.h"

#include "controller/controller.h"
#include "controller/history/record.h"
#include "controller/members/member.h"

bool planned_uses(const struct planned *p, uint16_t node)
{
	const struct plan *plan = p ? p->plan : NULL;

	for (int i = 0; plan && i < plan->stage_start[plan->n_stages]; i++)
		if (plan->assigned[i] == node)
			return true;
	return false;
}

/* None of its paths uses a link that is cut. */
static bool links_are_there(const struct controller *c, const struct plan *plan)
{
	for (uint32_t k = 0; k < c->failed_links.n; k++) {
		const struct link_failure *cut = &c->failed_links.of[k];

		for (int i = 0; cut->active && i < plan->n_microbatches; i++) {
			const struct plan_microbatch *m = &plan->microbatches[i];

			for (int h = 0; h < m->length; h++) {
				int x = m->path[h], y = m->path[(h + 1) % m->length];

				if ((x == cut->from && y == cut->to) || (x == cut->to && y == cut->from))
					return false;
			}
		}
	}
	return true;
}

/* Every node of it is a replica of that very stage, and nobody wants it out; its links are there. */
bool replan_usable(const struct controller *c, const struct planned *p)
{
	const struct plan *plan = p->plan;

	for (int s = 0; s < plan->n_stages; s++) {
		for (int i = plan->stage_start[s]; i < plan->stage_start[s + 1]; i++) {
			const struct member *m = &c->members[plan->assigned[i]];

			if (!m->replica || m->marked || member_stage(c, m) != s)
				return false;
		}
	}
	return links_are_there(c, plan);
}

uint32_t plan_peak_slots(const struct planned *p)
{
	int most = 0;

	for (int i = 0; i < p->trace->n_nodes; i++)
		if (p->trace->peak_slots[i] > most)
			most = p->trace->peak_slots[i];
	return (uint32_t)most;
}

void drift_set_times(struct controller *c, const struct member *m)
{
	struct cluster_node *n = &c->cluster->nodes[m->id];

	n->forward_s = m->alone_forward_s * m->pace;
	n->backward_s = m->alone_backward_s * m->pace;
	if (m->alone_loss_s > 0)
		n->loss_s = m->alone_loss_s * m->pace;
}

/* Without emulation things take what they take on the agents' devices: as timed while nobody else computed on
 * that machine, or, of those that came later, as they said when their stage was built. */
void replan_set_times(struct controller *c)
{
	if (c->options.time_scale != 0)
		return;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		struct cluster_node was = c->cluster->nodes[i];

		if (!m->replica || m->measured_forward_s <= 0)
			continue;
		if (m->alone_forward_s <= 0) {
			m->alone_forward_s = m->measured_forward_s;
			m->alone_backward_s = m->measured_backward_s;
			m->alone_loss_s = m->measured_loss_s;
		}
		drift_set_times(c, m);
		if (was.forward_s != c->cluster->nodes[i].forward_s)
			record_compute(c, m->id);
	}
}

/* A plan from before somebody changed stages is no place to start from. */
bool replan_as_pinned(const struct controller *c, const struct plan *p)
{
	for (int s = 0; s < p->n_stages; s++)
		for (int i = p->stage_start[s]; i < p->stage_start[s + 1]; i++)
			if (c->cluster->nodes[p->assigned[i]].stage != s)
				return false;
	return true;
}

void replan_request(const struct controller *c, struct planner_request *q, bool *excluded)
{
	*q = (struct planner_request){ .kind = PLANNER_RUN,
				       .path_length = (int)c->path_length,
				       .algorithm = c->options.algorithm,
				       .stand_in = STAND_IN_BEST,
				       .excluded = excluded,
				       .overlap_sync = c->options.overlap_sync,
				       .threads = 1,
				       .seed = c->options.seed };
	for (uint32_t i = 0; i < c->n_members; i++)
		excluded[i] = !c->members[i].replica || c->members[i].marked;
}

double replan_budget_s(const struct controller *c, double best_s)
{
	return c->options.algorithm == PLAN_BEST ? best_s : c->options.budget_s;
}
