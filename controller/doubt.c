/* doubt.c - agents that contradict the routes, or one another: who is left out.
 *
 * What contradicts the routes, or the agent's own words, proves itself. Where two agents contradict
 * each other, one of them is wrong, and their messages do not tell which: what was sealed for one
 * proves nothing to another. Every such pair is remembered. Whoever is wrong stands in all of its
 * pairs, the others in one each: who stands in more is left out, at first either. When the other of
 * a pair is left out later, whoever was left out on its word comes back: if it lies again it stands in one pair
 * more. Being left out for no more pairs than the other has finds nobody out; where somebody is found out its
 * pairs say nothing of the others any more.
 *
 * Of three that all contradict each other two are wrong, and nobody can tell which. One is left alone then:
 * if it is wrong even by itself it is found out, and another has its turn.
 *
 * Left out means marked, as by the operator: the iteration goes on without it, and what it counted
 * runs again elsewhere.
 */
#include "controller/controller.h"
#include "controller/list.h"

#include <stdlib.h>
#include <string.h>

enum {
	REMEMBERED = 200, /* iterations */
	MOST_ACCUSED = 3, /* of numbers, in one iteration, */
	MOST_LIARS = 2,   /* by more than these: the training has diverged */
	BAD_NEIGHBOURS = 2 /* that one may have, and rightly accuse */
};

struct doubt {
	uint16_t ids[2];
	int out;      /* who was left out for it; -1 nobody */
	bool settled; /* one of them was found out: it says nothing of the other */
	uint64_t iteration;
};

static bool recent(const struct controller *c, const struct doubt *d)
{
	return d->iteration + REMEMBERED > c->iteration;
}

static bool is_of(const struct doubt *d, uint16_t id)
{
	return d->ids[0] == id || d->ids[1] == id;
}

uint32_t doubts_of(const struct controller *c, uint16_t id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_doubts; i++)
		n += recent(c, &c->doubts[i]) && !c->doubts[i].settled && is_of(&c->doubts[i], id);
	return n;
}

/* In a pair, settled or not. */
static bool doubted(const struct controller *c, uint16_t id)
{
	for (uint32_t i = 0; i < c->n_doubts; i++)
		if (recent(c, &c->doubts[i]) && is_of(&c->doubts[i], id))
			return true;
	return false;
}

static struct doubt *doubt_of(struct controller *c, uint16_t a, uint16_t b)
{
	for (uint32_t i = 0; i < c->n_doubts; i++) {
		struct doubt *d = &c->doubts[i];

		if (recent(c, d) && is_of(d, a) && is_of(d, b))
			return d;
	}
	return NULL;
}

void doubt_pair(struct controller *c, uint16_t a, uint16_t b)
{
	struct doubt *d = doubt_of(c, a, b);

	if (d)
		d->settled = false; /* again */
	else if (list_grow(&c->doubts, c->n_doubts, &c->room_doubts, sizeof(*c->doubts)))
		c->doubts[c->n_doubts++] = (struct doubt){ { a, b }, -1, false, c->iteration };
}

static bool stands_in_more(const struct controller *c, const struct member *m, const struct member *other)
{
	return doubts_of(c, m->id) > doubts_of(c, other->id);
}

/* Those that were left out on the word of `other`, which is out itself. A liar's pairs say nothing of the
 * others; of a pair that is settled so the other was found out too, and stays where it is unless this one is. */
static void come_back(struct controller *c, const struct member *other, bool liar)
{
	for (uint32_t i = 0; i < c->n_doubts; i++) {
		struct doubt *d = &c->doubts[i];
		struct member *m = d->out >= 0 ? &c->members[d->out] : NULL;
		bool stays = !m || m == other || (d->settled && !liar);

		if (!is_of(d, other->id))
			continue;
		d->settled = d->settled || liar;
		if (stays)
			continue;
		d->out = -1;
		if (!m->marked)
			continue;
		members_mark(c, m, false);
		note(c, NOTE_EVENT, m->id, 0, "n%02u comes back: n%02u, which it contradicts, is out",
		     m->id, other->id);
		if (member_alive(m) && !iteration_resumes(c, m))
			members_assign(c, m, member_stage(c, m), c->committed > 0);
	}
}

/* With every pair that is settled its other one stands in fewer: who is out may be found out by that. */
static struct member *found_since(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_doubts; i++) {
		const struct doubt *d = &c->doubts[i];
		struct member *m = d->out >= 0 ? &c->members[d->out] : NULL;

		if (m && m->marked && !d->settled && recent(c, d) &&
		    stands_in_more(c, m, &c->members[d->ids[d->ids[0] == m->id]]))
			return m;
	}
	return NULL;
}

static void leave_out(struct controller *c, struct member *m, bool found_out, const char *why)
{
	members_mark(c, m, true);
	members_gone(c, m, why);
	if (c->phase == PHASE_FINISHED)
		return;
	members_set(c, m, NODE_FAILED, why);
	come_back(c, m, found_out);
	while (found_out && (m = found_since(c)))
		come_back(c, m, true);
}

static uint32_t accusers(const struct controller *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		n += c->members[i].accuses_in == c->iteration;
	return n;
}

static void bad_number(struct controller *c, struct member *m, struct member *by, const char *why)
{
	if (!m->replica)
		return;
	by->accuses_in = c->iteration;
	c->n_accused = c->accused_in == c->iteration ? c->n_accused + 1 : 1;
	c->accused_in = c->iteration;
	if (c->n_accused > MOST_ACCUSED && accusers(c) > MOST_LIARS)
		controller_finish(c, 1, "the training has diverged: numbers are not finite");
	else
		leave_out(c, m, m == by || stands_in_more(c, m, by), why);
}

void doubt_number(struct controller *c, struct member *m, const char *why)
{
	bad_number(c, m, m, why);
}

static void forget_sums(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		c->members[i].reduced = false;
}

void doubt_proven(struct controller *c, struct member *m, const char *why)
{
	forget_sums(c);
	leave_out(c, m, true, why);
}

void doubt_left_out(struct controller *c, struct member *m, const struct member *other,
		    const char *why)
{
	struct doubt *d = doubt_of(c, m->id, other->id);

	if (d)
		d->out = m->id;
	forget_sums(c);
	leave_out(c, m, stands_in_more(c, m, other), why);
}

void doubt_accused(struct controller *c, struct member *accused, struct member *by)
{
	struct doubt *d;

	if (!accused->replica)
		return;
	if (accused != by)
		doubt_pair(c, accused->id, by->id);
	if (accused != by &&
	    doubts_of(c, by->id) >= doubts_of(c, accused->id) + BAD_NEIGHBOURS) {
		doubt_left_out(c, by, accused, "accused one after another");
		return;
	}
	d = doubt_of(c, accused->id, by->id);
	if (d)
		d->out = accused->id;
	bad_number(c, accused, by, "sent what no computation gives");
}

bool doubt_late(const struct controller *c, const struct member *m)
{
	return m->overdue_in > 0 && m->overdue_in + REMEMBERED > c->iteration;
}

void doubt_overdue(struct controller *c, struct member *m, const char *why)
{
	bool again = doubt_late(c, m);

	m->overdue_in = c->iteration;
	if (again)
		leave_out(c, m, true, why);
	else
		members_gone(c, m, why);
}

/* ---- counts ---- */

static bool ended_backward(const struct controller *c, uint16_t node, uint32_t microbatch)
{
	for (uint32_t i = 0; i < c->progress.n_events; i++) {
		const struct msg_task_event *e = &c->progress.events[i];

		if (e->node == node && e->microbatch == microbatch && e->type == WORK_ENDS &&
		    e->kind == WORK_BACKWARD)
			return true;
	}
	return false;
}

/* Who says it got the gradient that only m could have made; NULL: nobody. */
static struct member *got_it_from(struct controller *c, const struct member *m,
				  const struct microbatch *mb)
{
	int hop = routes_hop(mb, m->id);

	while (--hop >= 0)
		if (ended_backward(c, mb->nodes[hop], mb->route.microbatch))
			return &c->members[mb->nodes[hop]];
	return NULL;
}

bool doubt_counts(struct controller *c, struct member *m)
{
	struct member *other = NULL;

	for (uint32_t i = 0; i < c->routes.n; i++) {
		const struct microbatch *mb = &c->routes.microbatches[i];
		struct member *next;

		if (!routes_lacks(&c->routes, m->id, i))
			continue;
		next = got_it_from(c, m, mb);
		if (!next || ended_backward(c, m->id, i)) {
			note(c, NOTE_ALERT, m->id, 0, "n%02u has not counted m%02u, and says it is through",
			     m->id, i);
			doubt_proven(c, m, "left a gradient out");
			return true;
		}
		doubt_pair(c, m->id, next->id);
		if (!other || doubts_of(c, next->id) > doubts_of(c, other->id))
			other = next;
	}
	if (!other)
		return false;
	note(c, NOTE_ALERT, m->id, 0, "n%02u has gradients that n%02u has not made", other->id, m->id);
	if (doubts_of(c, other->id) > doubts_of(c, m->id))
		doubt_left_out(c, other, m, "contradicts others about what was done");
	else
		doubt_left_out(c, m, other, "contradicts others about what was done");
	return true;
}

/* ---- sums ---- */

/* One's word of a stage's sum: a replica's, or a keeper's of its copy. */
struct word {
	struct member *m;
	bool copy;
	const struct told_sum *sum;
};

static uint32_t words_of(struct controller *c, int stage, struct word *words)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->replica && member_stage(c, m) == stage)
			words[n++] = (struct word){ m, false, &m->sum };
	}
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (copies_awaited(m) && m->keeps == stage)
			words[n++] = (struct word){ m, true, &m->copy_sum };
	}
	return n;
}

static const struct word *owner_of(const struct word *words, uint32_t n, uint32_t slice)
{
	for (uint32_t i = 0; i < n; i++)
		if (!words[i].copy && words[i].m->slice == slice)
			return &words[i];
	return NULL;
}

struct found {
	const struct word *a, *b; /* a receiver and the slice's owner; NULL none */
	uint32_t doubts;          /* of a, or of b if those are more */
};

static void consider(struct controller *c, struct found *f, const struct word *a,
		     const struct word *b)
{
	uint32_t most;

	doubt_pair(c, a->m->id, b->m->id);
	most = doubts_of(c, a->m->id);
	if (doubts_of(c, b->m->id) > most)
		most = doubts_of(c, b->m->id);
	if (f->a && most <= f->doubts)
		return;
	*f = (struct found){ a, b, most };
}

static void differing_slices(struct controller *c, struct found *f, const struct word *words,
			     uint32_t n)
{
	for (uint32_t j = 0; n > 0 && j < words[0].sum->n; j++) {
		const struct word *owner = owner_of(words, n, j);

		for (uint32_t i = 0; owner && i < n; i++)
			if (words[i].sum->slices[j] != owner->sum->slices[j])
				consider(c, f, &words[i], owner);
	}
}

static uint32_t agreeing(const struct word *words, uint32_t n, const struct word *with)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++)
		k += memcmp(&words[i].sum->squares, &with->sum->squares, sizeof(double)) == 0;
	return k;
}

/* The same slices, another square: it follows from them, so the most are right. */
static void differing_squares(struct controller *c, struct found *f, const struct word *words,
			      uint32_t n)
{
	const struct word *right = &words[0];

	for (uint32_t i = 1; i < n; i++)
		if (agreeing(words, n, &words[i]) > agreeing(words, n, right))
			right = &words[i];
	for (uint32_t i = 0; i < n; i++)
		if (memcmp(&words[i].sum->squares, &right->sum->squares, sizeof(double)) != 0)
			consider(c, f, &words[i], right);
}

void doubt_sums(struct controller *c, int stage)
{
	struct word words[2 * MSG_NODES];
	struct found f = { 0 };
	uint32_t n = words_of(c, stage, words);
	const struct word *bad, *other;

	differing_slices(c, &f, words, n);
	if (!f.a && n > 0)
		differing_squares(c, &f, words, n);
	if (!f.a) {
		begin_reduction(c);
		return;
	}
	bad = doubts_of(c, f.b->m->id) > doubts_of(c, f.a->m->id) ? f.b : f.a;
	other = bad == f.a ? f.b : f.a;
	note(c, NOTE_ALERT, bad->m->id, 0, "n%02u and n%02u have different sums of S%d: without n%02u",
	     f.a->m->id, f.b->m->id, stage, bad->m->id);
	if (!bad->copy) {
		doubt_left_out(c, bad->m, other->m, "contradicts others about a sum");
		return;
	}
	copies_refuse(c, bad->m, "its copy had another sum");
	begin_reduction(c);
}

/* ---- sums that do not come ---- */

/* In so short a time heartbeats are few. */
enum { MUCH_BYTES = 65536, SHORT_US = 10000000 };

static void look_at(struct flow *f, uint64_t bytes, int64_t now_us)
{
	bool much = f->since_us && bytes > f->bytes && bytes - f->bytes > MUCH_BYTES;

	if (f->since_us && !much && now_us - f->since_us < SHORT_US)
		return;
	if (much)
		f->much_us = now_us;
	f->bytes = bytes;
	f->since_us = now_us;
}

void doubt_beat(struct controller *c, struct member *m)
{
	look_at(&m->sent, m->beat.sent_bytes, c->now_us);
	look_at(&m->received, m->beat.received_bytes, c->now_us);
}

static struct member *awaited_by(struct controller *c, const struct member *m)
{
	uint16_t awaits = m->beat.awaits;
	struct member *other = awaits && awaits <= c->n_members ? &c->members[awaits - 1] : NULL;

	return other && other->replica && member_stage(c, other) == member_stage(c, m) ? other : NULL;
}

/* Along the row of who waits for whom, to its end; in a circle, to somewhere. */
static struct member *end_of_row(struct controller *c, struct member *m, struct member **before)
{
	struct member *next;

	*before = NULL;
	for (uint32_t i = 0; i < c->n_members && (next = awaited_by(c, m)) && next != m; i++) {
		*before = m;
		m = next;
	}
	return m;
}

/* It has all that it needs, and has not said its sum. */
static void says_no_sum(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!m->replica || m->reduced || awaited_by(c, m))
			continue;
		note(c, NOTE_ALERT, m->id, 0, "n%02u waits for nobody, and does not say its sum of S%d",
		     m->id, member_stage(c, m));
		if (doubted(c, m->id))
			doubt_proven(c, m, "does not say its sum");
		else
			doubt_overdue(c, m, "does not say its sum");
		return;
	}
}

/* Beside the way of the sum, a big gradient is copied, added up and hashed meanwhile. */
static int64_t sum_patience_us(const struct controller *c)
{
	static const double sums = 6, parameter_us = 0.05;
	uint64_t most = 0;

	for (int s = 0; s < c->cluster->n_stages; s++)
		most = c->stage_parameters[s] > most ? c->stage_parameters[s] : most;
	return c->options.overdue_us + (int64_t)(parameter_us * (double)most) +
	       (int64_t)(sums * 1e6 * c->current->plan->predicted.sync_s * c->unit_s);
}

void doubt_held_up(struct controller *c)
{
	int64_t patience = sum_patience_us(c);

	if (!standstill_look(c) || !standstill_for(c, patience))
		return;
	c->steps++;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i], *by, *bad;

		if (!m->replica || m->reduced)
			continue;
		bad = end_of_row(c, m, &by);
		if (!by)
			continue;
		doubt_pair(c, bad->id, by->id);
		if (doubts_of(c, by->id) > doubts_of(c, bad->id)) {
			struct member *other = bad;

			bad = by;
			by = other;
		}
		note(c, NOTE_ALERT, bad->id, 0, "n%02u waits for n%02u's part of the sum of S%d: without n%02u",
		     by->id, bad->id, member_stage(c, bad), bad->id);
		doubt_left_out(c, bad, by, "holds a sum up");
		return;
	}
	says_no_sum(c);
}
