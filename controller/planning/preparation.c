/* preparation.c - makes agents connect to one another before a plan needs these connections.
 *
 * Opening sessions and connections takes up to seven round trips. If agents opened them in the
 * first iteration of a plan, that iteration would take several times as long as planned. As soon as
 * a plan is pending, the controller therefore sends each agent a list of nodes to which the agent
 * will send. First come the next nodes on the agent's paths, then the other replicas of the agent's
 * stage. As far as MSG_CONNECT_MOST permits, the list also has nodes that may replace the next
 * nodes: other replicas of the next nodes' stages.
 *
 * Agents answer when a message has reached all nodes of the first two kinds. The pending plan
 * waits for these answers, but at most PATIENCE_US. If a link does not open within this time, the
 * iteration handles it like any failed link.
 *
 * Nothing is prepared if links are emulated, because the times of emulated links come from a
 * model. */
#include "controller/planning/preparation.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "controller/members/member.h"
#include "controller/planning/planning.h"

/* Time for seven round trips of 250 ms, and a quarter of a second for busy agents. */
enum { PATIENCE_US = 2000000 };

/* The nodes to which one agent has to connect. */
struct list {
	uint32_t n;
	struct msg_connect_to of[MSG_CONNECT_MOST];
};

static void add(const struct planning *planning, struct list *l, int from, int to,
		enum connect_use use)
{
	const struct cluster *c = planning->run->cluster;

	if (to == from || l->n == MSG_CONNECT_MOST || c->delay_s[from * c->n_nodes + to] < 0 ||
	    !member_alive(&planning->members->list[to]))
		return;
	for (uint32_t i = 0; i < l->n; i++)
		if (l->of[i].node == to)
			return;
	l->of[l->n++] = (struct msg_connect_to){ (uint16_t)to, (uint8_t)use };
}

/* Adds the nodes to which the nodes on a path send tensors. Activations go forward, and from the
 * last node to the data node for the loss. Gradients go back along the same links. */
static void add_path(const struct planning *planning, struct list *lists,
		     const struct plan_microbatch *mb)
{
	for (int i = 0; i < mb->length; i++) {
		int node = mb->path[i], next = mb->path[(i + 1) % mb->length];

		add(planning, &lists[node], node, next, CONNECT_ACTIVATIONS);
		add(planning, &lists[next], next, node, CONNECT_ACTIVATIONS);
	}
}

static void add_stage(const struct planning *planning, struct list *l, const int *stage_of,
		      int from, int stage, enum connect_use use)
{
	for (int to = 0; stage >= 0 && to < (int)planning->members->n; to++)
		if (stage_of[to] == stage)
			add(planning, l, from, to, use);
}

/* Adds the nodes that may replace the next nodes on an agent's paths. */
static void add_substitutes(const struct planning *planning, struct list *l, const int *stage_of,
			    int from)
{
	uint32_t n = l->n;

	for (uint32_t i = 0; i < n; i++)
		if (l->of[i].use == CONNECT_ACTIVATIONS)
			add_stage(planning, l, stage_of, from, stage_of[l->of[i].node],
				  CONNECT_SPARE);
}

/* Returns an array of n_nodes with the stage of each node once the plan is in force; -1: none. */
static int *stages_with(const struct planning *planning, const struct plan *p)
{
	int *stage_of = alloc_array(planning->members->n, sizeof(*stage_of));

	plan_stages(p, (int)planning->members->n, stage_of);
	for (uint32_t i = 0; i < planning->members->n; i++)
		if (stage_of[i] < 0)
			stage_of[i] = member_stage(planning->run, &planning->members->list[i]);
	return stage_of;
}

static void send_orders(struct planning *planning, const struct plan *p)
{
	struct list *lists = alloc_array(planning->members->n, sizeof(*lists));
	int *stage_of = stages_with(planning, p);
	uint64_t id = ++planning->preparation.id;

	for (int k = 0; k < p->n_microbatches; k++)
		add_path(planning, lists, &p->microbatches[k]);
	for (uint32_t i = 0; i < planning->members->n; i++) {
		struct member *m = &planning->members->list[i];
		struct list *l = &lists[i];
		struct msg order = { .type = MSG_CONNECT };

		m->assigned.connect_id = 0;
		if (!member_alive(m) || !m->assigned.is_welcomed)
			continue;
		add_stage(planning, l, stage_of, (int)i, stage_of[i], CONNECT_SUMS);
		add_substitutes(planning, l, stage_of, (int)i);
		order.u.connect = (struct msg_connect){ id, l->n, l->of };
		if (l->n > 0 && member_send(planning->run, m, &order) == 0)
			m->assigned.connect_id = id;
	}
	free(stage_of);
	free(lists);
}

void preparation_turn(struct planning *planning)
{
	struct preparation *x = &planning->preparation;

	if (!planning->pending) {
		x->since_us = 0;
		return;
	}
	if (x->request == planning->pending->request || !planning->members->links ||
	    (planning->run->phase == PHASE_GATHERING &&
	     planning->members->gathering != GATHER_BUILD))
		return;
	x->request = planning->pending->request;
	if (!x->since_us)
		x->since_us = planning->run->now_us;
	send_orders(planning, planning->pending->plan);
}

void preparation_answer(struct member *m, const struct msg_connected *c)
{
	if (m->assigned.connect_id == c->id)
		m->assigned.connect_id = 0;
}

bool preparation_awaited(const struct planning *planning)
{
	const struct preparation *x = &planning->preparation;

	if (!planning->pending || !x->since_us || x->request != planning->pending->request ||
	    planning->run->now_us - x->since_us >= PATIENCE_US)
		return false;
	for (uint32_t i = 0; i < planning->members->n; i++) {
		const struct member *m = &planning->members->list[i];

		if (member_alive(m) && m->assigned.connect_id == x->id)
			return true;
	}
	return false;
}
