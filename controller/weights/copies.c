/* copies.c - every stage in two places after every commit.
 *
 * A stage with one replica has a keeper: a node of another stage that holds a copy of the
 * weights and moments, fetched in the background, and gets the summed gradient with every
 * reduction. The commit is decided when the keepers have it too, so what is committed is never
 * in one place only. Joiners come the same way: they keep a copy of their stage until it is
 * whole, and then load it.
 *
 * Who keeps: first a node whose own stage has three replicas or more, and it moves over once
 * its copy is whole (unless its links to that stage are very slow); else the node to which the replica sends a gradient fastest. It must have
 * memory for twice the copy, and keeps one stage at most.
 *
 * Where nobody else has a stage's weights, those of one that was left out since the last commit do: of
 * that commit another has told the same hash, which what is fetched must have.
 */
#include "controller/controller.h"

#include <math.h>
#include <string.h>

enum {
	LOOK_EVERY_US = 100000,
	COPY_PATIENCE_US =
		2000000, /* beyond the replicas' sums; and thrice as long as these take, or should, or the copy's */
	SETTLE_US = 500000, /* to load a copy, and two round trips */
	COPY_FLOATS = 5  /* of each parameter: weights, gradient, moments, the sum */
};

bool copy_whole(const struct member *m, int stage)
{
	return m->keeps == stage && m->kept && member_alive(m) && !m->marked;
}

bool copy_usable(const struct controller *c, const struct member *m, int stage)
{
	return copy_whole(m, stage) && m->kept_holds == c->committed;
}

static bool last_commit(const struct controller *c, const struct member *m)
{
	return m->kept_holds == c->committed || m->copy_told == c->committed;
}

bool copy_coming(const struct controller *c, const struct member *m, int stage)
{
	return copy_whole(m, stage) && last_commit(c, m);
}

bool copy_asleep(const struct controller *c, const struct member *m, int stage)
{
	return m->state == NODE_DEAD && m->keeps == stage && m->kept && last_commit(c, m);
}

bool copy_needed(const struct controller *c, const struct member *m)
{
	return m->keeps >= 0 && stage_replicas(c, m->keeps, NULL) == 0 && copy_coming(c, m, m->keeps);
}

bool copy_left_out(const struct controller *c, const struct member *m, int stage)
{
	if (!m->marked || !member_alive(m) || m->held_stage != stage || c->committed == 0 ||
	    m->holds != c->committed || m->beat.committed != c->committed || !m->hash)
		return false;
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *o = &c->members[i];

		if (o != m && o->held_stage == stage && o->holds == c->committed && o->hash == m->hash)
			return true;
	}
	return false;
}

static struct member *left_out_with(struct controller *c, int stage)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (copy_left_out(c, &c->members[i], stage))
			return &c->members[i];
	return NULL;
}

struct member *copies_holder(struct controller *c, int stage, const struct member *but)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (&c->members[i] != but && copy_usable(c, &c->members[i], stage))
			return &c->members[i];
	return left_out_with(c, stage);
}

/* The nearest that can give the stage's weights: a replica, or one that keeps them. */
static struct member *source_for(struct controller *c, int stage, const struct member *to)
{
	struct member *best = NULL;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		bool replica =
			m->replica && m->state == NODE_LIVE && member_stage(c, m) == stage;

		if (m == to || (!replica && !copy_usable(c, m, stage)) || cuts_between(c, m->id, to->id))
			continue;
		if (!best || place_distance_s(c, m, to) < place_distance_s(c, best, to))
			best = m;
	}
	return best ? best : left_out_with(c, stage);
}

static bool keep(struct controller *c, struct member *m, int stage, const struct member *source)
{
	struct msg k = { .type = MSG_KEEP };

	if (source->shunned) { /* it has what nobody else has */
		door_shun(c, &c->members[source->id], false);
		members_tell_peers(c);
	}
	m->keeps = stage;
	m->kept = false;
	m->copies = false;
	m->keeping = ++c->assignments;
	m->source = source->id;
	k.u.keep = (struct msg_keep){ m->keeping, (uint8_t)stage, source->id };
	return member_send(c, m, &k) == 0;
}

bool copies_fetch(struct controller *c, struct member *m, int stage)
{
	const struct member *source = source_for(c, stage, m);

	return source && keep(c, m, stage, source);
}

void copies_forget(struct member *m)
{
	m->keeps = -1;
	m->kept = m->copies = m->homing = false;
}

void copies_release(struct controller *c, struct member *m)
{
	struct msg k = { .type = MSG_KEEP };

	if (m->keeps < 0)
		return;
	copies_forget(m);
	k.u.keep = (struct msg_keep){ ++c->assignments, MSG_NO_STAGE, 0 };
	member_send(c, m, &k);
}

uint64_t copies_hash(const struct controller *c, int stage, uint64_t iteration)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (m->replica && member_stage(c, m) == stage && m->holds == iteration &&
		    m->hash)
			return m->hash;
	}
	for (uint32_t i = 0; i < c->n_members && iteration == c->committed; i++)
		if (copy_left_out(c, &c->members[i], stage))
			return c->members[i].hash;
	return 0;
}

bool copies_own(const struct controller *c, const struct member *m, int stage)
{
	return member_holds(c, m, stage) && m->beat.hash != 0 &&
	       copies_hash(c, stage, c->committed) == m->beat.hash;
}

/* Who was left out and has given nothing, or something else, is not asked again. */
static void blame_source(struct controller *c, const struct member *m)
{
	struct member *source = &c->members[m->source];

	if (!copy_left_out(c, source, m->keeps))
		return;
	note(c, NOTE_ALERT, source->id, 0, "n%02u, left out, does not give S%d", source->id, m->keeps);
	source->hash = 0;
}

static void fetch_again(struct controller *c, struct member *m)
{
	if (copies_fetch(c, m, m->keeps))
		return;
	copies_release(c, m);
	if (m->state == NODE_SYNCING && !m->ready)
		members_set(c, m, NODE_JOINING, "its stage has no living copy of the weights");
}

/* False: its copy is not the stage's, and is fetched again. */
static bool hash_right(struct controller *c, struct member *m, uint64_t iteration, uint64_t hash)
{
	uint64_t right = copies_hash(c, m->keeps, iteration);

	if (!right || right == hash)
		return true;
	note(c, NOTE_ALERT, m->id, 0,
	     "n%02u: its copy of S%d differs after it%llu: fetched again", m->id, m->keeps,
	     (unsigned long long)iteration);
	blame_source(c, m);
	fetch_again(c, m);
	return false;
}

/* A joiner's copy is whole, and of the last commit: it becomes its stage. If a commit was
 * faster than its word, the copy's word of that commit comes next. */
static void load_copy(struct controller *c, struct member *m)
{
	if (!m->replica && m->assignment < m->keeping && copy_usable(c, m, member_stage(c, m)))
		members_assign(c, m, member_stage(c, m), true);
}

void copies_kept(struct controller *c, struct member *m, const struct msg_kept *k)
{
	if (m->keeps < 0 || k->assignment != m->keeping || (m->state == NODE_DEAD && k->hash))
		return;
	if (!k->hash) {
		note(c, NOTE_WARNING, m->id, 0, "n%02u has no copy of S%d: %.100s", m->id,
		     m->keeps, k->text);
		m->refused_copy_us = c->now_us;
		m->n_refused++;
		blame_source(c, m);
		copies_forget(m);
		if (m->state == NODE_SYNCING && !m->ready)
			members_set(c, m, NODE_JOINING, k->text);
		if (c->phase == PHASE_REDUCING)
			commit_when_reduced(c); /* it may have waited for it */
		return;
	}
	if (k->iteration < c->committed && m->copy_told != c->committed) {
		fetch_again(c, m); /* a commit passed it by */
		return;
	}
	if (!hash_right(c, m, k->iteration, k->hash))
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

void copies_committed(struct controller *c, struct member *m, const struct msg_committed *r)
{
	if (m->keeps != r->stage || !m->kept)
		return;
	m->kept_holds = r->iteration;
	m->kept_hash = r->hash;
	if (hash_right(c, m, r->iteration, r->hash))
		load_copy(c, m);
}

/* ---- in a reduction ---- */

uint32_t copies_of(struct controller *c, int stage, uint16_t *nodes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->keeps != stage || !member_alive(m) ||
		    (m->replica && member_stage(c, m) == stage))
			continue;
		m->copies = true;
		m->copy_reduced = false;
		nodes[n++] = m->id;
	}
	return n;
}

void copies_refuse(struct controller *c, struct member *m, const char *why)
{
	m->refused_copy_us = c->now_us;
	copies_release(c, m);
	if (m->replica)
		return;
	m->n_refused++; /* the next try is later */
	members_set(c, m, NODE_JOINING, why);
}

bool copies_awaited(const struct member *m)
{
	return m->copies && (m->kept || (m->replica && !m->homing));
}

/* Of the sum's way to a copy that is awaited, the longest: seconds. */
static double way_of_copies_s(const struct controller *c)
{
	double most = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		for (uint32_t k = 0; copies_awaited(m) && !m->copy_reduced && k < c->n_members; k++) {
			const struct member *from = &c->members[k];

			if (from->replica && member_stage(c, from) == m->keeps)
				most = fmax(most, place_transfer_s(c, from, m, sizeof(float) *
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
static void overdue(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		if (c->members[i].replica && !c->members[i].reduced) {
			c->copy_looks = 0;
			return;
		}
	}
	if (++c->copy_looks * (int64_t)LOOK_EVERY_US < patience_us(c))
		return;
	c->copy_looks = 0;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!copies_awaited(m) || m->copy_reduced)
			continue;
		note(c, NOTE_WARNING, m->id, 0,
		     "n%02u: its copy of S%d is overdue and left behind", m->id, m->keeps);
		copies_refuse(c, m, "its copy was overdue");
	}
	commit_when_reduced(c);
}

/* ---- who keeps what ---- */

bool copies_room(const struct controller *c, const struct member *m, int stage)
{
	uint64_t bytes = c->stage_parameters[stage] * sizeof(float) * COPY_FLOATS;

	return m->hello.memory_bytes == 0 || m->hello.memory_bytes >= 2 * bytes;
}

static bool may_keep(const struct controller *c, const struct member *m, int stage)
{
	return m->replica && m->state == NODE_LIVE && !m->marked && m->keeps < 0 &&
	       member_stage(c, m) != stage && copies_room(c, m, stage) &&
	       (m->refused_copy_us == 0 || c->now_us - m->refused_copy_us > 30000000);
}

static bool better(const struct controller *c, int stage, const struct member *source,
		   const struct member *m, const struct member *best)
{
	bool near, best_near, at_home, best_at_home, rich, best_rich;

	if (place_distance_s(c, source, m) < 0)
		return false;
	if (!best)
		return true;
	near = place_near(c, m, stage);
	best_near = place_near(c, best, stage);
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
	return place_distance_s(c, source, m) < place_distance_s(c, source, best);
}

static bool appoint(struct controller *c, int stage)
{
	const struct member *source = NULL;
	struct member *best = NULL;

	for (uint32_t i = 0; i < c->n_members && !source; i++)
		if (c->members[i].replica && c->members[i].state == NODE_LIVE &&
		    member_stage(c, &c->members[i]) == stage)
			source = &c->members[i];
	for (uint32_t i = 0; source && i < c->n_members; i++)
		if (may_keep(c, &c->members[i], stage) &&
		    better(c, stage, source, &c->members[i], best))
			best = &c->members[i];
	if (!best || !keep(c, best, stage, source))
		return false;
	note(c, NOTE_EVENT, best->id, 0,
	     "S%d has one replica: n%02u, %.3g s away, keeps a copy", stage, best->id,
	     place_distance_s(c, source, best));
	return true;
}

static uint32_t keepers_of(const struct controller *c, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		n += c->members[i].keeps == stage && member_alive(&c->members[i]) &&
		     !c->members[i].marked;
	return n;
}

/* Copies that nobody needs any more; not those of joiners. */
static void release_idle(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->keeps < 0 || !member_alive(m) || m->homing)
			continue;
		if (m->marked || (m->replica && member_stage(c, m) == m->keeps) ||
		    (m->replica && stage_replicas(c, m->keeps, NULL) >= 2))
			copies_release(c, m);
	}
}

static bool has_second(const struct controller *c, const struct member *m)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (&c->members[i] != m && copy_usable(c, &c->members[i], m->keeps))
			return true;
	return false;
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

void copies_turn(struct controller *c)
{
	int lacking = -1;

	if (c->now_us < c->next_copies_us || c->phase == PHASE_GATHERING)
		return;
	c->next_copies_us = c->now_us + LOOK_EVERY_US;
	if (c->phase == PHASE_REDUCING) {
		overdue(c);
		return; /* who takes part in it is settled */
	}
	c->copy_looks = 0;
	release_idle(c);
	for (int s = 0; s < c->cluster->n_stages; s++)
		if (stage_replicas(c, s, NULL) == 1 && keepers_of(c, s) == 0 && !appoint(c, s))
			lacking = s;
	if (lacking >= 0)
		make_room(c, lacking);
	home_turn(c);
}

/* ---- moving ---- */

struct member *copies_place(struct controller *c, int stage)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (member_stage(c, m) == stage && (!member_alive(m) || m->marked))
			return m;
	}
	return NULL;
}

/* Here, and with nothing of the stage to lose. */
static struct member *idle_in(struct controller *c, int stage, const struct member *but)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m != but && member_stage(c, m) == stage && !m->replica && !m->restoring)
			return m;
	}
	return NULL;
}

/* They exchange places, so that every stage keeps its size: should the lost one come back, it
 * takes the place that was given up for it. */
void copies_exchange(struct controller *c, struct member *m, int stage)
{
	struct member *other = copies_place(c, stage);
	int was = member_stage(c, m);

	if (!other)
		other = idle_in(c, stage, m);
	if (other) {
		c->cluster->nodes[other->id].stage = was;
		if (member_alive(other) && !other->marked) {
			copies_release(c, other);
			members_set(c, other, NODE_JOINING, "its place was taken");
		}
		other->changed = true;
		record_node(c, other);
	}
	c->cluster->nodes[m->id].stage = stage;
}

void copies_move(struct controller *c, struct member *m, int stage)
{
	copies_exchange(c, m, stage);
	members_assign(c, m, stage, c->committed > 0);
	resume_save(c);
}

void copies_load(struct controller *c, struct member *m, int stage)
{
	members_assign(c, m, stage, true);
	m->moving = true;
	c->moved_us = c->now_us;
	resume_save(c);
}

bool copies_settle(const struct controller *c, int64_t since_us)
{
	return c->now_us - since_us < SETTLE_US + 2 * quiet_farthest_us(c);
}

static bool still_moving(struct controller *c)
{
	bool any = false;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		m->moving = m->moving && !m->replica && member_alive(m) &&
			    copies_settle(c, c->moved_us);
		any = any || m->moving;
	}
	return any;
}

/* Those that take part from the next iteration on. */
static uint32_t joiners(const struct controller *c, int stage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		n += !m->replica && member_joins(c, m) && member_stage(c, m) == stage;
	}
	return n;
}

/* It keeps the copy of a stage that is down to one, its own can spare it, and there is a place. */
static bool should_move(struct controller *c, const struct member *m)
{
	return m->replica && m->keeps >= 0 && !m->homing && copy_coming(c, m, m->keeps) &&
	       place_near(c, m, m->keeps) && stage_replicas(c, m->keeps, NULL) + joiners(c, m->keeps) <= 1 &&
	       stage_replicas(c, member_stage(c, m), NULL) >= 3 && copies_place(c, m->keeps);
}

bool copies_balance(struct controller *c)
{
	bool coming = false;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		int stage = m->keeps;

		if (!should_move(c, m))
			continue;
		if (!copy_usable(c, m, stage)) {
			coming = copies_settle(c, c->committed_us);
			continue;
		}
		note(c, NOTE_EVENT, m->id, 0,
		     "S%d is down to one replica: n%02u moves there from S%d", stage, m->id,
		     member_stage(c, m));
		copies_exchange(c, m, stage);
		copies_load(c, m, stage);
		replan(c, "a node moved to a stage that was down to one replica");
	}
	return still_moving(c) || coming;
}
