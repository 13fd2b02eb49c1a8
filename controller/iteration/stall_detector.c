/* stall_detector.c - an iteration in which nothing goes on any more, and who is at fault.
 *
 * Either everybody says so: nothing runs, nothing travels, and not all is done. Slots wait in a circle
 * then, or something was lost; the second time, somebody lies.
 *
 * Or somebody says that it is at work, and nothing ends. (An agent whose computing hangs ends itself; a
 * liar does not.) As long as anything ends anywhere nobody is suspected: all that does not depend on a
 * task that never ends is over soon. When nothing has ended for a patience far beyond the
 * longest task and way, and no data moves between nodes, who says that it is at work is taken out
 * like a dead node, and may come back: it may have been hindered. The second time it is left out.
 *
 * Patience is counted in looks: while this loop, or the whole machine, slept there were none.
 */
#include "controller/iteration/stall_detector.h"

#include <math.h>
#include <stdlib.h>

#include "controller/controller.h"
#include "controller/iteration/reroute.h"
#include "controller/members/node_state.h"
#include "controller/network/failed_links.h"
#include "controller/operator/journal.h"
#include "controller/trust/suspicion.h"
#include "wire/chain.h"

enum { LOOK_US = 250000, ROUNDS = 4, MUCH_LONGER = 20, POSITIONS = 2 * MSG_STAGES + 1 };

/* ---- what is said ---- */

/* What was said of the microbatches since they last began: a bit for each kind of event, by microbatch and
 * position. */
struct words {
	uint8_t (*of)[POSITIONS];
};

static bool words_of(const struct controller *c, struct words *w)
{
	w->of = calloc(c->routes.n + 1, sizeof(w->of[0]));
	for (uint32_t i = 0; w->of && i < c->progress.n_events; i++) {
		const struct msg_task_event *e = &c->progress.events[i];
		const struct microbatch *mb = &c->routes.microbatches[e->microbatch];
		int hop = routes_hop(mb, e->node);

		if (e->attempt < mb->route.since || hop < 0 || e->kind == WORK_WEIGHTS)
			continue;
		w->of[e->microbatch][chain_position(mb->route.n_hops, (uint32_t)hop, (enum work_kind)e->kind)] |=
			(uint8_t)(1u << e->type);
	}
	return w->of != NULL;
}

static bool was_said(const struct words *w, const struct microbatch *mb, uint32_t position,
		 enum work_event what)
{
	return w->of[mb->route.microbatch][position] >> what & 1;
}

/* The position that is to end next: what those owe who stand in, then the furthest; 2n + 1: all did. */
static uint32_t next_position(const struct microbatch *mb)
{
	for (uint32_t t = 0; t < mb->passed; t++)
		if (!routes_ended(mb, t))
			return t;
	return mb->passed;
}

/* Microbatches that it has begun and not ended: one slot each. */
static int slots_held(const struct controller *c, const struct words *w, uint16_t node)
{
	int held = 0;

	for (uint32_t i = 0; i < c->routes.n; i++) {
		const struct microbatch *mb = &c->routes.microbatches[i];
		int hop = routes_hop(mb, node);

		held += hop >= 0 && was_said(w, mb, (uint32_t)hop, WORK_STARTS) &&
			!was_said(w, mb, 2 * mb->route.n_hops - (uint32_t)hop, WORK_ENDS);
	}
	return held;
}

/* By its own words it has what the microbatch needs next, and does not do it. *who: it. NULL: it
 * cannot be said. */
static const char *own_fault(const struct controller *c, const struct words *w,
			     const struct microbatch *mb, uint16_t *who)
{
	uint32_t next = next_position(mb), n = mb->route.n_hops;
	bool has;

	if (mb->done)
		return NULL;
	for (uint32_t h = 0; next > 2 * n && h < n; h++)
		if (routes_lacks(&c->routes, *who = mb->nodes[h], mb->route.microbatch))
			return "left a gradient out";
	if (next > 2 * n)
		return NULL;
	*who = routes_node_at(mb, next);
	if (was_said(w, mb, next, WORK_STARTS))
		return "does not end a task";
	has = next == 0 || *who == routes_node_at(mb, next - 1) || was_said(w, mb, next, WORK_WAITS);
	if (has && (next >= n || slots_held(c, w, *who) < c->cluster->nodes[*who].memory))
		return "does not start a task";
	return NULL;
}

/* ---- everybody says so ---- */

static bool pass_between(struct controller *c, const struct words *w)
{
	struct member *bad = NULL, *other = NULL;

	for (uint32_t i = 0; i < c->routes.n; i++) {
		const struct microbatch *mb = &c->routes.microbatches[i];
		uint32_t next = next_position(mb);
		struct member *pair[2];

		/* One has done its part, and the other has not got it. */
		if (mb->done || next == 0 || next > 2 * mb->route.n_hops ||
		    was_said(w, mb, next, WORK_WAITS))
			continue;
		pair[0] = &c->members[routes_node_at(mb, next - 1)];
		pair[1] = &c->members[routes_node_at(mb, next)];
		suspicion_pair(c, pair[0]->id, pair[1]->id);
		for (int k = 0; k < 2; k++)
			if (!bad || contradictions_guilt(&c->contradictions, pair[k]->id) > contradictions_guilt(&c->contradictions, bad->id)) {
				bad = pair[k];
				other = pair[!k];
			}
	}
	if (!bad)
		return false;
	note(c, NOTE_ALERT, bad->id, 0, "nothing passes between n%02u and n%02u: without n%02u",
	     bad->id, other->id, bad->id);
	suspicion_left_out(c, bad, other, "passes nothing on");
	return true;
}

static bool at_own_fault(struct controller *c, const struct words *w)
{
	for (uint32_t i = 0; i < c->routes.n; i++) {
		uint16_t who;
		const char *why = own_fault(c, w, &c->routes.microbatches[i], &who);

		if (!why)
			continue;
		note(c, NOTE_ALERT, who, 0, "n%02u holds m%02u up: without n%02u", who, i, who);
		suspicion_proven(c, &c->members[who], why);
		return true;
	}
	return false;
}

/* False: nobody's fault, or it is the first time. */
static bool at_fault(struct controller *c)
{
	bool again = c->still.iteration == c->iteration, found;
	struct words w;

	c->still.iteration = c->iteration;
	if (!again || !words_of(c, &w))
		return false;
	found = at_own_fault(c, &w) || pass_between(c, &w);
	free(w.of);
	return found;
}

/* Who holds the weights of another iteration cannot take part, whatever was believed of it: it
 * fetches them anew once it is heard again. */
static bool drop_strangers(struct controller *c)
{
	bool any = false;

	for (uint32_t i = 0; i < c->n_members && c->phase == PHASE_COMPUTING; i++) {
		struct member *m = &c->members[i];

		if (!m->replica || m->beat.committed == c->committed)
			continue;
		members_gone(c, m, "holds the weights of another iteration");
		any = true;
	}
	return any;
}

static bool unswap_one(struct controller *c)
{
	int64_t id = routes_unswap(&c->routes);
	uint32_t changed = (uint32_t)id;

	if (id < 0)
		return false;
	reroute_tell(c, &changed, 1, NULL);
	c->steps++;
	note(c, NOTE_WARNING, -1, 0,
	     "slots waited in a circle: m%02lld starts again, unswapped", (long long)id);
	return true;
}

static bool at_rest(const struct controller *c, const struct member *m)
{
	const struct msg_heartbeat *b = &m->beat;

	if (m->replica && c->now_us - m->heard_us > LOOK_US + timeout_round_trip(&m->rounds) / 2)
		return false; /* its last word may be of before */
	if (m->replica && link_failures_doubted(c, m))
		return false; /* what went on has gone nowhere yet */
	if (m->replica && b->committed != c->committed)
		return post_idle(c->post, m->peer); /* else the commit may be on its way */
	return !m->replica ||
	       (!b->running && b->in_flight == 0 && (b->queued == 0 || b->blocked) &&
		b->iteration == c->iteration);
}

/* Nothing runs, nothing travels, in several looks. */
static bool all_rest(struct controller *c)
{
	struct stall_detector *s = &c->still;
	uint64_t tasks = 0;
	bool rest = true;

	for (uint32_t i = 0; i < c->n_members; i++) {
		tasks += c->members[i].beat.tasks_done;
		rest = rest && at_rest(c, &c->members[i]);
	}
	s->rounds = rest && tasks == s->tasks ? s->rounds + 1 : 0;
	s->tasks = tasks;
	return s->rounds >= ROUNDS;
}

/* ---- somebody says that it is at work ---- */

/* One node's bytes can be lied about: data moves from one to another. */
static bool data_moves(const struct controller *c)
{
	const struct member *from = NULL, *to = NULL;
	bool others = false;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];
		bool sent = m->sent.much_us > c->still.hung_us;
		bool got = m->received.much_us > c->still.hung_us;

		others = others || (sent && to) || (got && from);
		from = sent ? m : from;
		to = got ? m : to;
	}
	return others;
}

/* As long as the longest task and the longest way take together, in real seconds. */
static double longest_s(const struct controller *c)
{
	double task = 0, measured = 0, way = 0, slower = 1;
	uint32_t n = c->n_members;

	for (uint32_t i = 0; i < n; i++) {
		const struct cluster_node *node = &c->cluster->nodes[i];
		const struct member *m = &c->members[i];

		if (!m->replica)
			continue;
		task = fmax(task, fmax(node->forward_s, fmax(node->backward_s, node->loss_s)));
		measured = fmax(measured, fmax(m->measured_forward_s,
					       fmax(m->measured_backward_s, m->measured_loss_s)));
		for (uint32_t to = 0; to < n; to++)
			if (c->members[to].replica && to != i)
				way = fmax(way, c->cluster->delay_s[i * n + to]);
	}
	for (uint32_t i = 0; i < c->n_faults; i++) {
		const struct fault *f = &c->faults[i];

		if (f->active && fault_describe(f->kind)->factor == FACTOR_TIMES)
			slower = fmax(slower, (double)f->factor);
		else if (f->active && fault_describe(f->kind)->factor == FACTOR_PROBABILITY)
			slower = fmax(slower, 1 / (1 - (double)f->factor));
	}
	return fmax((task + way) * c->unit_s, measured) * slower;
}

bool stall_for(struct controller *c, int64_t most_us)
{
	struct stall_detector *s = &c->still;

	if (s->steps != c->steps || data_moves(c)) {
		s->steps = c->steps;
		s->hung = 0;
		s->hung_us = c->now_us;
	}
	s->hung++;
	/* Heartbeats come later than reports. */
	for (uint32_t i = 0; i < c->n_members && 2 * s->hung * (int64_t)LOOK_US <= most_us; i++)
		c->members[i].tasks_then = c->members[i].beat.tasks_done;
	return s->hung * (int64_t)LOOK_US > most_us;
}

bool stall_hung(struct controller *c, uint32_t tasks)
{
	int64_t most_us = c->options.overdue_us;

	return stall_for(c, most_us) &&
	       (double)c->still.hung * LOOK_US >
		       (double)most_us + 1e6 * MUCH_LONGER * tasks * longest_s(c);
}

/* Whether it has begun a task of the iteration, and not ended it. */
static bool has_begun(const struct controller *c, const struct words *w, uint16_t node)
{
	for (uint32_t i = 0; i < c->routes.n; i++) {
		const struct microbatch *mb = &c->routes.microbatches[i];
		uint32_t next = next_position(mb);

		if (!mb->done && next <= 2 * mb->route.n_hops && routes_node_at(mb, next) == node &&
		    was_said(w, mb, next, WORK_STARTS))
			return true;
	}
	return false;
}

/* What it says, or has said, that keeps the others waiting. The surest first; NULL: nothing. */
static const char *excuse_of(const struct controller *c, const struct words *w,
			  const struct member *m, int rank)
{
	const struct msg_heartbeat *b = &m->beat;
	bool computing = c->phase == PHASE_COMPUTING;

	switch (rank) {
	case 0:
		return b->running || (computing && has_begun(c, w, m->id)) ? "does not end a task"
									   : NULL;
	case 1:
		return b->queued && !b->blocked ? "does not start a task" : NULL;
	case 2:
		return b->in_flight ? "does not get rid of a tensor" : NULL;
	case 3:
		return computing && b->tasks_done != m->tasks_then ? "ends tasks that nobody gave it" : NULL;
	default:
		return computing && b->iteration != c->iteration && b->committed == c->committed
			       ? "does not begin the iteration"
			       : NULL;
	}
}

/* Who says so; of several, one that was found so before. When more than half of all do, it is what
 * they run on. *n: how many. */
static struct member *find_excused(struct controller *c, const struct words *w, int rank, uint32_t *n)
{
	struct member *found = NULL;
	uint32_t all = 0;

	*n = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		all += m->replica;
		if (!m->replica || !excuse_of(c, w, m, rank))
			continue;
		++*n;
		if (!found || m->overdue_in > found->overdue_in)
			found = m;
	}
	return *n * 2 <= all ? found : NULL;
}

bool stall_blame(struct controller *c)
{
	struct member *m = NULL;
	uint32_t n = 0;
	struct words w;
	int rank;

	c->steps++; /* all others have as much time again */
	if (!words_of(c, &w))
		return false;
	for (rank = 0; rank < 5 && n == 0; rank++)
		m = find_excused(c, &w, rank, &n);
	if (m) {
		const char *why = excuse_of(c, &w, m, rank - 1);

		note(c, NOTE_ALERT, m->id, 0,
		     "nothing ends for want of n%02u, which says that it is at work", m->id);
		suspicion_overdue(c, m, why);
	}
	free(w.of);
	return n > 0;
}

/* ---- every turn ---- */

bool stall_look(struct controller *c)
{
	if (c->now_us < c->still.look_us)
		return false;
	c->still.look_us = c->now_us + LOOK_US;
	return true;
}

void stall_turn(struct controller *c)
{
	bool rest, hung;

	if (!stall_look(c))
		return;
	rest = all_rest(c);
	hung = stall_hung(c, 1);
	if ((!rest && !hung) || (hung && !rest && stall_blame(c)))
		return;
	c->still.rounds = 0;
	if (drop_strangers(c) || (rest && unswap_one(c)) || at_fault(c))
		return;
	note(c, NOTE_ALERT, -1, 0, "it%llu stands still: it begins anew",
	     (unsigned long long)c->iteration);
	request_anew(&c->requests, "an iteration stood still");
}
