/* spares.c - nodes that wait as spares: plans do not use them until they are needed.
 *
 * Two kinds of nodes wait. A late node is a spare if enough nodes work (--agents MIN..MAX) and it
 * would not shorten the iteration. A node that failed often is used last, so that its next failure
 * costs nothing. A spare is a replica like any other: it has the weights of each commit and takes
 * part in the sums. No microbatch visits it while its stage has another replica that plans use.
 *
 * When a plan loses a node, a spare of the same stage replaces the node in the next plan. The spare
 * already has the weights, so none are sent, and the first plan without the lost node already uses
 * the spare. */
#include "controller/planning/spares.h"

#include <stdio.h>

#include "controller/members/failures.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/saved_state.h"
#include "controller/planning/request.h"
#include "controller/run/journal.h"

static bool is_unreliable(const struct member *m)
{
	return failures_are_many(m) && !m->move.is_used;
}

/* Returns true if plans prefer every other replica of m's stage. */
static bool is_last_choice(const struct member *m)
{
	return m->move.use == USE_SPARE || is_unreliable(m);
}

/* Returns true if m's stage has another replica that plans use. */
static bool has_better(const struct members *members, const struct member *m)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *o = &members->list[i];

		if (o != m && member_is_replica(o) && !o->is_marked && !is_last_choice(o) &&
		    member_stage(members->run, o) == member_stage(members->run, m))
			return true;
	}
	return false;
}

bool spares_wait(const struct members *members, const struct member *m)
{
	return member_is_replica(m) && is_last_choice(m) && has_better(members, m);
}

bool spares_any(const struct members *members, enum spares_kind kind)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (spares_wait(members, &members->list[i]) &&
		    (kind == SPARES_ALL || !is_unreliable(&members->list[i])))
			return true;
	return false;
}

void spares_exclude(const struct members *members, enum spares_kind used, bool *excluded)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];
		bool may_use = used == SPARES_ALL || (used == SPARES_LATE && !is_unreliable(m));

		excluded[i] = excluded[i] || (!may_use && spares_wait(members, m));
	}
}

void spares_admit(struct members *members, struct member *m)
{
	const struct run *run = members->run;
	uint32_t in_use = 0;

	if (m->move.use != USE_UNDECIDED || run->options.cluster.least_agents <= 1)
		return; /* --agents has no MIN */
	for (uint32_t i = 0; i < members->n; i++)
		in_use += member_computes(&members->list[i]) && !members->list[i].is_marked &&
			  !spares_wait(members, &members->list[i]);
	if (in_use < run->options.cluster.least_agents || !has_better(members, m))
		return;
	m->move.use = USE_SPARE;
	resume_save(members);
}

/* Lets plans use m from now on. */
static void begin_use(struct members *members, struct member *m, const char *why)
{
	bool is_late = !is_unreliable(m);

	m->move.is_used = true;
	m->move.use = USE_ALWAYS;
	m->shown.is_stale = true;
	m->why[0] = 0;
	resume_save(members);
	if (is_late)
		note(members->run, NOTE_EVENT, m->id, 0, "n%02u, a spare of S%d, is used: %s",
		     m->id, member_stage(members->run, m), why);
	else
		note(members->run, NOTE_EVENT, m->id, 0,
		     "n%02u, which failed %u times, is used again: %s", m->id, m->move.failures,
		     why);
}

const struct member *spares_for(const struct members *members, const struct member *gone)
{
	const struct member *best = NULL;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (m == gone || !member_computes(m) || m->is_marked ||
		    m->move.drain != DRAIN_NOT || !is_last_choice(m) ||
		    member_stage(members->run, m) != member_stage(members->run, gone))
			continue;
		if (!best || (is_unreliable(best) && !is_unreliable(m)))
			best = m;
	}
	return best;
}

void spares_replace(struct members *members, struct member *gone)
{
	const struct run *run = members->run;
	bool is_used = run->plan ? planned_uses(run->plan, gone->id)
				 : run->resumed && !is_last_choice(gone);
	bool lacks = is_used && gone->move.replaced_in != run->epoch;
	const struct member *m = lacks ? spares_for(members, gone) : NULL;
	char why[48];

	if (!m)
		return;
	gone->move.replaced_in = run->epoch;
	snprintf(why, sizeof(why), "it takes the place of n%02u", gone->id);
	begin_use(members, &members->list[m->id], why);
}

void spares_use(struct members *members, const struct planned *p)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (planned_uses(p, (uint16_t)i) && spares_wait(members, &members->list[i]))
			begin_use(members, &members->list[i], "an iteration is shorter with it");
}

bool spares_use_all(struct members *members)
{
	bool any = false;

	for (uint32_t i = 0; i < members->n; i++) {
		if (!spares_wait(members, &members->list[i]))
			continue;
		begin_use(members, &members->list[i], "there is no plan without it");
		any = true;
	}
	return any;
}
