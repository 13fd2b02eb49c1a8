/* link_failures.c - detects links that no longer transfer anything, and chooses which end of such a
 * link is at fault.
 *
 * An agent reports links on which a message waits and nothing has moved for longer than expected
 * (agent/network/probe.c). The controller regards a link as cut if three conditions hold:
 *
 * - The stall lasts at least three times as long as expected.
 * - The stall lasts longer than the allowed lateness of heartbeats from either end.
 * - The end that did not report the stall has sent a message since the stall began.
 *
 * Between two replicas of one stage these limits are doubled, because the replicas' sum needs the
 * link and one replica would be removed. While small messages pass, these limits are multiplied by
 * four. In that case the network may be losing large packets only, or TCP may be repairing the loss
 * of many packets on a link with a long queue, which takes seconds.
 *
 * A cut link counts as absent in both directions, because TCP needs both directions. When no agent
 * reports the link any more, the run uses it again.
 *
 * The end with more cut links is at fault. If both ends have equally many cut links, usually the
 * end that reported more of them is at fault, so that a false report harms only its sender. A node
 * that has the only weights of a stage is never removed. iteration/cut_links.c decides whether a
 * node must be removed. */
#include "controller/iteration/link_failures.h"

#include "base/array.h"
#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/network/failed_links.h"
#include "controller/network/link_record.h"
#include "controller/run/journal.h"
#include "controller/run/record.h"
#include "controller/weights/copies.h"

enum {
	/* A stall that lasts this many times the expected time counts as a cut. The agent has sent
	 * several probes by then. */
	TIMES = 3,
	SMALL_PASSES_TIMES = 4,
	HEALED_US = 400000, /* a link that was not reported for this time counts as healed */
	NOTE_AGAIN_US = 10000000,
	/* Largest number of times that HEALED_US is doubled for a link that is cut repeatedly */
	DOUBLED_MOST = 7,
	/* after this time without a cut, the count of the link's cuts restarts at 0 */
	STEADY_US = 600000000
};

/* ---- reports ---- */

static int64_t later_us(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Returns true if m is a replica, or is being prepared to become one. */
static bool is_here(const struct member *m)
{
	return member_alive(m) && m->assigned.is_welcomed && !m->is_marked;
}

/* Returns the time at which m sent its newest message. */
static int64_t spoke_us(const struct member *m)
{
	return m->heard.message_us - timeout_round_trip(&m->heard.rounds) / 2;
}

/* Returns how long the link has been stuck. Time in which either end was away does not count,
 * because during this time messages waited for the node and not for the link. */
static int64_t stuck_us(const struct members *members, const struct member *m,
			const struct msg_stuck *s)
{
	int64_t reported = s->ms * (int64_t)1000;
	int64_t both = later_us(m->since_us, members->list[s->to].since_us);

	return reported < members->run->now_us - both ? reported : members->run->now_us - both;
}

static int64_t expected_us(const struct msg_stuck *s)
{
	return s->expected_ms * (int64_t)1000;
}

bool link_failures_in_a_sum(const struct run *run, const struct member *m, const struct member *o)
{
	return member_takes_part(m) && member_takes_part(o) &&
	       member_stage(run, m) == member_stage(run, o);
}

/* Returns how long a stall of the link may last before the link counts as cut. The time is
 * doubled between replicas of one stage, because a cut between them removes a node. The time is
 * multiplied by SMALL_PASSES_TIMES while small messages pass. */
static int64_t patience_us(const struct members *members, const struct member *m,
			   const struct msg_stuck *s)
{
	const struct member *o = &members->list[s->to];
	int64_t us = later_us(TIMES * expected_us(s),
			      later_us(m->heard.patience_us, o->heard.patience_us));

	if (s->small_passes)
		us *= SMALL_PASSES_TIMES;
	return link_failures_in_a_sum(members->run, m, o) ? 2 * us : us;
}

static bool counts_as_stuck(const struct members *members, const struct member *m,
			    const struct msg_stuck *s)
{
	return s->to < members->n && s->to != m->id && is_here(m) && is_here(&members->list[s->to]);
}

/* Returns true if the link has been stuck for too long. The other end must have been heard since
 * the stall began. Otherwise the other end may be dead, which the failure detector finds. */
static bool is_cut(const struct members *members, const struct member *m, const struct msg_stuck *s)
{
	int64_t stalled_us = spoke_us(m) - s->ms * (int64_t)1000 + expected_us(s);

	return counts_as_stuck(members, m, s) && !link_failures_between(members, m->id, s->to) &&
	       stuck_us(members, m, s) >= patience_us(members, m, s) &&
	       spoke_us(&members->list[s->to]) > stalled_us;
}

/* ---- cut-off nodes ---- */

static bool seems_cut(const struct members *members, const struct member *m,
		      const struct msg_stuck *s)
{
	return counts_as_stuck(members, m, s) &&
	       stuck_us(members, m, s) >= patience_us(members, m, s) / 2;
}

/* Returns the report of `from` about its link to `to` if that link seems cut, else NULL. */
static const struct msg_stuck *report_of(const struct members *members, uint16_t from, uint16_t to)
{
	const struct member *m = &members->list[from];

	for (uint32_t k = 0; k < m->stuck.n; k++)
		if (m->stuck.links[k].to == to && seems_cut(members, m, &m->stuck.links[k]))
			return &m->stuck.links[k];
	return NULL;
}

static bool long_enough(const struct members *members, uint16_t from, uint16_t to)
{
	const struct msg_stuck *s = report_of(members, from, to);

	return s && stuck_us(members, &members->list[from], s) >=
			    patience_us(members, &members->list[from], s);
}

static void count_link(struct link_tally *tallies, uint16_t a, uint16_t b, bool surely)
{
	tallies[a].cut++;
	tallies[b].cut++;
	tallies[a].surely += surely;
	tallies[b].surely += surely;
}

void link_failures_count(const struct members *members, struct link_tally *tallies)
{
	for (uint16_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		for (uint32_t k = 0; k < m->stuck.n; k++) {
			uint16_t to = m->stuck.links[k].to;

			if (!seems_cut(members, m, &m->stuck.links[k]))
				continue;
			tallies[i].reported++;
			if (to < i && report_of(members, to, i))
				continue; /* the other end counts this link */
			count_link(tallies, i, to,
				   link_failures_between(members, i, to) ||
					   long_enough(members, i, to) ||
					   long_enough(members, to, i));
		}
	}
	for (uint32_t i = 0; i < members->failed_links.n; i++) {
		const struct link_failure *k = &members->failed_links.of[i];

		if (k->active && !report_of(members, k->from, k->to) &&
		    !report_of(members, k->to, k->from))
			count_link(tallies, k->from, k->to, true);
	}
}

/* Returns true if m has the weights of a stage, and no other node has them. */
static bool is_irreplaceable(struct members *members, const struct member *m)
{
	for (int s = 0; s < members->run->cluster->n_stages; s++)
		if (((member_is_replica(m) && member_stage(members->run, m) == s) ||
		     copy_usable(members->run, m, s)) &&
		    stage_replicas(members, s, m) == 0 && !copies_holder(members, s, m))
			return true;
	return false;
}

static bool is_last(const struct members *members, const struct member *m)
{
	return stage_replicas(members, member_stage(members->run, m), m) == 0;
}

struct member *link_failures_worse(struct members *members, const struct link_tally *tallies,
				   struct member *x, struct member *y)
{
	const struct link_tally *tx = &tallies[x->id], *ty = &tallies[y->id];
	bool needs_x = is_irreplaceable(members, x), needs_y = is_irreplaceable(members, y);
	bool last_x = is_last(members, x), last_y = is_last(members, y), first;

	if (tx->cut != ty->cut)
		first = tx->cut > ty->cut;
	else if (needs_x != needs_y)
		first = needs_y;
	else
		first = last_x != last_y ? last_y : tx->reported >= ty->reported;
	return first ? (needs_x ? NULL : x) : (needs_y ? NULL : y);
}

/* Removes m, one end of a cut link. stays_out: m may rejoin only when none of its links is
 * stuck. */
void link_failures_remove(struct run *run, struct member *m, const struct member *other,
			  bool others, bool stays_out)
{
	char why[96];

	snprintf(why, sizeof(why), "is cut off from n%02u%s", other->id,
		 others ? " and others" : "");
	member_apply(run, m, EVENT_LOST, why);
	m->stuck.is_cut_off = stays_out;
}

void link_failures_note_wait(struct members *members, const struct member *x,
			     const struct member *y)
{
	if (members->run->now_us - members->failed_links.noted_us < NOTE_AGAIN_US)
		return;
	members->failed_links.noted_us = members->run->now_us;
	note(members->run, NOTE_ALERT, x->id, 0,
	     "n%02u and n%02u are cut off from each other, and neither can be spared: the run "
	     "waits",
	     x->id, y->id);
}

/* ---- a link that counts as absent ---- */

static double *delay_of(const struct run *run, uint16_t from, uint16_t to)
{
	return &run->cluster->delay_s[(size_t)from * (size_t)run->cluster->n_nodes + to];
}

static double *sync_pair(const struct run *run, uint16_t from, uint16_t to)
{
	return run->cluster->sync_pair_s + (size_t)from * (size_t)run->cluster->n_nodes + to;
}

/* Marks the link as absent in the cluster. Delays that were measured or reported during the cut are
 * saved for the link's return. */
void link_failures_keep_away(const struct run *run, struct link_failure *k)
{
	const uint16_t ends[2] = { k->from, k->to };

	for (int i = 0; i < 2; i++) {
		double *d = delay_of(run, ends[i], ends[!i]);

		k->delay_s[i] = *d < 0 ? k->delay_s[i] : *d;
		*d = -1;
		if (!run->cluster->sync_pair_s)
			continue;
		d = sync_pair(run, ends[i], ends[!i]);
		k->sync_s[i] = *d < 0 ? k->sync_s[i] : *d;
		*d = -1;
	}
}

void link_failures_end(struct run *run, struct link_failure *k)
{
	const uint16_t ends[2] = { k->from, k->to };

	for (int i = 0; i < 2; i++) {
		*delay_of(run, ends[i], ends[!i]) = k->delay_s[i];
		if (run->cluster->sync_pair_s)
			*sync_pair(run, ends[i], ends[!i]) = k->sync_s[i];
		record_link(run, ends[i], ends[!i]);
	}
	k->active = false;
	k->since_us = run->now_us;
	record_cut(run, k);
	note(run, NOTE_EVENT, k->from, 'R', "n%02u and n%02u reach each other again", k->from,
	     k->to);
}

/* Orders both ends to drop the transfers between them. The next requests between the two ends use
 * new connections. */
static void forget_between(struct members *members, const struct link_failure *k)
{
	uint16_t ends[2] = { k->from, k->to };

	for (int i = 0; i < 2; i++) {
		struct msg m = { .type = MSG_REROUTE };

		m.u.reroute = (struct msg_reroute){ .n_gone = 1, .gone = &ends[!i] };
		member_send(members->run, &members->list[ends[i]], &m);
	}
}

/* Drops the standby copies that need the link. A copy needs a link to every replica of its stage,
 * because each of them sends it a part of the sum. */
static void refuse_copies(struct members *members, const struct link_failure *k)
{
	const uint16_t ends[2] = { k->from, k->to };

	for (int i = 0; i < 2; i++) {
		struct member *m = &members->list[ends[i]], *o = &members->list[ends[!i]];

		if (m->copy.stage < 0 || !member_is_replica(o) ||
		    member_stage(members->run, o) != m->copy.stage)
			continue;
		copies_refuse(members, m, "is cut off from its stage");
		members->run->requests.look_at_sums = true;
	}
}

/* ---- the begin and the end of a cut ---- */

void link_failures_note(struct members *members, const struct msg_stuck *s, uint16_t from,
			const char *then)
{
	const struct member *to = &members->list[s->to];
	bool both = report_of(members, from, s->to) && report_of(members, s->to, from);

	note(members->run, NOTE_ALERT, from, 0,
	     "n%02u > n%02u: nothing came through for %.1f s, expected within %.1f: %s%s", from,
	     s->to, (double)s->ms * 1e-3, (double)s->expected_ms * 1e-3, then,
	     s->large_lost     ? " (small messages pass, large ones do not: MTU?)"
	     : s->small_passes ? " (small messages pass)"
			       : "");
	if (s->small_passes)
		return;
	note(members->run, NOTE_WARNING, s->to, 0,
	     "n%02u at %.60s and n%02u are both heard here, but %s: a port closed, or one "
	     "direction?",
	     s->to, to->hello.address, from,
	     both ? "neither hears the other" : "one of them gets no answer from the other");
}

struct link_failure *link_failures_mark(struct members *members, const struct member *m,
					const struct msg_stuck *s)
{
	struct link_failure *k = link_failures_find(members, m->id, s->to);

	if (!k) {
		array_reserve(&members->failed_links.of, &members->failed_links.room,
			      members->failed_links.n + 1, sizeof(*members->failed_links.of));
		k = &members->failed_links.of[members->failed_links.n++];
		*k = (struct link_failure){ .delay_s = { -1, -1 }, .sync_s = { -1, -1 } };
	}
	if (members->run->now_us - k->since_us > STEADY_US)
		k->times = 0;
	/* Stores the link in the direction of the newest report. */
	if (k->from != m->id || k->to != s->to)
		*k = (struct link_failure){ .times = k->times,
					    .delay_s = { -1, -1 },
					    .sync_s = { -1, -1 } };
	k->from = m->id;
	k->to = s->to;
	k->active = true;
	k->times++;
	k->since_us = k->seen_us = members->run->now_us;
	k->quiet_s = (double)s->ms * 1e-3;
	k->expected_s = (double)s->expected_ms * 1e-3;
	link_failures_keep_away(members->run, k);
	record_link(members->run, k->from, k->to);
	record_link(members->run, k->to, k->from);
	record_cut(members->run, k);
	forget_between(members, k);
	refuse_copies(members, k);
	return k;
}

bool link_failures_over(const struct members *members, const struct link_failure *k)
{
	const struct member *x = &members->list[k->from], *y = &members->list[k->to];
	int64_t since = later_us(k->seen_us, later_us(x->since_us, y->since_us));
	int64_t most = later_us(HEALED_US, later_us(x->heard.allowed_us, y->heard.allowed_us));
	uint32_t doubled = k->times - 1 < DOUBLED_MOST ? k->times - 1 : DOUBLED_MOST;

	return x->heard.message_us > k->seen_us && y->heard.message_us > k->seen_us &&
	       members->run->now_us - x->heard.message_us < most &&
	       members->run->now_us - y->heard.message_us < most &&
	       members->run->now_us - since > most << doubled;
}

const struct msg_stuck *link_failures_next(struct members *members, struct member **m)
{
	for (uint32_t i = 0; i < members->n; i++) {
		*m = &members->list[i];
		for (uint32_t k = 0; k < (*m)->stuck.n; k++)
			if (is_cut(members, *m, &(*m)->stuck.links[k]))
				return &(*m)->stuck.links[k];
	}
	return NULL;
}

bool link_failures_remove_end(struct members *members)
{
	struct link_tally tallies[MSG_NODES] = { { .cut = 0 } };

	link_failures_count(members, tallies);
	for (uint32_t i = members->failed_links.n; i > 0; i--) {
		const struct link_failure *k = &members->failed_links.of[i - 1];
		struct member *x = &members->list[k->from], *y = &members->list[k->to], *out;

		if (!k->active || !member_takes_part(x) || !member_takes_part(y))
			continue;
		out = link_failures_worse(members, tallies, x, y);
		if (!out)
			continue;
		link_failures_remove(members->run, out, out == x ? y : x, false, true);
		return true;
	}
	return false;
}
