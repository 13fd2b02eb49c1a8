/* copies.c - who holds a copy of a stage beside its replicas, and of which commit; copies are fetched, and let go.
 *
 * Where nobody else has a stage's weights, those of one that was left out since the last commit do: if not the
 * operator marked it, another has told the same hash of that commit, which what is fetched must have.
 *
 * Who is to keep one: standbys.c. Who moves to the stage that it keeps: stage_moves.c.
 */
#include "controller/weights/copies.h"

#include "controller/controller.h"
#include "controller/history/record.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/members/peers.h"
#include "controller/members/placement.h"
#include "controller/network/failed_links.h"
#include "controller/operator/journal.h"

enum { COPY_FLOATS = 5 }; /* of each parameter: weights, gradient, moments, the sum */

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
	if (!m->shunned)
		return true; /* the operator marked it: its word is as good as any */
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

		if (m == to || (!replica && !copy_usable(c, m, stage)) || link_failures_between(c, m->id, to->id))
			continue;
		if (!best || placement_distance_s(c, m, to) < placement_distance_s(c, best, to))
			best = m;
	}
	return best ? best : left_out_with(c, stage);
}

bool copies_keep(struct controller *c, struct member *m, int stage, const struct member *source)
{
	struct msg k = { .type = MSG_KEEP };

	if (source->shunned) { /* it has what nobody else has */
		member_shun(c, &c->members[source->id], false);
		members_tell_peers(c);
	}
	m->keeps = stage;
	m->kept = m->behind = false;
	m->copies = false;
	m->keeping = ++c->assignments;
	m->source = source->id;
	k.u.keep = (struct msg_keep){ m->keeping, (uint8_t)stage, source->id };
	return member_send(c, m, &k) == 0;
}

bool copies_fetch(struct controller *c, struct member *m, int stage)
{
	const struct member *source = source_for(c, stage, m);

	return source && copies_keep(c, m, stage, source);
}

void copies_forget(struct member *m)
{
	m->keeps = -1;
	m->kept = m->copies = m->behind = m->homing = false;
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
	for (uint32_t i = 0; i < c->n_members && iteration == c->committed; i++)
		if (copy_usable(c, &c->members[i], stage) && c->members[i].kept_hash)
			return c->members[i].kept_hash;
	return 0;
}

bool copies_own(const struct controller *c, const struct member *m, int stage)
{
	return member_holds(c, m, stage) && m->beat.hash != 0 &&
	       copies_hash(c, stage, c->committed) == m->beat.hash;
}

void copies_drop_source(struct controller *c, const struct member *m)
{
	struct member *source = &c->members[m->source];

	if (!copy_left_out(c, source, m->keeps))
		return;
	note(c, NOTE_ALERT, source->id, 0, "n%02u, left out, does not give S%d", source->id, m->keeps);
	source->hash = 0;
}

void copies_fetch_again(struct controller *c, struct member *m)
{
	if (copies_fetch(c, m, m->keeps))
		return;
	copies_release(c, m);
	if (m->state == NODE_SYNCING && !m->ready)
		members_set(c, m, NODE_JOINING, "its stage has no living copy of the weights");
}

/* False: its copy is not the stage's, and is fetched again. */
bool copies_hash_right(struct controller *c, struct member *m, uint64_t iteration, uint64_t hash)
{
	uint64_t right = copies_hash(c, m->keeps, iteration);

	if (!right || right == hash)
		return true;
	note(c, NOTE_ALERT, m->id, 0,
	     "n%02u: its copy of S%d differs after it%llu: fetched again", m->id, m->keeps,
	     (unsigned long long)iteration);
	record_forget_hash(c, m, (uint8_t)m->keeps, iteration, hash);
	copies_drop_source(c, m);
	copies_fetch_again(c, m);
	return false;
}

uint32_t copies_of(struct controller *c, int stage, uint16_t *nodes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->keeps != stage || m->behind || !member_alive(m) ||
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
	if (m->replica && copy_usable(c, m, m->keeps)) {
		m->copies = false;
		m->behind = true;
		return;
	}
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

bool copies_room(const struct controller *c, const struct member *m, int stage)
{
	uint64_t bytes = c->stage_parameters[stage] * sizeof(float) * COPY_FLOATS;

	return m->hello.memory_bytes == 0 || m->hello.memory_bytes >= 2 * bytes;
}
