/* exclude.c - takes a node out of the run for what it sent, until the operator recovers it.
 *
 * An admitted agent is trusted to be honest, but its memory, its device or its program may be faulty. An agent that
 * breaks the protocol, or sends numbers that no computation gives, would do so again after a restart. So the
 * controller marks the node failed, as the operator can do, and the others forget its key.
 */
#include "controller/trust/exclude.h"

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/peers.h"

enum { BAD_REPLICAS_MOST = 3 };

void exclude_member(struct controller *c, struct member *m, const char *why)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		c->members[i].reduced = false;
	members_mark(c, m, true);
	member_shun(c, m, true);
	members_gone(c, m, why);
	members_set(c, m, NODE_FAILED, why);
}

void exclude_for_number(struct controller *c, struct member *m, const char *why)
{
	struct bad_numbers *b = &c->bad_numbers;

	if (!m->replica)
		return;
	*b = (struct bad_numbers){ c->iteration, b->iteration == c->iteration ? b->n + 1 : 1 };
	if (b->n > BAD_REPLICAS_MOST)
		controller_finish(c, 1, "the training has diverged: numbers are not finite");
	else
		exclude_member(c, m, why);
}
