/* exclude.c - takes a node out of the run for what it sent, until the operator recovers it.
 *
 * An admitted agent is trusted to be honest, but its memory, its device or its program may be
 * faulty. An agent that breaks the protocol, or sends numbers that no computation yields, would do
 * so again after a restart. The controller therefore marks the node failed, as an operator can, and
 * the other agents forget its key. */
#include "controller/trust/exclude.h"

#include "controller/members/members.h"
#include "controller/history/finish.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/peers.h"

enum { BAD_REPLICAS_MOST = 3 };

void exclude_member(struct members *members, struct member *m, const char *why)
{
	for (uint32_t i = 0; i < members->n; i++)
		members->list[i].sum.is_done = false;
	members_mark(members, m, true);
	member_shun(members, m, true);
	members_gone(members->run, m, why);
	members_set(members->run, m, NODE_FAILED, why);
}

void exclude_for_number(struct members *members, struct member *m, const char *why)
{
	struct bad_numbers *b = &members->bad_numbers;

	if (!m->is_replica)
		return;
	*b = (struct bad_numbers){ members->run->iteration,
				   b->iteration == members->run->iteration ? b->n + 1 : 1 };
	if (b->n > BAD_REPLICAS_MOST)
		controller_finish(members, 1, "the training has diverged: numbers are not finite");
	else
		exclude_member(members, m, why);
}
