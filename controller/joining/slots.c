/* slots.c - sets how many microbatches a node holds at once, according to its memory.
 *
 * Plans and the agent itself need the number before the agent has built its stage. A node keeps the
 * number when its stage changes, so the number is computed for the largest stage. If several agents
 * join one machine at about the same time, the free memory that each agent reports includes memory
 * that the other agents are about to take. Therefore each agent gets an equal share, and a share
 * that is already given to a joiner is reduced. */
#include "controller/joining/slots.h"

#include "controller/members/capacity.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/network/measuring.h"
#include "controller/weights/copies.h"

/* Share of a machine's free memory that activations may take */
static const double memory_share = 0.7;

static uint64_t most_parameters(const struct run *run)
{
	uint64_t most = 0;

	for (uint32_t s = 0; s < run->training.model.n_stages; s++)
		if (run->training.stage_parameters[s] > most)
			most = run->training.stage_parameters[s];
	return most;
}

void slots_settle(struct members *members, const struct member *m)
{
	struct run *run = members->run;
	int slots;

	if (!measuring_wanted(run) || run->options.cluster.file || m->hello.memory_bytes == 0)
		return;
	slots = capacity_slots(&run->training.model, &run->training.hyper, most_parameters(run),
			       memory_share * members_memory(members, m), CAPACITY_SLOTS_MOST);
	run->cluster->nodes[m->id].memory = run->cluster_as_given->nodes[m->id].memory = slots;
}

/* Returns true if m joins and has not built its stage yet. In that case m's agent can still build
 * the stage with another number of slots. */
static bool may_begin_again(const struct members *members, const struct member *m)
{
	return (m->state == MEMBER_JOINING || m->state == MEMBER_SYNCING) &&
	       m->assigned.is_welcomed && !copy_needed(members, m);
}

void slots_settle_late(struct members *members, struct member *m)
{
	const struct run *run = members->run;

	slots_settle(members, m);
	if (run->phase == PHASE_GATHERING && !run->resumed)
		return; /* the first plan relies on the other nodes' present numbers of slots */
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *o = &members->list[i];
		int was = run->cluster->nodes[i].memory;

		if (o == m || !members_share_machine(m, o) || !may_begin_again(members, o))
			continue;
		slots_settle(members, o);
		if (run->cluster->nodes[i].memory == was)
			continue;
		copies_forget(o);
		o->assigned.is_welcomed = false;
		o->assigned.number = 0;
		member_apply(members->run, o, EVENT_WAIT,
			     "another agent of its machine joins, and they share its memory");
	}
}

void slots_settle_all(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]))
			slots_settle(members, &members->list[i]);
}
