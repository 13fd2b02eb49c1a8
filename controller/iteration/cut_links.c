/* cut_links.c - routes the iteration around cut links, or removes a node at one end of a cut link.
 *
 * If a link between two stages is cut, usually no node is removed: the microbatches that would use
 * the link are rerouted, and later plans avoid it.
 *
 * A node is removed if its sum needs the link, or if it is cut off from most nodes that it
 * exchanges messages with. The node rejoins by itself once none of its links is stuck.
 *
 * If a microbatch of the current iteration needs the link and has no other route, the node at one
 * end of the link is removed and may rejoin at once. iteration/link_failures.c says when a link is
 * cut and which end is at fault. */
#include "controller/iteration/cut_links.h"

#include "controller/iteration/evaluate.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/link_failures.h"
#include "controller/iteration/reroute.h"
#include "controller/members/member.h"
#include "controller/network/failed_links.h"
#include "controller/planning/replan.h"

/* Counts the nodes that m exchanges messages with in this iteration: its neighbours on routes and
 * the replicas of its stage. */
static uint32_t count_partners(const struct iteration *it, const struct member *m)
{
	bool with[MSG_NODES] = { false };
	uint32_t n = 0;

	for (uint32_t i = 0; i < it->routes.n; i++) {
		const struct microbatch *mb = &it->routes.microbatches[i];
		uint32_t hops = mb->route.n_hops;
		int hop = routes_hop(mb, m->id);

		if (hop < 0 || hops < 2)
			continue;
		with[mb->route.nodes[((uint32_t)hop + 1) % hops]] = true;
		with[mb->route.nodes[((uint32_t)hop + hops - 1) % hops]] = true;
	}
	for (uint32_t i = 0; i < it->members->n; i++) {
		const struct member *o = &it->members->list[i];

		n += o != m && (with[i] || (member_is_replica(o) &&
					    member_stage(it->run, o) == member_stage(it->run, m)));
	}
	return n;
}

static bool cut_off(const struct iteration *it, const struct link_tally *tallies,
		    const struct member *m)
{
	return tallies[m->id].surely > 1 && 2 * tallies[m->id].surely > count_partners(it, m);
}

/* Returns true if a microbatch still needs the link. A negative answer stays valid until the
 * routes change, so it is stored. Without the stored answer, each turn of a long cut would search
 * all routes again. */
static bool is_needed_by_routes(const struct routes *r, struct link_failure *k)
{
	for (uint32_t i = 0; k->unneeded_in != r->version && i < r->n; i++)
		if (routes_need(&r->microbatches[i], k->from, k->to))
			return true;
	k->unneeded_in = r->version;
	return false;
}

static bool is_needed(const struct iteration *it, struct link_failure *k)
{
	if (it->run->phase == PHASE_EVALUATING)
		return evaluation_needs(it, k->from, k->to);
	return it->run->phase == PHASE_COMPUTING && is_needed_by_routes(&it->routes, k);
}

/* Reroutes the microbatches of the current iteration around the link. If there is no other route,
 * removes one end of the link, which may rejoin at once. */
static void go_around(struct iteration *it, struct link_failure *k)
{
	struct member *x = &it->members->list[k->from], *y = &it->members->list[k->to], *out;
	struct link_tally tallies[MSG_NODES] = { { .cut = 0 } };

	if (!member_takes_part(x) || !member_takes_part(y) || !is_needed(it, k))
		return;
	if (it->run->phase == PHASE_EVALUATING)
		evaluation_begin(it);
	else if (reroute_around(it, x, y) >= 0 || it->run->phase == PHASE_FINISHED)
		return;
	if (it->run->phase != PHASE_COMPUTING && !is_needed(it, k))
		return;
	link_failures_count(it->members, tallies);
	out = link_failures_worse(it->members, tallies, x, y);
	if (out)
		link_failures_remove(it->run, out, out == x ? y : x, false, false);
	else
		link_failures_note_wait(it->members, x, y);
}

static void cut_link(struct iteration *it, struct member *m, const struct msg_stuck *s)
{
	it->run->progress++;
	link_failures_note(it->members, s, m->id, "the run avoids that link");
	go_around(it, link_failures_mark(it->members, m, s));
	if (it->run->phase == PHASE_FINISHED)
		return;
	replan(it->planning, "a link is cut");
}

static void judge_link(struct iteration *it, struct member *m, const struct msg_stuck *s)
{
	struct link_tally tallies[MSG_NODES] = { { .cut = 0 } };
	struct member *o = &it->members->list[s->to], *out;
	bool both_work = member_takes_part(m) && member_takes_part(o);

	link_failures_count(it->members, tallies);
	out = link_failures_worse(it->members, tallies, m, o);
	if (!link_failures_in_a_sum(it->run, m, o) &&
	    !(both_work && out && cut_off(it, tallies, out))) {
		cut_link(it, m, s);
	} else if (out) {
		link_failures_note(it->members, s, m->id, "one of them is removed");
		link_failures_remove(it->run, out, out == m ? o : m, tallies[out->id].cut > 1,
				     true);
	} else {
		link_failures_note_wait(it->members, m, o);
	}
}

static void look_at_cuts(struct iteration *it)
{
	for (uint32_t i = 0; i < it->members->failed_links.n && it->run->phase != PHASE_FINISHED;
	     i++) {
		struct link_failure *k = &it->members->failed_links.of[i];

		if (!k->active)
			continue;
		link_failures_keep_away(it->run, k);
		if (link_failures_over(it->members, k)) {
			link_failures_end(it->run, k);
			replan(it->planning, "a link works again");
		} else {
			go_around(it, k);
		}
	}
}

void cut_links_check(struct iteration *it)
{
	const struct msg_stuck *s;
	struct member *m;

	if (it->run->phase == PHASE_GATHERING)
		return;
	look_at_cuts(it);
	/* Only one cut link is handled in each turn, because handling it may change the
	 * replicas. */
	if (it->run->phase != PHASE_FINISHED && (s = link_failures_next(it->members, &m)) != NULL)
		judge_link(it, m, s);
}
