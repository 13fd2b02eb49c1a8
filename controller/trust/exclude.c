/* exclude.c - takes a node out of the run for what it sent, until the operator recovers it.
 *
 * An admitted agent is trusted to be honest, but its memory, its device or its program may be
 * faulty. An agent that breaks the protocol, or sends numbers that no computation yields, would do
 * so again after a restart. The controller therefore marks the node failed, as an operator can, and
 * the other agents forget its key. If several nodes compute such numbers from the same weights, the
 * weights are the cause, and the run ends without blaming a node. */
#include "controller/trust/exclude.h"

#include <stdio.h>

#include "controller/members/members.h"
#include "controller/history/finish.h"
#include "controller/members/member.h"
#include "controller/members/peers.h"

void exclude_member(struct members *members, struct member *m, const char *why)
{
	/* The sums may contain wrong numbers from this node */
	members->run->requests.restart_sums = true;
	member_mark(members, m, true);
	member_shun(members, m, true);
	member_apply(members->run, m, MEMBER_LOST, why);
	member_apply(members->run, m, MEMBER_BAR, why); /* the process of the node still runs */
}

void exclude_for_number(struct members *members, struct member *m, const char *why)
{
	struct bad_numbers *b = &members->bad_numbers;
	bool is_second = b->iteration == members->run->iteration && b->excluded != m;
	char what[80];

	if (!member_is_replica(m))
		return;
	if (is_second)
		snprintf(what, sizeof(what), "n%02u and n%02u computed impossible numbers",
			 b->excluded->id, m->id);
	else
		snprintf(what, sizeof(what), "n%02u computed impossible numbers", m->id);
	if (is_second || stage_replicas(members, member_stage(members->run, m), m) == 0) {
		training_diverged(members, what);
		return;
	}
	*b = (struct bad_numbers){ members->run->iteration, m };
	exclude_member(members, m, why);
}

void training_diverged(struct members *members, const char *what)
{
	struct bad_numbers *b = &members->bad_numbers;
	struct run *run = members->run;
	char why[160];

	if (b->iteration == run->iteration && b->excluded && b->excluded->is_marked) {
		member_mark(members, b->excluded, false);
		member_apply(run, b->excluded, MEMBER_MISS, "the training has diverged");
	}
	snprintf(why, sizeof(why),
		 "the training has diverged in iteration %llu: %s; the learning rate of %g may be "
		 "too high",
		 (unsigned long long)run->iteration, what,
		 (double)recipe_lr(&run->training.recipe, run->iteration));
	controller_finish(members, 1, why);
}
