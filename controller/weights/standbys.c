/* standbys.c - keeps every stage on two nodes after every commit.
 *
 * A stage with one replica has a keeper: a node of another stage with a standby copy of the weights
 * and moments. The keeper fetches the copy in the background and receives the summed gradient of
 * every iteration. A commit is decided only when the keepers have the sum, too, so a single death
 * never loses a committed stage. There is one exception: if an exchange of stages (phase_moves.c)
 * leaves one replica, the keeper begins to fetch only after the exchange. A joining node keeps a
 * copy of its own stage in the same way, and loads it when it is complete.
 *
 * The controller chooses a keeper by these rules. A later rule decides only between candidates that
 * the earlier rules leave equal:
 * 1. The links between the candidate and the stage are fast enough.
 * 2. The candidate's own stage has three replicas or more. The candidate can then move to the stage
 *    once its copy is complete.
 * 3. The candidate is a spare.
 * 4. The first plan gave the stage to the candidate.
 * 5. The replica sends a gradient to the candidate in the shortest time.
 *
 * A keeper keeps one stage at most. It needs memory for the copy beside its own stage: four arrays
 * with a float for each of the copied stage's weights, and a fifth array during a sum. */
#include "controller/weights/standbys.h"

#include <math.h>

#include "controller/members/member.h"
#include "controller/planning/spares.h"
#include "controller/run/journal.h"
#include "controller/weights/assign.h"
#include "controller/weights/copies.h"
#include "controller/weights/placement.h"
#include "controller/weights/stacking.h"
#include "controller/weights/backups.h"

enum {
	LOOK_EVERY_US = 100000,
	/* A part of the time for which the commit waits for copies. The other part is three times
	 * the longest of these times: the measured time of the replicas' sums, the planned time of
	 * the sums, and the transfer time to a copy. */
	COPY_PATIENCE_US = 2000000
};

/* ---- reports about copies ---- */

/* Orders a joiner that has reported a complete copy to load the copy, if the copy belongs to the
 * last commit. If a newer commit was decided meanwhile, the order follows once the joiner has
 * reported the newer commit. */
static void load_copy(struct members *members, struct member *m)
{
	if (!member_is_replica(m) && m->assigned.number < m->copy.order &&
	    copy_usable(members->run, m, member_stage(members->run, m)))
		members_assign(members, m, member_stage(members->run, m), true);
}

void standbys_kept(struct members *members, struct member *m, const struct msg_kept *k)
{
	if (m->copy.stage < 0 || k->assignment != m->copy.order ||
	    (m->state == MEMBER_DEAD && k->hash))
		return;
	/* A dropped copy always misses the next commit */
	if (!k->hash && m->copy.state == COPY_DROPPED) {
		copies_forget(m);
		return;
	}
	if (!k->hash) {
		note(members->run, NOTE_WARNING, m->id, 0, "n%02u has no copy of S%d: %.100s",
		     m->id, m->copy.stage, k->text);
		m->copy.refused_us = members->run->now_us;
		m->copy.n_refused++;
		copies_drop_source(members, m);
		copies_forget(m);
		if (m->state == MEMBER_SYNCING)
			member_apply(members->run, m, EVENT_WAIT, k->text);
		/* The commit may have waited for this copy's sum */
		members->run->requests.look_at_sums = true;
		return;
	}
	if (k->iteration < members->run->committed &&
	    m->copy.last_commit_sent != members->run->committed) {
		copies_fetch_again(members, m); /* the copy missed a commit */
		return;
	}
	if (!copies_check_hash(members, m, k->iteration, k->hash))
		return;
	copies_complete(m, k->iteration, k->hash);
	if (!member_is_replica(m) && member_stage(members->run, m) == m->copy.stage)
		load_copy(members, m);
	else
		note(members->run, NOTE_EVENT, m->id, 0, "n%02u holds a copy of S%d, of it%llu",
		     m->id, m->copy.stage, (unsigned long long)k->iteration);
}

void standbys_committed(struct members *members, struct member *m, const struct msg_committed *r)
{
	if (m->copy.stage != r->stage || m->copy.state == COPY_FETCHING)
		return;
	m->copy.iterations = r->iteration;
	m->copy.hash = r->hash;
	if (copies_check_hash(members, m, r->iteration, r->hash))
		load_copy(members, m);
}

/* ---- during a sum ---- */

/* Returns the longest transfer time of a sum to an awaited copy, in seconds. */
static double transfer_to_copies_s(const struct members *members)
{
	double most = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		for (uint32_t k = 0; copies_lacks_sum(m) && k < members->n; k++) {
			const struct member *from = &members->list[k];

			if (member_is_replica(from) &&
			    member_stage(members->run, from) == m->copy.stage)
				most = fmax(
					most,
					placement_transfer_s(
						members, from, m,
						sizeof(float) *
							(double)members->run->training
								.stage_parameters[m->copy.stage]));
		}
	}
	return most;
}

/* Returns how long the commit waits for copies. The time grows with the time of the replicas' sums,
 * because a slow machine delays both the sums and the copies. */
static int64_t patience_us(const struct members *members, double took_s)
{
	const struct run *run = members->run;
	double planned_s = run->plan->plan->predicted.sync_s * run->unit_s;

	return COPY_PATIENCE_US +
	       (int64_t)(3e6 * fmax(transfer_to_copies_s(members), fmax(took_s, planned_s)));
}

/* Drops copies for which the replicas have waited too long after they had the sum themselves. The
 * wait is counted in checks, so that time in which this process is suspended does not count. */
static void release_overdue(struct backups *backups, double took_s)
{
	for (uint32_t i = 0; i < backups->members->n; i++) {
		if (member_is_replica(&backups->members->list[i]) &&
		    !backups->members->list[i].sum.is_done) {
			backups->standbys.looks = 0;
			return;
		}
	}
	if (++backups->standbys.looks * (int64_t)LOOK_EVERY_US <
	    patience_us(backups->members, took_s))
		return;
	backups->standbys.looks = 0;
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];

		if (!copies_lacks_sum(m))
			continue;
		note(backups->run, NOTE_WARNING, m->id, 0,
		     "n%02u: its copy of S%d is overdue and dropped", m->id, m->copy.stage);
		copies_refuse(backups->members, m, "its copy was overdue");
	}
	backups->run->requests.look_at_sums = true;
}

/* ---- choosing keepers ---- */

static bool was_refused(const struct run *run, const struct member *m)
{
	return m->copy.refused_us != 0 && run->now_us - m->copy.refused_us <= 30000000;
}

static bool may_keep(const struct run *run, const struct member *m, int stage)
{
	return m->state == MEMBER_LIVE && !m->is_marked && m->move.drain == DRAIN_NOT &&
	       m->copy.stage < 0 && member_stage(run, m) != stage &&
	       copy_fits(run, m, stage) && !was_refused(run, m);
}

static bool is_better_keeper(const struct members *members, int stage, const struct member *source,
			     const struct member *m, const struct member *best)
{
	bool near, best_near, at_home, best_at_home, rich, best_rich, waits, best_waits;

	if (placement_distance_s(members->run, source, m) < 0)
		return false;
	if (!best)
		return true;
	near = placement_near(members, m, stage);
	best_near = placement_near(members, best, stage);
	at_home = m->move.home == stage;
	best_at_home = best->move.home == stage;
	rich = stage_replicas(members, member_stage(members->run, m), NULL) >= 3;
	best_rich = stage_replicas(members, member_stage(members->run, best), NULL) >= 3;
	waits = spares_wait(members, m);
	best_waits = spares_wait(members, best);
	if (near != best_near)
		return near;
	if (rich != best_rich)
		return rich;
	if (waits != best_waits)
		return waits;
	if (at_home != best_at_home)
		return at_home;
	return placement_distance_s(members->run, source, m) <
	       placement_distance_s(members->run, source, best);
}

static bool appoint_keeper(struct members *members, int stage)
{
	const struct member *source = NULL;
	struct member *best = NULL;

	for (uint32_t i = 0; i < members->n; i++)
		if (!was_refused(members->run, &members->list[i]) &&
		    copies_use_again(members->run, &members->list[i], stage))
			return true;
	for (uint32_t i = 0; i < members->n && !source; i++)
		if (members->list[i].state == MEMBER_LIVE &&
		    member_stage(members->run, &members->list[i]) == stage)
			source = &members->list[i];
	for (uint32_t i = 0; source && i < members->n; i++)
		if (may_keep(members->run, &members->list[i], stage) &&
		    is_better_keeper(members, stage, source, &members->list[i], best))
			best = &members->list[i];
	if (!best || !copies_keep(members, best, stage, source))
		return false;
	note(members->run, NOTE_EVENT, best->id, 0,
	     "S%d has one replica: n%02u, %.3g s away, keeps a copy", stage, best->id,
	     placement_distance_s(members->run, source, best));
	return true;
}

static uint32_t keepers_of(const struct members *members, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++)
		n += members->list[i].copy.stage == stage && member_alive(&members->list[i]) &&
		     !members->list[i].is_marked &&
		     /* another node replaces a keeper that drains */
		     members->list[i].move.drain == DRAIN_NOT &&
		     members->list[i].copy.state != COPY_DROPPED;
	return n;
}

static bool has_second(const struct members *members, const struct member *m)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (&members->list[i] != m &&
		    copy_usable(members->run, &members->list[i], m->copy.stage))
			return true;
	return false;
}

/* Releases copies that are not needed, except the copies of joiners. A copy of the last commit
 * stays until the next commit, because both replicas of its stage may have died without being
 * noticed. */
static void release_idle(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];
		bool spare;

		if (m->copy.stage < 0 || !member_alive(m) || m->move.is_returning ||
		    (m->copy.purpose == COPY_FOR_MOVE && !m->is_marked) ||
		    stacking_needs(members->run, m))
			continue;
		spare = member_is_replica(m) && stage_replicas(members, m->copy.stage, NULL) >= 2;
		if (spare)
			copies_drop(m);
		if (m->is_marked ||
		    (member_is_replica(m) && member_stage(members->run, m) == m->copy.stage) ||
		    ((spare || m->copy.state == COPY_DROPPED) &&
		     (!copy_expected(members->run, m, m->copy.stage) || has_second(members, m))))
			copies_release(members, m);
	}
}

/* Called if every node that could keep a copy of the stage `lacking` already keeps a copy of
 * another stage. Chooses one of these keepers. If a second node has a usable copy of that other
 * stage, releases the keeper's copy, so that the keeper can keep a copy of `lacking`. Otherwise
 * orders a node of `lacking` to fetch a copy of that other stage. Once this copy is usable, a later
 * call releases the keeper's copy. */
static void make_room(struct members *members, int lacking)
{
	struct member *m, *f;

	for (uint32_t i = 0; i < members->n; i++) {
		m = &members->list[i];
		if (!member_is_replica(m) || m->copy.stage < 0 ||
		    member_stage(members->run, m) == lacking ||
		    !copy_usable(members->run, m, m->copy.stage) ||
		    !copy_fits(members->run, m, lacking))
			continue;
		if (has_second(members, m)) {
			copies_release(members, m);
			return;
		}
		for (uint32_t k = 0; k < members->n && keepers_of(members, m->copy.stage) == 1;
		     k++) {
			f = &members->list[k];
			if (member_stage(members->run, f) != lacking ||
			    !may_keep(members->run, f, m->copy.stage) ||
			    !copies_fetch(members, f, m->copy.stage))
				continue;
			note(members->run, NOTE_LOG, f->id, 0,
			     "n%02u keeps S%d instead of n%02u, which is to keep S%d", f->id,
			     m->copy.stage, m->id, lacking);
			return;
		}
	}
}

bool standbys_turn(struct backups *backups, double sums_took_s)
{
	struct members *members = backups->members;
	const struct run *run = backups->run;
	int lacking = -1;

	if (run->now_us < backups->standbys.next_us || run->phase == PHASE_GATHERING)
		return false;
	backups->standbys.next_us = run->now_us + LOOK_EVERY_US;
	if (run->phase == PHASE_REDUCING) {
		release_overdue(backups, sums_took_s);
		return false; /* a node cannot be added to a sum that has begun */
	}
	backups->standbys.looks = 0;
	release_idle(members);
	for (int s = 0; s < run->cluster->n_stages; s++)
		if (stage_replicas(members, s, NULL) == 1 && keepers_of(members, s) == 0 &&
		    !appoint_keeper(members, s))
			lacking = s;
	backups->standbys.lacks = lacking >= 0;
	if (lacking >= 0)
		make_room(members, lacking);
	return true;
}
