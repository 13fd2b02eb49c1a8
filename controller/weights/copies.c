/* copies.c - standby copies of stages: which node holds a copy, of which commit, and how copies are
 * fetched and released.
 *
 * If only an excluded node has a stage's weights, other nodes may use them. The controller trusts a
 * node that the operator marked. For any other excluded node, a second node must have reported the
 * same hash for this commit, and the fetched weights must have this hash.
 *
 * standbys.c decides which node keeps a copy. stage_moves.c moves a node to the stage of its
 * copy. */
#include "controller/weights/copies.h"

#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/members/peers.h"
#include "controller/network/failed_links.h"
#include "controller/run/journal.h"
#include "controller/run/record.h"
#include "controller/weights/placement.h"

/* floats that a copy takes for each parameter: weight, gradient, two moments, sum */
enum { COPY_FLOATS = 5 };

bool copy_whole(const struct member *m, int stage)
{
	return m->copy.stage == stage && m->copy.state != COPY_FETCHING && member_alive(m) &&
	       !m->is_marked;
}

bool copy_usable(const struct run *run, const struct member *m, int stage)
{
	return copy_whole(m, stage) && m->copy.iterations == run->committed;
}

static bool last_commit(const struct run *run, const struct member *m)
{
	return m->copy.iterations == run->committed || m->copy.last_commit_sent == run->committed;
}

bool copy_expected(const struct run *run, const struct member *m, int stage)
{
	return copy_whole(m, stage) && last_commit(run, m);
}

bool copy_holder_silent(const struct run *run, const struct member *m, int stage)
{
	return m->state == MEMBER_DEAD && m->copy.stage == stage &&
	       m->copy.state != COPY_FETCHING && last_commit(run, m);
}

bool copy_needed(const struct members *members, const struct member *m)
{
	return m->copy.stage >= 0 && stage_replicas(members, m->copy.stage, NULL) == 0 &&
	       copy_expected(members->run, m, m->copy.stage);
}

bool copy_of_excluded(const struct members *members, const struct member *m, int stage)
{
	if (!m->is_marked || !member_alive(m) || m->weights.stage != stage ||
	    members->run->committed == 0 || m->weights.iterations != members->run->committed ||
	    m->beat.committed != members->run->committed || !m->weights.hash)
		return false;
	if (!m->peers.is_excluded)
		return true; /* the operator marked the node, which is therefore trusted */
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *o = &members->list[i];

		if (o != m && o->weights.stage == stage &&
		    o->weights.iterations == members->run->committed &&
		    o->weights.hash == m->weights.hash)
			return true;
	}
	return false;
}

static struct member *left_out_with(struct members *members, int stage)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (copy_of_excluded(members, &members->list[i], stage))
			return &members->list[i];
	return NULL;
}

struct member *copies_holder(struct members *members, int stage, const struct member *but)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (&members->list[i] != but && copy_usable(members->run, &members->list[i], stage))
			return &members->list[i];
	return left_out_with(members, stage);
}

/* Returns the nearest node that can send the stage's weights to `to`: a replica, or a node with a
 * copy. */
static struct member *source_for(struct members *members, int stage, const struct member *to)
{
	struct member *best = NULL;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];
		bool replica = m->state == MEMBER_LIVE && member_stage(members->run, m) == stage;

		if (m == to || (!replica && !copy_usable(members->run, m, stage)) ||
		    link_failures_between(members, m->id, to->id))
			continue;
		if (!best || placement_distance_s(members->run, m, to) <
				     placement_distance_s(members->run, best, to))
			best = m;
	}
	return best ? best : left_out_with(members, stage);
}

bool copies_keep(struct members *members, struct member *m, int stage, const struct member *source)
{
	struct msg k = { .type = MSG_KEEP };

	/* only the excluded node has these weights, so the other nodes may connect to it */
	if (source->peers.is_excluded) {
		member_shun(members, &members->list[source->id], false);
		members_tell_peers(members);
	}
	m->copy.stage = stage;
	m->copy.state = COPY_FETCHING;
	m->copy.sum_state = COPY_NO_SUM;
	m->copy.order = ++members->assignments;
	m->assigned.source = source->id;
	k.u.keep = (struct msg_keep){ m->copy.order, (uint8_t)stage, source->id };
	return member_send(members->run, m, &k) == 0;
}

bool copies_fetch(struct members *members, struct member *m, int stage)
{
	const struct member *source = source_for(members, stage, m);

	return source && copies_keep(members, m, stage, source);
}

void copies_complete(struct member *m, uint64_t iterations, uint64_t hash)
{
	if (m->copy.state == COPY_FETCHING)
		m->copy.state = COPY_WHOLE;
	m->copy.iterations = iterations;
	m->copy.hash = hash;
}

void copies_drop(struct member *m)
{
	if (m->copy.state == COPY_WHOLE)
		m->copy.state = COPY_DROPPED;
}

bool copies_use_again(const struct run *run, struct member *m, int stage)
{
	if (m->copy.state != COPY_DROPPED || !copy_usable(run, m, stage))
		return false;
	m->copy.state = COPY_WHOLE;
	return true;
}

void copies_forget_sums(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++)
		members->list[i].copy.sum_state = COPY_NO_SUM;
}

void copies_sum_reported(struct member *m)
{
	m->copy.sum_state = COPY_SUM_REPORTED;
}

bool copies_lacks_sum(const struct member *m)
{
	return copies_awaited(m) && m->copy.sum_state != COPY_SUM_REPORTED;
}

void copies_forget(struct member *m)
{
	m->copy.stage = -1;
	/* COPY_FETCHING is also the state of a node without a copy */
	m->copy.state = COPY_FETCHING;
	m->copy.sum_state = COPY_NO_SUM;
	m->move.is_returning = false;
	m->copy.purpose = COPY_FOR_SAFETY;
}

void copies_release(struct members *members, struct member *m)
{
	struct msg k = { .type = MSG_KEEP };

	if (m->copy.stage < 0)
		return;
	copies_forget(m);
	k.u.keep = (struct msg_keep){ ++members->assignments, MSG_NO_STAGE, 0 };
	member_send(members->run, m, &k);
}

uint64_t copies_hash(const struct members *members, int stage, uint64_t iteration)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (member_is_replica(m) && member_stage(members->run, m) == stage &&
		    m->weights.iterations == iteration && m->weights.hash)
			return m->weights.hash;
	}
	for (uint32_t i = 0; i < members->n && iteration == members->run->committed; i++)
		if (copy_of_excluded(members, &members->list[i], stage))
			return members->list[i].weights.hash;
	for (uint32_t i = 0; i < members->n && iteration == members->run->committed; i++)
		if (copy_usable(members->run, &members->list[i], stage) &&
		    members->list[i].copy.hash)
			return members->list[i].copy.hash;
	return 0;
}

bool copies_own(const struct members *members, const struct member *m, int stage)
{
	return member_holds(members->run, m, stage) && m->beat.hash != 0 &&
	       copies_hash(members, stage, members->run->committed) == m->beat.hash;
}

void copies_drop_source(struct members *members, const struct member *m)
{
	struct member *source = &members->list[m->assigned.source];

	if (!copy_of_excluded(members, source, m->copy.stage))
		return;
	note(members->run, NOTE_ALERT, source->id, 0, "n%02u, which is excluded, does not send S%d",
	     source->id, m->copy.stage);
	source->weights.hash = 0;
}

void copies_fetch_again(struct members *members, struct member *m)
{
	if (copies_fetch(members, m, m->copy.stage))
		return;
	copies_release(members, m);
	if (m->state == MEMBER_SYNCING)
		member_apply(members->run, m, EVENT_WAIT,
			     "its stage has no living copy of the weights");
}

bool copies_check_hash(struct members *members, struct member *m, uint64_t iteration, uint64_t hash)
{
	uint64_t right = copies_hash(members, m->copy.stage, iteration);

	if (!right || right == hash)
		return true;
	note(members->run, NOTE_ALERT, m->id, 0,
	     "n%02u: its copy of S%d differs after it%llu and is fetched again", m->id,
	     m->copy.stage, (unsigned long long)iteration);
	record_forget_hash(members->run, m->id, (uint8_t)m->copy.stage, iteration, hash);
	copies_drop_source(members, m);
	copies_fetch_again(members, m);
	return false;
}

uint32_t copies_of(struct members *members, int stage, uint16_t *nodes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (m->copy.stage != stage || m->copy.state == COPY_DROPPED || !member_alive(m) ||
		    (member_is_replica(m) && member_stage(members->run, m) == stage))
			continue;
		m->copy.sum_state = COPY_SUM_ORDERED;
		nodes[n++] = m->id;
	}
	return n;
}

void copies_refuse(struct members *members, struct member *m, const char *why)
{
	m->copy.refused_us = members->run->now_us;
	m->copy.n_refused++; /* the number of refusals delays the next attempt */
	if (member_is_replica(m) && copy_usable(members->run, m, m->copy.stage)) {
		m->copy.sum_state = COPY_NO_SUM;
		copies_drop(m);
		return;
	}
	copies_release(members, m);
	if (member_is_replica(m))
		return;
	member_apply(members->run, m, EVENT_WAIT, why);
}

bool copies_awaited(const struct member *m)
{
	return m->copy.sum_state != COPY_NO_SUM &&
	       (m->copy.state != COPY_FETCHING ||
		(member_is_replica(m) && !m->move.is_returning &&
		 m->copy.purpose == COPY_FOR_SAFETY));
}

bool copy_fits(const struct run *run, const struct member *m, int stage)
{
	uint64_t bytes = run->training.stage_parameters[stage] * sizeof(float) * COPY_FLOATS;

	return m->hello.memory_bytes == 0 || m->hello.memory_bytes >= 2 * bytes;
}
