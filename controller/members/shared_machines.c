/* shared_machines.c - detects machines whose processors other programs use.
 *
 * Agents report how long their threads ran and how long they waited for a processor. Agents of one
 * machine may also wait only for one another. In that case they use the whole machine together, and
 * drift.c corrects their pace. A machine counts as shared with other programs only if two
 * conditions hold: most of its agents wait much, and all its agents together leave some of its
 * processors unused. */
#include "controller/members/shared_machines.h"

#include <math.h>

#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/run/journal.h"

enum { LEAST_US = 500000 }; /* shortest time between two samples of an agent, microseconds */

static const double newest_weight = 0.2; /* weight of the newest sample in the running average */
/* An agent counts as delayed if it spends at least this share of its time waiting for a processor:
 * `ends` on a machine that already counts as shared, and `begins` on any other machine. */
static const double begins = 0.25, ends = 0.12;
/* Agents that use at least this share of the machine's processors have the machine to themselves:
 * `whole_ends` on a machine that already counts as shared, and `whole` on any other machine. */
static const double whole = 0.75, whole_ends = 0.9;

static bool has_samples(const struct member_processor *p)
{
	return p->runs + p->waits > 0;
}

/* Adds a sample. Returns false if the heartbeat has none. cores: number of processors that an agent
 * can use. */
static bool add_sample(struct member_processor *p, const struct msg_heartbeat *h, double cores)
{
	double seconds = (double)(h->now_us - p->at_us) * 1e-6, weight, runs, waits;
	bool is_first = p->at_us == 0 || h->ran_us < p->ran_us || h->waited_us < p->waited_us;

	if (h->ran_us == p->ran_us || (!is_first && h->now_us - p->at_us < LEAST_US))
		return false;
	runs = fmin((double)(h->ran_us - p->ran_us) * 1e-6 / seconds, cores);
	waits = fmin((double)(h->waited_us - p->waited_us) * 1e-6 / seconds, 1);
	p->ran_us = h->ran_us;
	p->waited_us = h->waited_us;
	p->at_us = h->now_us;
	if (is_first)
		return false;
	weight = has_samples(p) ? newest_weight : 1;
	p->runs += (runs - p->runs) * weight;
	p->waits += (waits - p->waits) * weight;
	return true;
}

/* Load on a machine by all its agents together. */
struct load {
	/* Number of agents, number of agents that have sent samples, and number of agents that wait
	 * much */
	uint32_t agents, sampled, waiting;
	/* Number of processors that the agents use; sum of their shares of time spent waiting */
	double runs, waits;
};

static struct load measure(const struct members *members, const struct member *m)
{
	struct load l = { .agents = 0 };

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *o = &members->list[i];

		if (!member_alive(o) || !members_share_machine(m, o))
			continue;
		l.agents++;
		l.sampled += has_samples(&o->processor);
		l.waiting += o->processor.waits >= (m->processor.is_shared ? ends : begins);
		l.runs += o->processor.runs;
		l.waits += o->processor.waits;
	}
	return l;
}

static void set_shared(struct members *members, const struct member *m, const struct load *l,
		       bool is_shared)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (members_share_machine(m, &members->list[i])) {
			members->list[i].processor.is_shared = is_shared;
			members->list[i].shown.is_stale = true;
		}
	if (is_shared)
		note(members->run, NOTE_WARNING, m->id, 0,
		     "n%02u's machine is shared: its agents wait for a processor %.0f%% of the "
		     "time, and get %.1f of %u; predictions are too short by that",
		     m->id, 100 * l->waits / l->agents, l->runs, m->hello.cores);
	else
		note(members->run, NOTE_EVENT, m->id, 0,
		     "the agents of n%02u's machine have its processors again", m->id);
}

void shared_machines_hear(struct members *members, struct member *m)
{
	struct load l;
	bool is_shared;

	/* Comparing an agent with all others is costly, so this is done only if the agent waits
	 * much. */
	if (!add_sample(&m->processor, &m->beat, m->hello.cores) || m->hello.cores == 0 ||
	    (m->processor.waits < begins && !m->processor.is_shared))
		return;
	l = measure(members, m);
	is_shared = 2 * l.waiting > l.agents &&
		    l.runs < (m->processor.is_shared ? whole_ends : whole) * m->hello.cores;
	if (l.agents > 0 && l.sampled == l.agents && is_shared != m->processor.is_shared)
		set_shared(members, m, &l, is_shared);
}

bool shared_machines_any(const struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (member_takes_part(&members->list[i]) && members->list[i].processor.is_shared)
			return true;
	return false;
}

static double share_of(const struct member *m)
{
	return m->processor.is_shared ? m->processor.waits : 0;
}

unsigned shared_machines_percent(const struct member *m)
{
	return (unsigned)(100 * share_of(m) + 0.5);
}

double shared_machines_share(const struct members *members, uint16_t a, uint16_t b)
{
	return fmax(share_of(&members->list[a]), share_of(&members->list[b]));
}
