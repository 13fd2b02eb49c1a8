/* suspicion.c - agents that contradict the routes, or one another: who is left out.
 *
 * What contradicts the routes, or the agent's own words, proves itself. Where two agents contradict
 * each other, one of them is wrong, and their messages do not tell which: what was sealed for one
 * proves nothing to another. Every such pair is remembered, and as few as can be are taken to be wrong (contradictions.h):
 * who must be, for that, is left out; where that does not say, at first either. Whoever need not be wrong
 * comes back once all that it contradicts are out: if it lies again it stands in one pair more.
 *
 * Of three that all contradict each other two are wrong, and nobody can tell which. One is left alone then:
 * if it is wrong even by itself it is found out, and another has its turn.
 *
 * Left out means marked, as by the operator: the iteration goes on without it, and what it counted
 * runs again elsewhere.
 */
#include "controller/trust/suspicion.h"

#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/peers.h"
#include "controller/operator/journal.h"
#include "controller/weights/copies.h"

enum {
	LATE_FOR = 200,   /* iterations that an overdue agent is remembered */
	MOST_ACCUSED = 3, /* of numbers, in one iteration, */
	MOST_LIARS = 2,   /* by more than these: the training has diverged */
	BAD_NEIGHBOURS = 2 /* that one may have, and rightly accuse */
};

void suspicion_pair(struct controller *c, uint16_t a, uint16_t b)
{
	contradictions_add(&c->contradictions, a, b, c->iteration);
}

static int guilt_of(const struct controller *c, const struct member *m)
{
	return contradictions_guilt(&c->contradictions, m->id);
}

/* In a pair, explained or not. */
bool suspicion_concerns(const struct controller *c, uint16_t id)
{
	for (uint32_t i = 0; i < c->contradictions.n; i++)
		if (contradiction_is_of(&c->contradictions.of[i], id))
			return true;
	return false;
}

/* ---- out, and back ---- */

/* All that it contradicts. */
static bool others_are_out(const struct controller *c, const struct member *m)
{
	for (uint32_t i = 0; i < c->contradictions.n; i++) {
		const struct contradiction *d = &c->contradictions.of[i];

		if (contradiction_is_of(d, m->id) && !c->members[contradiction_other(d, m->id)].marked)
			return false;
	}
	return true;
}

/* Left out on the word of those that are out themselves, and it need not be wrong. */
static struct member *may_come_back(struct controller *c)
{
	for (uint32_t i = 0; i < c->contradictions.n; i++) {
		struct member *m = c->contradictions.of[i].out < 0 ? NULL : &c->members[c->contradictions.of[i].out];

		if (m && m->marked && others_are_out(c, m) && guilt_of(c, m) <= 0)
			return m;
	}
	return NULL;
}

/* None of the pairs is what keeps it out any more. */
static void forget_out(struct controller *c, const struct member *m)
{
	for (uint32_t i = 0; i < c->contradictions.n; i++)
		if (c->contradictions.of[i].out == m->id)
			c->contradictions.of[i].out = -1;
}

struct member *suspicion_forgive(struct controller *c)
{
	struct member *m = may_come_back(c);

	if (!m)
		return NULL;
	forget_out(c, m);
	members_mark(c, m, false);
	note(c, NOTE_EVENT, m->id, 0, "n%02u comes back: who contradicted it is out", m->id);
	return m;
}

void suspicion_explain(struct controller *c, const struct member *m)
{
	forget_out(c, m);
	for (uint32_t i = 0; i < c->contradictions.n; i++)
		if (contradiction_is_of(&c->contradictions.of[i], m->id))
			c->contradictions.of[i].explained = true;
}

/* proven: not by another's word. */
static void leave_out(struct controller *c, struct member *m, bool proven, const char *why)
{
	members_mark(c, m, true);
	member_shun(c, m, true);
	members_gone(c, m, why);
	members_set(c, m, NODE_FAILED, why);
	if (proven)
		suspicion_explain(c, m);
	c->requests.forgive = true;
}

static uint32_t count_accusers(const struct controller *c)
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
	if (c->n_accused > MOST_ACCUSED && count_accusers(c) > MOST_LIARS)
		controller_finish(c, 1, "the training has diverged: numbers are not finite");
	else
		leave_out(c, m, m == by, why);
}

void suspicion_number(struct controller *c, struct member *m, const char *why)
{
	bad_number(c, m, m, why);
}

static void forget_sums(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		c->members[i].reduced = false;
}

void suspicion_proven(struct controller *c, struct member *m, const char *why)
{
	forget_sums(c);
	leave_out(c, m, true, why);
}

void suspicion_left_out(struct controller *c, struct member *m, const struct member *other,
		    const char *why)
{
	struct contradiction *d = contradictions_find(&c->contradictions, m->id, other->id);

	if (d)
		d->out = m->id;
	forget_sums(c);
	leave_out(c, m, false, why);
}

bool suspicion_is_news(const struct controller *c, const struct member *by, const struct msg_trouble *t)
{
	return t->accused >= 0 && (uint32_t)t->accused < c->n_members && by->replica &&
	       !(by->accused_in == c->iteration && by->accused[t->accused / 8] >> t->accused % 8 & 1);
}

static void remember_accusation(const struct controller *c, struct member *by, uint16_t accused)
{
	if (by->accused_in != c->iteration)
		memset(by->accused, 0, sizeof(by->accused));
	by->accused_in = c->iteration;
	by->accused[accused / 8] |= (uint8_t)(1u << accused % 8);
}

void suspicion_accused(struct controller *c, struct member *accused, struct member *by)
{
	struct contradiction *d;

	remember_accusation(c, by, accused->id);
	if (!accused->replica)
		return;
	if (accused != by)
		suspicion_pair(c, accused->id, by->id);
	if (accused != by && guilt_of(c, by) >= BAD_NEIGHBOURS) {
		suspicion_left_out(c, by, accused, "accused one after another");
		return;
	}
	d = contradictions_find(&c->contradictions, accused->id, by->id);
	if (d)
		d->out = accused->id;
	bad_number(c, accused, by, "sent what no computation gives");
}

bool suspicion_late(const struct controller *c, const struct member *m)
{
	return m->overdue_in > 0 && m->overdue_in + LATE_FOR > c->iteration;
}

void suspicion_overdue(struct controller *c, struct member *m, const char *why)
{
	bool again = suspicion_late(c, m);

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

/* Of each gradient that m lacks either somebody says it got it from m, and then these two contradict each other, or m
 * proves itself. Of several whom it contradicts, the one in most pairs. */
bool suspicion_counts(struct controller *c, struct member *m)
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
			suspicion_proven(c, m, "left a gradient out");
			return true;
		}
		suspicion_pair(c, m->id, next->id);
		if (!other || guilt_of(c, next) > guilt_of(c, other))
			other = next;
	}
	if (!other)
		return false;
	note(c, NOTE_ALERT, m->id, 0, "n%02u has gradients that n%02u has not made", other->id, m->id);
	if (guilt_of(c, other) > guilt_of(c, m))
		suspicion_left_out(c, other, m, "contradicts others about what was done");
	else
		suspicion_left_out(c, m, other, "contradicts others about what was done");
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
	int guilt;                /* of a, or of b if that is more */
};

static void consider_pair(struct controller *c, struct found *f, const struct word *a,
		     const struct word *b)
{
	int most;

	suspicion_pair(c, a->m->id, b->m->id);
	most = guilt_of(c, a->m);
	if (guilt_of(c, b->m) > most)
		most = guilt_of(c, b->m);
	if (f->a && most <= f->guilt)
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
				consider_pair(c, f, &words[i], owner);
	}
}

static uint32_t count_agreeing(const struct word *words, uint32_t n, const struct word *with)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++)
		k += memcmp(&words[i].sum->squares, &with->sum->squares, sizeof(double)) == 0;
	return k;
}

/* Who tells the others' slices and another square: a square follows from the slices, so the most are right. */
static void differing_squares(struct controller *c, struct found *f, const struct word *words,
			      uint32_t n)
{
	const struct word *right = &words[0];

	for (uint32_t i = 1; i < n; i++)
		if (count_agreeing(words, n, &words[i]) > count_agreeing(words, n, right))
			right = &words[i];
	for (uint32_t i = 0; i < n; i++)
		if (memcmp(&words[i].sum->squares, &right->sum->squares, sizeof(double)) != 0)
			consider_pair(c, f, &words[i], right);
}

void suspicion_sums(struct controller *c, int stage)
{
	struct word words[2 * MSG_NODES];
	struct found f = { 0 };
	uint32_t n = words_of(c, stage, words);
	const struct word *bad, *other;

	differing_slices(c, &f, words, n);
	if (!f.a && n > 0)
		differing_squares(c, &f, words, n);
	if (!f.a) {
		c->requests.sum_anew = true;
		return;
	}
	bad = guilt_of(c, f.b->m) > guilt_of(c, f.a->m) ? f.b : f.a;
	other = bad == f.a ? f.b : f.a;
	note(c, NOTE_ALERT, bad->m->id, 0, "n%02u and n%02u have different sums of S%d: without n%02u",
	     f.a->m->id, f.b->m->id, stage, bad->m->id);
	if (!bad->copy) {
		suspicion_left_out(c, bad->m, other->m, "contradicts others about a sum");
		return;
	}
	copies_refuse(c, bad->m, "its copy had another sum");
	c->requests.sum_anew = true;
}

/* ---- whether data moves ---- */

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

void suspicion_beat(struct controller *c, struct member *m)
{
	look_at(&m->sent, m->beat.sent_bytes, c->now_us);
	look_at(&m->received, m->beat.received_bytes, c->now_us);
}
