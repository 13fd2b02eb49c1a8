/* link_failures.c - links on which nothing comes through, and who is cut off.
 *
 * Agents tell on which of their links something waits and nothing has moved for longer than was to be
 * expected of that link (agent/network/probe.c). Once that is so for thrice as long, and for as long as words of
 * either end may be late, and either end has spoken here since, the link between them is cut; within a stage
 * after twice that.
 *
 * Between two stages that costs no node. The link is taken for one that is not there, both ways, as TCP
 * needs both; microbatches that are still to use it go by other nodes, later plans go around it, and it is
 * believed again once nobody complains of it any more. A node that is cut off from most of those that it
 * has to do with, and one of two replicas of a stage, whose sum needs their link, is taken out like a dead
 * one: the one with most cut links, and of two alike the one that told, so that who tells lies harms itself;
 * but never a stage's last replica of which there is no copy. It comes back by itself once none of its links
 * is stuck. Where the iteration under way has no other nodes for what needs the link, one end is taken
 * out and may come back at once.
 */
#include "controller/members/link_failures.h"

#include "base/array.h"
#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/iteration/evaluate.h"
#include "controller/iteration/reroute.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/network/failed_links.h"
#include "controller/operator/journal.h"
#include "controller/planning/replan.h"
#include "controller/weights/copies.h"

enum {
	TIMES = 3,          /* as long as expected: probes have gone meanwhile, and some were lost at most */
	HEALED_US = 400000, /* without a complaint */
	TELL_AGAIN_US = 10000000,
	DOUBLED_MOST = 7,   /* times, of a link that is cut again and again */
	STEADY_US = 600000000 /* no longer one of those */
};

/* Of one member: */
struct tally {
	uint16_t cut, told; /* links that seem to be cut; those that it told of itself */
	uint16_t surely;    /* that are */
};

/* ---- what is told ---- */

static int64_t later_us(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static bool takes_part(const struct member *m)
{
	return m->replica && member_alive(m);
}

/* Whether it takes part, or is to, as one that fetches its stage. */
static bool is_here(const struct member *m)
{
	return member_alive(m) && m->welcomed && !m->marked;
}

/* When it said its newest word. */
static int64_t spoke_us(const struct member *m)
{
	return m->heard_us - timeout_round_trip(&m->rounds) / 2;
}

/* What waited for one that was away then tells nothing of the link as it is now. */
static int64_t stuck_us(const struct controller *c, const struct member *m,
			const struct msg_stuck *s)
{
	int64_t told = s->ms * (int64_t)1000;
	int64_t both = later_us(m->since_us, c->members[s->to].since_us);

	return told < c->now_us - both ? told : c->now_us - both;
}

static int64_t expected_us(const struct msg_stuck *s)
{
	return s->expected_ms * (int64_t)1000;
}

static bool in_a_sum(const struct controller *c, const struct member *m, const struct member *o)
{
	return takes_part(m) && takes_part(o) && member_stage(c, m) == member_stage(c, o);
}

/* How long nothing may move on it: twice as long where that costs a node. */
static int64_t patience_us(const struct controller *c, const struct member *m,
			   const struct msg_stuck *s)
{
	const struct member *o = &c->members[s->to];
	int64_t us = later_us(TIMES * expected_us(s), later_us(m->patience_us, o->patience_us));

	return in_a_sum(c, m, o) ? 2 * us : us;
}

static bool counts_as_stuck(const struct controller *c, const struct member *m, const struct msg_stuck *s)
{
	return s->to < c->n_members && s->to != m->id && is_here(m) && is_here(&c->members[s->to]);
}

/* Who has been silent altogether since nothing moves is to be found so. */
static bool is_cut(const struct controller *c, const struct member *m, const struct msg_stuck *s)
{
	int64_t doubted_us = spoke_us(m) - s->ms * (int64_t)1000 + expected_us(s);

	return counts_as_stuck(c, m, s) && !link_failures_between(c, m->id, s->to) &&
	       stuck_us(c, m, s) >= patience_us(c, m, s) && spoke_us(&c->members[s->to]) > doubted_us;
}

/* ---- who is cut off ---- */

static bool seems_cut(const struct controller *c, const struct member *m, const struct msg_stuck *s)
{
	return counts_as_stuck(c, m, s) && stuck_us(c, m, s) >= patience_us(c, m, s) / 2;
}

/* What it tells of that link, if that seems to be cut. */
static const struct msg_stuck *word_of(const struct controller *c, uint16_t from, uint16_t to)
{
	const struct member *m = &c->members[from];

	for (uint32_t k = 0; k < m->n_stuck; k++)
		if (m->stuck[k].to == to && seems_cut(c, m, &m->stuck[k]))
			return &m->stuck[k];
	return NULL;
}

static bool long_enough(const struct controller *c, uint16_t from, uint16_t to)
{
	const struct msg_stuck *s = word_of(c, from, to);

	return s && stuck_us(c, &c->members[from], s) >= patience_us(c, &c->members[from], s);
}

static void count_link(struct tally *tallies, uint16_t a, uint16_t b, bool surely)
{
	tallies[a].cut++;
	tallies[b].cut++;
	tallies[a].surely += surely;
	tallies[b].surely += surely;
}

/* Besides the links that are cut those count that seem to be: they show whose fault it is. */
static void count_cuts(const struct controller *c, struct tally *tallies)
{
	for (uint16_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		for (uint32_t k = 0; k < m->n_stuck; k++) {
			uint16_t to = m->stuck[k].to;

			if (!seems_cut(c, m, &m->stuck[k]))
				continue;
			tallies[i].told++;
			if (to < i && word_of(c, to, i))
				continue; /* counted there */
			count_link(tallies, i, to, link_failures_between(c, i, to) || long_enough(c, i, to) ||
						      long_enough(c, to, i));
		}
	}
	for (uint32_t i = 0; i < c->failed_links.n; i++) {
		const struct link_failure *k = &c->failed_links.of[i];

		if (k->active && !word_of(c, k->from, k->to) && !word_of(c, k->to, k->from))
			count_link(tallies, k->from, k->to, true);
	}
}

/* The nodes that it has to do with in this iteration: before and after it on a way, or in its sum. */
static uint32_t count_partners(const struct controller *c, const struct member *m)
{
	bool with[MSG_NODES] = { false };
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->routes.n; i++) {
		const struct microbatch *mb = &c->routes.microbatches[i];
		uint32_t hops = mb->route.n_hops;
		int hop = routes_hop(mb, m->id);

		if (hop < 0 || hops < 2)
			continue;
		with[mb->nodes[((uint32_t)hop + 1) % hops]] = true;
		with[mb->nodes[((uint32_t)hop + hops - 1) % hops]] = true;
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *o = &c->members[i];

		n += o != m && (with[i] || (o->replica && member_stage(c, o) == member_stage(c, m)));
	}
	return n;
}

static bool cut_off(const struct controller *c, const struct tally *tallies, const struct member *m)
{
	return tallies[m->id].surely > 1 && 2 * tallies[m->id].surely > count_partners(c, m);
}

/* Nobody else has the weights of a stage that it has. */
static bool is_irreplaceable(struct controller *c, const struct member *m)
{
	for (int s = 0; s < c->cluster->n_stages; s++)
		if (((m->replica && member_stage(c, m) == s) || copy_usable(c, m, s)) &&
		    stage_replicas(c, s, m) == 0 && !copies_holder(c, s, m))
			return true;
	return false;
}

static bool is_last(const struct controller *c, const struct member *m)
{
	return stage_replicas(c, member_stage(c, m), m) == 0;
}

/* Which of the two is to go: of two alike not its stage's last, for that begins the iteration anew. NULL:
 * it cannot be spared. */
static struct member *choose_worse(struct controller *c, const struct tally *tallies, struct member *x,
			    struct member *y)
{
	const struct tally *tx = &tallies[x->id], *ty = &tallies[y->id];
	bool keeps_x = is_irreplaceable(c, x), keeps_y = is_irreplaceable(c, y);
	bool last_x = is_last(c, x), last_y = is_last(c, y), first;

	if (tx->cut != ty->cut)
		first = tx->cut > ty->cut;
	else if (keeps_x != keeps_y)
		first = keeps_y;
	else
		first = last_x != last_y ? last_y : tx->told >= ty->told;
	return first ? (keeps_x ? NULL : x) : (keeps_y ? NULL : y);
}

/* Takes m out, which stays out until its links are well where that is said. */
static void take_out(struct controller *c, struct member *m, const struct member *other, bool others,
		     bool stays_out)
{
	char why[96];

	snprintf(why, sizeof(why), "is cut off from n%02u%s", other->id, others ? " and others" : "");
	members_gone(c, m, why);
	m->cut = stays_out;
}

static void tell_of_wait(struct controller *c, const struct member *x, const struct member *y)
{
	if (c->now_us - c->failed_links.told_us < TELL_AGAIN_US)
		return;
	c->failed_links.told_us = c->now_us;
	note(c, NOTE_ALERT, x->id, 0,
	     "n%02u and n%02u are cut off from each other, and neither can be spared: the run waits",
	     x->id, y->id);
}

/* ---- a link that is not there ---- */

static double *delay_of(const struct controller *c, uint16_t from, uint16_t to)
{
	return &c->cluster->delay_s[(size_t)from * (size_t)c->cluster->n_nodes + to];
}

static double *sync_pair(const struct controller *c, uint16_t from, uint16_t to)
{
	return c->cluster->sync_pair_s + (size_t)from * (size_t)c->cluster->n_nodes + to;
}

/* What is measured or said of it meanwhile is remembered for when it is there again. */
static void keep_away(const struct controller *c, struct link_failure *k)
{
	const uint16_t ends[2] = { k->from, k->to };

	for (int i = 0; i < 2; i++) {
		double *d = delay_of(c, ends[i], ends[!i]);

		k->delay_s[i] = *d < 0 ? k->delay_s[i] : *d;
		*d = -1;
		if (!c->cluster->sync_pair_s)
			continue;
		d = sync_pair(c, ends[i], ends[!i]);
		k->sync_s[i] = *d < 0 ? k->sync_s[i] : *d;
		*d = -1;
	}
}

static void believe_link(struct controller *c, struct link_failure *k)
{
	const uint16_t ends[2] = { k->from, k->to };

	for (int i = 0; i < 2; i++) {
		*delay_of(c, ends[i], ends[!i]) = k->delay_s[i];
		if (c->cluster->sync_pair_s)
			*sync_pair(c, ends[i], ends[!i]) = k->sync_s[i];
		record_link(c, ends[i], ends[!i]);
	}
	k->active = false;
	k->since_us = c->now_us;
	record_cut(c, k);
	note(c, NOTE_EVENT, k->from, 'R', "n%02u and n%02u reach each other again", k->from, k->to);
	replan(c, "a link is there again");
}

/* What is under way between them is of no use any more, and asking again begins with connections of
 * their own. */
static void forget_between(struct controller *c, const struct link_failure *k)
{
	uint16_t ends[2] = { k->from, k->to };

	for (int i = 0; i < 2; i++) {
		struct msg m = { .type = MSG_REROUTE };

		m.u.reroute = (struct msg_reroute){ .n_gone = 1, .gone = &ends[!i] };
		member_send(c, &c->members[ends[i]], &m);
	}
}

/* A copy gets its sums from every replica of its stage. */
static void refuse_copies(struct controller *c, const struct link_failure *k)
{
	const uint16_t ends[2] = { k->from, k->to };

	for (int i = 0; i < 2; i++) {
		struct member *m = &c->members[ends[i]], *o = &c->members[ends[!i]];

		if (m->keeps < 0 || !o->replica || member_stage(c, o) != m->keeps)
			continue;
		copies_refuse(c, m, "is cut off from its stage");
		c->requests.look_at_sums = true;
	}
}

static bool is_needed(const struct controller *c, const struct link_failure *k)
{
	if (c->phase == PHASE_EVALUATING)
		return evaluation_needs(c, k->from, k->to);
	for (uint32_t i = 0; c->phase == PHASE_COMPUTING && i < c->routes.n; i++)
		if (routes_need(&c->routes.microbatches[i], k->from, k->to))
			return true;
	return false;
}

/* What is under way goes around it. Where it cannot one end is taken out, which may come back at once. */
static void go_around(struct controller *c, const struct link_failure *k)
{
	struct member *x = &c->members[k->from], *y = &c->members[k->to], *out;
	struct tally tallies[MSG_NODES] = { { .cut = 0 } };

	if (!takes_part(x) || !takes_part(y) || !is_needed(c, k))
		return;
	if (c->phase == PHASE_EVALUATING)
		evaluation_begin(c);
	else if (reroute_around(c, x, y) >= 0 || c->phase == PHASE_FINISHED)
		return;
	if (c->phase != PHASE_COMPUTING && !is_needed(c, k))
		return;
	count_cuts(c, tallies);
	out = choose_worse(c, tallies, x, y);
	if (out)
		take_out(c, out, out == x ? y : x, false, false);
	else
		tell_of_wait(c, x, y);
}

/* ---- cut, and whole again ---- */

static void tell_cut(struct controller *c, const struct link_failure *k, const char *then)
{
	bool both = word_of(c, k->from, k->to) && word_of(c, k->to, k->from);

	note(c, NOTE_ALERT, k->from, 0, "n%02u > n%02u: nothing came through for %.1f s, expected within %.1f: %s",
	     k->from, k->to, k->quiet_s, k->expected_s, then);
	note(c, NOTE_WARNING, k->to, 0,
	     "n%02u at %.60s and n%02u are both heard here, but %s: a port closed, or one direction?",
	     k->to, c->members[k->to].hello.address, k->from,
	     both ? "neither hears the other" : "the one gets no answer from the other");
}

static struct link_failure *mark_cut(struct controller *c, const struct member *m, const struct msg_stuck *s)
{
	struct link_failure *k = link_failures_find(c, m->id, s->to);

	if (!k) {
		if (!array_grow(&c->failed_links.of, &c->failed_links.room, c->failed_links.n + 1, sizeof(*c->failed_links.of)))
			return NULL;
		k = &c->failed_links.of[c->failed_links.n++];
		*k = (struct link_failure){ .delay_s = { -1, -1 }, .sync_s = { -1, -1 } };
	}
	if (c->now_us - k->since_us > STEADY_US)
		k->times = 0;
	if (k->from != m->id || k->to != s->to) /* as whoever tells it first this time */
		*k = (struct link_failure){ .times = k->times, .delay_s = { -1, -1 }, .sync_s = { -1, -1 } };
	k->from = m->id;
	k->to = s->to;
	k->active = true;
	k->times++;
	k->since_us = k->seen_us = c->now_us;
	k->quiet_s = (double)s->ms * 1e-3;
	k->expected_s = (double)s->expected_ms * 1e-3;
	keep_away(c, k);
	record_link(c, k->from, k->to);
	record_link(c, k->to, k->from);
	record_cut(c, k);
	return k;
}

static void cut_link(struct controller *c, struct member *m, const struct msg_stuck *s)
{
	struct link_failure *k = mark_cut(c, m, s);

	if (!k) {
		controller_finish(c, 1, "out of memory");
		return;
	}
	c->steps++;
	tell_cut(c, k, "the run goes around that link");
	forget_between(c, k);
	refuse_copies(c, k);
	go_around(c, k);
	if (c->phase == PHASE_FINISHED)
		return;
	replan(c, "a link is cut");
}

static void judge_link(struct controller *c, struct member *m, const struct msg_stuck *s)
{
	struct tally tallies[MSG_NODES] = { { .cut = 0 } };
	struct member *o = &c->members[s->to], *out;
	bool at_work = takes_part(m) && takes_part(o);

	count_cuts(c, tallies);
	out = choose_worse(c, tallies, m, o);
	if (!in_a_sum(c, m, o) && !(at_work && out && cut_off(c, tallies, out))) {
		cut_link(c, m, s);
	} else if (out) {
		note(c, NOTE_WARNING, m->id, 0,
		     "n%02u > n%02u: nothing came through for %.1f s, expected within %.1f", m->id, o->id,
		     (double)s->ms * 1e-3, (double)s->expected_ms * 1e-3);
		take_out(c, out, out == m ? o : m, tallies[out->id].cut > 1, true);
	} else {
		tell_of_wait(c, m, o);
	}
}

/* No complaint since either end was there, for the longer the oftener it was cut. */
static bool is_healed(const struct controller *c, const struct link_failure *k)
{
	const struct member *x = &c->members[k->from], *y = &c->members[k->to];
	int64_t since = later_us(k->seen_us, later_us(x->since_us, y->since_us));
	int64_t most = later_us(HEALED_US, later_us(x->allowed_us, y->allowed_us));
	uint32_t doubled = k->times - 1 < DOUBLED_MOST ? k->times - 1 : DOUBLED_MOST;

	return x->heard_us > k->seen_us && y->heard_us > k->seen_us && c->now_us - x->heard_us < most &&
	       c->now_us - y->heard_us < most && c->now_us - since > most << doubled;
}

static void look_at_cuts(struct controller *c)
{
	for (uint32_t i = 0; i < c->failed_links.n && c->phase != PHASE_FINISHED; i++) {
		struct link_failure *k = &c->failed_links.of[i];

		if (!k->active)
			continue;
		keep_away(c, k);
		if (is_healed(c, k))
			believe_link(c, k);
		else
			go_around(c, k);
	}
}

void link_failures_check(struct controller *c)
{
	if (c->phase == PHASE_GATHERING)
		return;
	look_at_cuts(c);
	for (uint32_t i = 0; i < c->n_members && c->phase != PHASE_FINISHED; i++) {
		struct member *m = &c->members[i];

		for (uint32_t k = 0; k < m->n_stuck; k++) {
			if (!is_cut(c, m, &m->stuck[k]))
				continue;
			judge_link(c, m, &m->stuck[k]);
			return; /* who takes part may be others now */
		}
	}
}

bool link_failures_give_way(struct controller *c)
{
	struct tally tallies[MSG_NODES] = { { .cut = 0 } };

	count_cuts(c, tallies);
	for (uint32_t i = c->failed_links.n; i > 0; i--) {
		const struct link_failure *k = &c->failed_links.of[i - 1];
		struct member *x = &c->members[k->from], *y = &c->members[k->to], *out;

		if (!k->active || !takes_part(x) || !takes_part(y))
			continue;
		out = choose_worse(c, tallies, x, y);
		if (!out)
			continue;
		take_out(c, out, out == x ? y : x, false, true);
		return true;
	}
	return false;
}
