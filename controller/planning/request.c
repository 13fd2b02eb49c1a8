/* request.c - fills in requests to the planner, and checks whether a plan still fits the run.
 *
 * A plan names nodes, stages and links as they were when it was requested. Nodes may meanwhile
 * change stages, leave or be marked. Therefore this module checks a plan before it is used. */
#include "controller/planning/request.h"

#include "controller/members/capacity.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/network/failed_links.h"
#include "controller/network/formats.h"
#include "controller/planning/planner.h"
#include "controller/run/record.h"

/* If a stage's factor in cluster.work is below this number, the stage's tasks are too short to
 * show the speed of a node */
static const double least_work = 0.1;

bool planned_uses(const struct planned *p, uint16_t node)
{
	const struct plan *plan = p ? p->plan : NULL;

	for (int i = 0; plan && i < plan->stage_start[plan->n_stages]; i++)
		if (plan->assigned[i] == node)
			return true;
	return false;
}

/* Returns true if no link on the plan's paths has failed. */
static bool links_are_there(const struct members *members, const struct plan *plan)
{
	for (uint32_t k = 0; k < members->failed_links.n; k++) {
		const struct link_failure *cut = &members->failed_links.of[k];

		for (int i = 0; cut->active && i < plan->n_microbatches; i++) {
			const struct plan_microbatch *m = &plan->microbatches[i];

			for (int h = 0; h < m->length; h++) {
				int x = m->path[h], y = m->path[(h + 1) % m->length];

				if ((x == cut->from && y == cut->to) ||
				    (x == cut->to && y == cut->from))
					return false;
			}
		}
	}
	return true;
}

bool replan_usable_at(const struct members *members, const struct planned *p, const int *stages)
{
	const struct plan *plan = p->plan;

	for (int s = 0; s < plan->n_stages; s++) {
		for (int i = plan->stage_start[s]; i < plan->stage_start[s + 1]; i++) {
			const struct member *m = &members->list[plan->assigned[i]];

			if (!member_is_replica(m) || m->is_marked ||
			    (stages ? stages[m->id] : member_stage(members->run, m)) != s)
				return false;
		}
	}
	return links_are_there(members, plan);
}

bool replan_usable(const struct members *members, const struct planned *p)
{
	return replan_usable_at(members, p, NULL);
}

uint32_t plan_peak_slots(const struct planned *p)
{
	int most = 0;

	for (int i = 0; i < p->trace->n_nodes; i++)
		if (p->trace->peak_slots[i] > most)
			most = p->trace->peak_slots[i];
	return (uint32_t)most;
}

void drift_set_times(struct run *run, const struct member *m)
{
	struct cluster_node *n = &run->cluster->nodes[m->id];

	n->forward_s = m->compute.alone_forward_s * m->compute.pace;
	n->backward_s = m->compute.alone_backward_s * m->compute.pace;
	if (m->compute.alone_loss_s > 0)
		n->loss_s = m->compute.alone_loss_s * m->compute.pace;
}

/* Computes the times for one unit of work from the times measured when the stage was built. For a
 * stage 0 without layers, computes them from the time of the loss: the passes of this stage are
 * too short to show the node's speed. */
static void time_alone(const struct run *run, struct member_compute *w, double work)
{
	w->alone_loss_s = w->loss_s;
	w->alone_forward_s = w->forward_s / work;
	w->alone_backward_s = w->backward_s / work;
	if (work >= least_work || w->loss_s <= 0)
		return;
	w->alone_forward_s =
		w->loss_s / capacity_loss_ratio(&run->training.model, &run->training.hyper);
	w->alone_backward_s = 2 * w->alone_forward_s;
}

void replan_set_times(struct members *members)
{
	if (members->run->options.cluster.time_scale != 0)
		return;
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];
		struct cluster_node was = members->run->cluster->nodes[i];

		if (!member_is_replica(m) || m->compute.forward_s <= 0)
			continue;
		/* The node was never timed alone. Therefore uses the times measured when its
		 * stage was built. */
		if (m->compute.alone_forward_s <= 0)
			time_alone(members->run, &m->compute, member_work(members->run, m));
		drift_set_times(members->run, m);
		if (was.forward_s != members->run->cluster->nodes[i].forward_s)
			record_compute(members->run, m->id);
	}
}

bool replan_as_pinned(const struct run *run, const struct plan *p, const int *stages)
{
	for (int s = 0; s < p->n_stages; s++) {
		for (int i = p->stage_start[s]; i < p->stage_start[s + 1]; i++) {
			int node = p->assigned[i];

			if ((stages ? stages[node] : run->cluster->nodes[node].stage) != s)
				return false;
		}
	}
	return true;
}

void replan_request(const struct members *members, struct planner_request *q, bool *excluded)
{
	*q = (struct planner_request){ .kind = PLANNER_RUN,
				       .path_length = (int)members->run->wanted.path_length,
				       .skip_share = (int)members->run->wanted.skip_share,
				       .formats = members->run->wanted.formats,
				       .algorithm = members->run->options.planning.algorithm,
				       .substitute = SUBSTITUTE_BEST,
				       .excluded = excluded,
				       .overlap_sync = members->run->options.planning.overlap_sync,
				       .no_swaps = members->run->options.planning.no_swaps,
				       .threads = 1,
				       .seed = members->run->options.seed };
	for (uint32_t i = 0; i < members->n; i++)
		excluded[i] = !member_is_replica(&members->list[i]) || members->list[i].is_marked;
}

uint64_t replan_send(const struct members *members, struct planner *planner,
		     const struct planner_request *q)
{
	struct cluster *c = formats_cluster(members, &q->formats);
	uint64_t id = planner_ask(planner, c ? c : members->run->cluster, q);

	cluster_free(c);
	return id;
}

double replan_budget_s(const struct run *run, double best_s)
{
	return run->options.planning.algorithm == PLAN_BEST ? best_s
							    : run->options.planning.budget_s;
}
