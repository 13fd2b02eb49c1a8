/* slots.c - sets how many microbatches a node holds at once, according to its memory.
 *
 * Plans and the agent itself need this number before the agent has built its stage. A node keeps
 * the number when its stage changes, so the number is computed for the largest stage. */
#include "controller/joining/slots.h"

#include "controller/members/capacity.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/network/measuring.h"

enum { SLOTS_MOST = 8 }; /* more microbatches at once make no plan faster */
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
			       memory_share * members_memory(members, m), SLOTS_MOST);
	run->cluster->nodes[m->id].memory = run->cluster_as_given->nodes[m->id].memory = slots;
}

void slots_settle_all(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (member_alive(&members->list[i]))
			slots_settle(members, &members->list[i]);
}
