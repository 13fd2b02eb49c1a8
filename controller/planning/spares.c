/* spares.c - spares: nodes that plans use only as a last resort, because they failed often.
 *
 * Such a node is a replica like any other: it has the weights of each commit and takes part in the
 * sums, and can take a lost node's place at once. But no microbatch visits it unless its stage has
 * no other replica, or the iteration becomes much shorter with it (answers.c). A failure of the
 * node therefore costs nothing. */
#include "controller/planning/spares.h"

#include "controller/members/failures.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/planning/request.h"
#include "controller/run/journal.h"

static bool is_unreliable(const struct member *m)
{
	return failures_are_many(m) && !m->move.is_used;
}

bool spares_wait(const struct members *members, const struct member *m)
{
	if (!member_is_replica(m) || !is_unreliable(m))
		return false;
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *o = &members->list[i];

		if (member_is_replica(o) && !o->is_marked && !is_unreliable(o) &&
		    member_stage(members->run, o) == member_stage(members->run, m))
			return true;
	}
	return false;
}

bool spares_any(const struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (spares_wait(members, &members->list[i]))
			return true;
	return false;
}

void spares_exclude(const struct members *members, bool *excluded)
{
	for (uint32_t i = 0; i < members->n; i++)
		excluded[i] = excluded[i] || spares_wait(members, &members->list[i]);
}

/* Lets plans use m from now on. Returns false if m is not a spare. */
static bool begin_use(struct members *members, struct member *m, const char *why)
{
	if (!spares_wait(members, m))
		return false;
	m->move.is_used = true;
	m->shown.is_stale = true;
	m->why[0] = 0;
	note(members->run, NOTE_EVENT, m->id, 0, "n%02u, which failed %u times, is used again: %s",
	     m->id, m->move.failures, why);
	return true;
}

void spares_use(struct members *members, const struct planned *p)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (planned_uses(p, (uint16_t)i))
			begin_use(members, &members->list[i],
				  "an iteration is much shorter with it");
}

bool spares_use_all(struct members *members)
{
	bool any = false;

	for (uint32_t i = 0; i < members->n; i++)
		any = begin_use(members, &members->list[i], "there is no plan without it") || any;
	return any;
}
