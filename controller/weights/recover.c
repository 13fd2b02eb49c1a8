/* recover.c - a stage has lost its last replica: who takes it over, and from what.
 *
 * A whole copy that a keeper holds is of the last commit: nothing is lost but the iteration
 * under way, which begins anew. The keeper takes the stage over itself when its own has another
 * replica; else a node of the richest stage fetches it from the keeper; where no stage can
 * spare a node the run waits for one (the supervisor of an embedded cluster is told to start
 * it). So too with the weights of a node that was left out since that commit.
 *
 * Without a copy the run waits a while for a node that only slept, the longer the more would be lost;
 * then all go back to the last checkpoint, and where there is none the stage is made of its neighbours (restore.c).
 */
#include "controller/weights/recover.h"

#include "controller/controller.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/iteration/restart.h"
#include "controller/iteration/iteration.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/operator/journal.h"
#include "controller/operator/supervisor.h"
#include "controller/weights/copies.h"
#include "controller/weights/stage_moves.h"
#include "controller/weights/restore.h"

enum { ASK_AGAIN_US = 10000000, SLEEPER_PATIENCE_US = 5000000, LOST_PATIENCE_US = 30000000 };

/* Somebody who holds nothing yet has this stage as its place. */
static struct member *find_coming(struct controller *c, int stage)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (member_alive(m) && m->welcomed && !m->marked && !m->replica &&
		    member_stage(c, m) == stage)
			return m;
	}
	return NULL;
}

static bool can_spare(const struct controller *c, const struct member *m)
{
	return !m->marked && (!m->replica || stage_replicas(c, member_stage(c, m), NULL) >= 2);
}

/* Who died with the last replica, of the same machine, say, may not be missed yet: then what a node holds of its own stage
 * may be all that is left. */
static bool another_is_heard(const struct controller *c, const struct member *m)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *o = &c->members[i];

		if (o != m && o->replica && member_stage(c, o) == member_stage(c, m) && o->heard_us > c->stall.since_us)
			return true;
	}
	return false;
}

/* A node of the richest stage; NULL: none has two. */
static struct member *find_spare(struct controller *c)
{
	struct member *best = NULL;
	uint32_t most = 1;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];
		uint32_t n = stage_replicas(c, member_stage(c, m), NULL);

		if (m->replica && m->state == NODE_LIVE && !m->marked && n > most) {
			best = m;
			most = n;
		}
	}
	return best;
}

static void ask_for_node(struct controller *c, int stage)
{
	if (c->now_us < c->stall.next_ask_us)
		return;
	c->stall.next_ask_us = c->now_us + ASK_AGAIN_US;
	note(c, NOTE_ALERT, -1, 0, "S%d needs a node, and no stage can spare one", stage);
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (member_stage(c, m) == stage && !member_alive(m) && !m->marked &&
		    supervisor_tell(c, "start", m->id))
			note(c, NOTE_EVENT, m->id, 0, "n%02u is started again for S%d", m->id,
			     stage);
	}
}

static bool is_fetched(const struct controller *c, int stage)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (member_alive(m) && !m->replica && m->keeps == stage && member_stage(c, m) == stage)
			return true;
	}
	return false;
}

static void take_over(struct controller *c, int stage, struct member *holder)
{
	bool patient = c->now_us - c->stall.since_us < LOST_PATIENCE_US || !can_spare(c, holder);
	struct member *taker;

	if (find_coming(c, stage) && (patient || is_fetched(c, stage)))
		return; /* from the keeper */
	taker = can_spare(c, holder) ? holder : find_spare(c);
	if (!taker) {
		ask_for_node(c, stage);
		return;
	}
	if (taker->replica && !another_is_heard(c, taker))
		return;
	c->stall.taken_over = true;
	note(c, NOTE_EVENT, taker->id, 'R',
	     "n%02u takes S%d over, from the copy of it%llu at n%02u", taker->id, stage,
	     (unsigned long long)c->committed, holder->id);
	stage_moves_move(c, taker, stage);
}

/* Whether it has been told the last commit, and its word that it holds the stage, or a copy of it, is on its way. */
static bool will_hold(const struct controller *c, const struct member *m, int stage)
{
	bool own = m->held_stage == stage && m->holds + 1 >= c->committed && m->commit_told == c->committed;

	return !m->marked && ((own && !m->differs) || (copy_coming(c, m, stage) && !copy_usable(c, m, stage)));
}

static bool may_wake_with(const struct controller *c, const struct member *m, int stage)
{
	return member_stage(c, m) == stage || (m->held_stage == stage && m->holds == c->committed) ||
	       copy_asleep(c, m, stage);
}

/* Whether a node of a lost stage, or one that kept a copy of it, is still the old process. If none is, there is nobody
 * to wait for. */
static bool somebody_may_have_it(const struct controller *c)
{
	for (int s = 0; s < c->cluster->n_stages; s++)
		for (uint32_t i = 0; i < c->n_members && stage_replicas(c, s, NULL) == 0; i++) {
			const struct member *m = &c->members[i];

			if (member_alive(m) ? will_hold(c, m, s) : may_wake_with(c, m, s))
				return true;
		}
	return false;
}

/* One that could not read a file, or has come, has not told yet what it holds now. What comes right after its word of
 * that may have been said before it. */
static bool may_hold(const struct controller *c, int stage)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if (member_alive(m) && !m->marked && !m->differs && m->held_stage == stage && m->holds == c->committed &&
		    m->heard_us <= m->unready_us + TIMEOUT_BEAT_US + timeout_round_trip(&m->rounds))
			return true;
	}
	return false;
}

static void make_anew(struct controller *c, int stage)
{
	struct member *taker = find_coming(c, stage);

	if (c->now_us < c->stall.next_anew_us)
		return; /* the last could not */
	if (!taker)
		taker = find_spare(c);
	if (!taker) {
		ask_for_node(c, stage);
		return;
	}
	if (member_stage(c, taker) != stage)
		stage_moves_exchange(c, taker, stage);
	if (!restore_average(c, stage, taker) && c->now_us - c->stall.since_us > LOST_PATIENCE_US &&
	    c->jsonl)
		controller_finish(c, 1,
				  "a stage is lost: nobody has a copy, there is no checkpoint, "
				  "and no other can stand in its place");
}

/* Going back costs what was computed since the last checkpoint: to wait for half of that is worth it. */
int64_t recover_patience_us(const struct controller *c)
{
	uint64_t since = c->options.checkpoint_every ? c->committed % c->options.checkpoint_every : c->committed;
	double each_s = c->curves.n_history ? (double)c->curves.history[c->curves.n_history - 1].real_s : 0;
	double us = (double)since * each_s * 1e6 / 2;

	if (us < SLEEPER_PATIENCE_US)
		return SLEEPER_PATIENCE_US;
	return us < LOST_PATIENCE_US ? (int64_t)us : LOST_PATIENCE_US;
}

static void bring_back(struct controller *c, int stage)
{
	int64_t waited = c->now_us - c->stall.since_us;

	if ((waited < recover_patience_us(c) && somebody_may_have_it(c)) || may_hold(c, stage))
		return;
	if (!restore_checkpoint(c))
		make_anew(c, stage);
}

static void admit_joiners(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!member_joins(c, m) || m->restoring)
			continue;
		m->replica = true;
		members_set(c, m, NODE_LIVE, "");
		copies_release(c, m);
		c->stall.taken_over = true;
	}
}

/* A process whose weights its controller does not know, as its predecessor had it do something else: that they are the
 * stage's its beats say, and the record. */
static void believe_beats(const struct controller *c, struct member *m)
{
	const struct msg_heartbeat *h = &m->beat;

	if (m->restoring || m->marked || m->differs || (m->held_stage != MSG_NO_STAGE && m->held_stage != h->stage) ||
	    h->stage >= c->cluster->n_stages || h->committed != c->committed || stage_replicas(c, h->stage, NULL) > 0 ||
	    member_holds(c, m, h->stage) || !record_has_hash(c, h->stage, h->committed, h->hash))
		return;
	m->held_stage = h->stage;
	m->holds = h->committed;
}

static void take_back(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (m->replica || !member_alive(m))
			continue;
		believe_beats(c, m);
		iteration_resumes(c, m);
	}
}

void recover_turn(struct controller *c)
{
	bool all = true;

	take_back(c);
	if (c->restore.active) {
		restore_turn(c);
		return;
	}
	admit_joiners(c);
	for (int s = 0;
	     s < c->cluster->n_stages && c->phase == PHASE_STALLED && !c->restore.active; s++) {
		struct member *holder;

		if (stage_replicas(c, s, NULL) > 0)
			continue;
		all = false;
		holder = copies_holder(c, s, NULL);
		if (holder)
			take_over(c, s, holder);
		else if (c->committed > 0 || !find_coming(c, s))
			bring_back(c, s);
	}
	if (all && c->phase == PHASE_STALLED)
		restart_iteration(c, "a stage was taken over");
}
