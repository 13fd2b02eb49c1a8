/* standbys.c - every stage in two places after every commit.
 *
 * A stage with one replica has a keeper: a node of another stage that holds a copy of the
 * weights and moments, fetched in the background, and gets the summed gradient with every
 * reduction. The commit is decided when the keepers have it too, so what is committed is never
 * in one place only. Joiners come the same way: they keep a copy of their stage until it is
 * whole, and then load it.
 *
 * Who keeps: one whose links to that stage are not too slow; of these one whose own stage has three
 * replicas or more, which moves over once its copy is whole; then one that the plan had in that stage;
 * then the one to which the replica sends a gradient fastest. It must have memory for twice the copy,
 * and keeps one stage at most.
 */
#include "controller/weights/standbys.h"

#include <math.h>

#include "controller/controller.h"
#include "controller/members/assign.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/placement.h"
#include "controller/operator/journal.h"
#include "controller/weights/copies.h"

enum {
	LOOK_EVERY_US = 100000,
	COPY_PATIENCE_US =
		2000000 /* beyond the replicas' sums; and thrice as long as these take, or should, or the copy's */
};

/* ---- what is told of a copy ---- */

/* A joiner's copy is whole, and of the last commit: it becomes its stage. If a commit was
 * faster than its word, the copy's word of that commit comes next. */
static void load_copy(struct controller *c, struct member *m)
{
	if (!m->replica && m->assignment < m->keeping && copy_usable(c, m, member_stage(c, m)))
		members_assign(c, m, member_stage(c, m), true);
}

void standbys_kept(struct controller *c, struct member *m, const struct msg_kept *k)
{
	if (m->keeps < 0 || k->assignment != m->keeping || (m->state == NODE_DEAD && k->hash))
		return;
	if (!k->hash && m->behind) { /* as was said; the next commit has passed it by */
		copies_forget(m);
		return;
	}
	if (!k->hash) {
		note(c, NOTE_WARNING, m->id, 0, "n%02u has no copy of S%d: %.100s", m->id,
		     m->keeps, k->text);
		m->refused_copy_us = c->now_us;
		m->n_refused++;
		copies_drop_source(c, m);
		copies_forget(m);
		if (m->state == NODE_SYNCING && !m->ready)
			members_set(c, m, NODE_JOINING, k->text);
		c->requests.look_at_sums = true; /* it may have waited for it */
		return;
	}
	if (k->iteration < c->committed && m->copy_told != c->committed) {
		copies_fetch_again(c, m); /* a commit passed it by */
		return;
	}
	if (!copies_hash_right(c, m, k->iteration, k->hash))
		return;
	m->kept = true;
	m->kept_holds = k->iteration;
	m->kept_hash = k->hash;
	if (!m->replica && member_stage(c, m) == m->keeps)
		load_copy(c, m);
	else
		note(c, NOTE_EVENT, m->id, 0, "n%02u holds a copy of S%d, of it%llu", m->id,
		     m->keeps, (unsigned long long)k->iteration);
}

void standbys_committed(struct controller *c, struct member *m, const struct msg_committed *r)
{
	if (m->keeps != r->stage || !m->kept)
		return;
	m->kept_holds = r->iteration;
	m->kept_hash = r->hash;
	if (copies_hash_right(c, m, r->iteration, r->hash))
		load_copy(c, m);
}

/* ---- in a reduction ---- */

/* Of the sum's way to a copy that is awaited, the longest: seconds. */
static double way_of_copies_s(const struct controller *c)
{
	double most = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		for (uint32_t k = 0; copies_awaited(m) && !m->copy_reduced && k < c->n_members; k++) {
			const struct member *from = &c->members[k];

			if (from->replica && member_stage(c, from) == m->keeps)
				most = fmax(most, placement_transfer_s(c, from, m, sizeof(float) *
						  (double)c->stage_parameters[m->keeps]));
		}
	}
	return most;
}

/* On a slow machine the replicas' sums take longer too. */
static int64_t patience_us(const struct controller *c)
{
	double said_s = c->current->plan->predicted.sync_s * c->unit_s;
	double took_s = 1e-6 * (double)(c->progress.reduced_us - c->progress.reduce_us);

	return COPY_PATIENCE_US + (int64_t)(3e6 * fmax(way_of_copies_s(c), fmax(took_s, said_s)));
}

/* The replicas have the sum and wait for a copy: not for ever. Counted in looks: while this loop slept
 * there were none. */
static void release_overdue(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		if (c->members[i].replica && !c->members[i].reduced) {
			c->standbys.looks = 0;
			return;
		}
	}
	if (++c->standbys.looks * (int64_t)LOOK_EVERY_US < patience_us(c))
		return;
	c->standbys.looks = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!copies_awaited(m) || m->copy_reduced)
			continue;
		note(c, NOTE_WARNING, m->id, 0,
		     "n%02u: its copy of S%d is overdue and left behind", m->id, m->keeps);
		copies_refuse(c, m, "its copy was overdue");
	}
	c->requests.look_at_sums = true;
}

/* ---- who keeps what ---- */

static bool was_refused(const struct controller *c, const struct member *m)
{
	return m->refused_copy_us != 0 && c->now_us - m->refused_copy_us <= 30000000;
}

static bool may_keep(const struct controller *c, const struct member *m, int stage)
{
	return m->replica && m->state == NODE_LIVE && !m->marked && m->keeps < 0 &&
	       member_stage(c, m) != stage && copies_room(c, m, stage) && !was_refused(c, m);
}

/* A copy that was not needed any more is needed now. */
static bool follows_again(const struct controller *c, struct member *m, int stage)
{
	if (!m->behind || was_refused(c, m) || !copy_usable(c, m, stage))
		return false;
	m->behind = false;
	return true;
}

static bool is_better_keeper(const struct controller *c, int stage, const struct member *source,
		   const struct member *m, const struct member *best)
{
	bool near, best_near, at_home, best_at_home, rich, best_rich;

	if (placement_distance_s(c, source, m) < 0)
		return false;
	if (!best)
		return true;
	near = placement_near(c, m, stage);
	best_near = placement_near(c, best, stage);
	at_home = m->home == stage;
	best_at_home = best->home == stage;
	rich = stage_replicas(c, member_stage(c, m), NULL) >= 3;
	best_rich = stage_replicas(c, member_stage(c, best), NULL) >= 3;
	if (near != best_near)
		return near;
	if (rich != best_rich)
		return rich;
	if (at_home != best_at_home)
		return at_home;
	return placement_distance_s(c, source, m) < placement_distance_s(c, source, best);
}

static bool appoint_keeper(struct controller *c, int stage)
{
	const struct member *source = NULL;
	struct member *best = NULL;

	for (uint32_t i = 0; i < c->n_members; i++)
		if (follows_again(c, &c->members[i], stage))
			return true;
	for (uint32_t i = 0; i < c->n_members && !source; i++)
		if (c->members[i].replica && c->members[i].state == NODE_LIVE &&
		    member_stage(c, &c->members[i]) == stage)
			source = &c->members[i];
	for (uint32_t i = 0; source && i < c->n_members; i++)
		if (may_keep(c, &c->members[i], stage) &&
		    is_better_keeper(c, stage, source, &c->members[i], best))
			best = &c->members[i];
	if (!best || !copies_keep(c, best, stage, source))
		return false;
	note(c, NOTE_EVENT, best->id, 0,
	     "S%d has one replica: n%02u, %.3g s away, keeps a copy", stage, best->id,
	     placement_distance_s(c, source, best));
	return true;
}

static uint32_t keepers_of(const struct controller *c, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		n += c->members[i].keeps == stage && member_alive(&c->members[i]) &&
		     !c->members[i].marked && !c->members[i].behind;
	return n;
}

static bool has_second(const struct controller *c, const struct member *m)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (&c->members[i] != m && copy_usable(c, &c->members[i], m->keeps))
			return true;
	return false;
}

/* Copies that nobody needs any more; not those of joiners. One of the last commit stays until the next: two replicas may
 * be dead already, and not missed yet. */
static void release_idle(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->keeps < 0 || !member_alive(m) || m->homing)
			continue;
		if (m->replica && stage_replicas(c, m->keeps, NULL) >= 2)
			m->behind = true;
		if (m->marked || (m->replica && member_stage(c, m) == m->keeps) ||
		    (m->behind && (!copy_coming(c, m, m->keeps) || has_second(c, m))))
			copies_release(c, m);
	}
}

/* Who is free to keep something is of the stage that lacks a keeper itself: it takes over what
 * another keeps, and that one is free then. */
static void make_room(struct controller *c, int lacking)
{
	struct member *m, *f;

	for (uint32_t i = 0; i < c->n_members; i++) {
		m = &c->members[i];
		if (!m->replica || m->keeps < 0 || member_stage(c, m) == lacking ||
		    !copy_usable(c, m, m->keeps) || !copies_room(c, m, lacking))
			continue;
		if (has_second(c, m)) {
			copies_release(c, m);
			return;
		}
		for (uint32_t k = 0; k < c->n_members && keepers_of(c, m->keeps) == 1; k++) {
			f = &c->members[k];
			if (member_stage(c, f) != lacking || !may_keep(c, f, m->keeps) ||
			    !copies_fetch(c, f, m->keeps))
				continue;
			note(c, NOTE_LOG, f->id, 0,
			     "n%02u keeps S%d instead of n%02u, which is to keep S%d", f->id,
			     m->keeps, m->id, lacking);
			return;
		}
	}
}

bool standbys_turn(struct controller *c)
{
	int lacking = -1;

	if (c->now_us < c->standbys.next_us || c->phase == PHASE_GATHERING)
		return false;
	c->standbys.next_us = c->now_us + LOOK_EVERY_US;
	if (c->phase == PHASE_REDUCING) {
		release_overdue(c);
		return false; /* who takes part in it is settled */
	}
	c->standbys.looks = 0;
	release_idle(c);
	for (int s = 0; s < c->cluster->n_stages; s++)
		if (stage_replicas(c, s, NULL) == 1 && keepers_of(c, s) == 0 && !appoint_keeper(c, s))
			lacking = s;
	if (lacking >= 0)
		make_room(c, lacking);
	return true;
}
