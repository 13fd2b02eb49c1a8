/* recover.c - restores a stage that has lost its last replica.
 *
 * Without a replica the run cannot continue. A complete standby copy has the weights of the last
 * commit, so only the current iteration is repeated. The node with the copy moves to the lost stage
 * if its own stage has another replica. Otherwise a node of the stage with the most replicas
 * fetches the copy.
 *
 * If no stage can spare a node, the run waits for a new node, and an embedded cluster's
 * supervisor is asked to start one. A node that was excluded after the last commit still has its
 * weights, which can be used like a copy.
 *
 * Without a copy, the controller waits for a silent node that may return with the weights. The more
 * work would be lost, the longer the controller waits before it restores the last checkpoint.
 * Without a checkpoint the stage is averaged from its neighbours (restore.c). */
#include "controller/iteration/recover.h"

#include "controller/iteration/iteration.h"
#include "controller/iteration/restart.h"
#include "controller/iteration/stall_detector.h"
#include "controller/members/finish.h"
#include "controller/members/lifecycle.h"
#include "controller/members/member.h"
#include "controller/planning/replan.h"
#include "controller/planning/spares.h"
#include "controller/run/journal.h"
#include "controller/run/phase.h"
#include "controller/run/record.h"
#include "controller/run/supervisor.h"
#include "controller/weights/copies.h"
#include "controller/weights/restore.h"
#include "controller/weights/stage_moves.h"

enum { ASK_AGAIN_US = 10000000, SLEEPER_PATIENCE_US = 5000000, LOST_PATIENCE_US = 30000000 };

void recover_begin(struct backups *backups, const struct member *gone)
{
	if (backups->run->phase != PHASE_STALLED)
		backups->stall.in = backups->run->phase;
	backups->stall.since_us = backups->run->now_us;
	backups->stall.next_ask_us = 0;
	if (gone->move.drain != DRAIN_NOT)
		note(backups->run, NOTE_EVENT, gone->id, 0, "n%02u hands S%d over before it leaves",
		     gone->id, member_stage(backups->run, gone));
	else
		note(backups->run, NOTE_ALERT, gone->id, 0, "S%d has lost its last replica%s",
		     member_stage(backups->run, gone),
		     copies_holder(backups->members, member_stage(backups->run, gone), NULL)
			     ? ""
			     : ": the run waits for it");
	set_phase(backups->run, PHASE_STALLED);
}

/* Returns a node to which this stage is assigned but which does not hold it yet. */
static struct member *find_coming(struct members *members, int stage)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (member_alive(m) && m->assigned.is_welcomed && !m->is_marked &&
		    !member_is_replica(m) && member_stage(members->run, m) == stage)
			return m;
	}
	return NULL;
}

static bool can_spare(const struct members *members, const struct member *m)
{
	return !m->is_marked && m->move.drain == DRAIN_NOT &&
	       (!member_is_replica(m) ||
		stage_replicas(members, member_stage(members->run, m), NULL) >= 2);
}

/* Returns true if another replica of m's stage has been heard since the stall began. Otherwise m
 * may be the last holder of its own stage: the other replicas may have died together with the lost
 * stage, for instance on the same machine, and the controller may not have noticed their deaths
 * yet. */
static bool another_is_heard(const struct backups *backups, const struct member *m)
{
	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *o = &backups->members->list[i];

		if (o != m && member_is_replica(o) &&
		    member_stage(backups->run, o) == member_stage(backups->run, m) &&
		    o->heard.message_us > backups->stall.since_us)
			return true;
	}
	return false;
}

/* Returns a node of the stage with the most replicas. Prefers a node that waits as a spare. NULL:
 * no stage has two replicas. */
static struct member *find_spare(struct members *members)
{
	struct member *best = NULL;
	uint32_t most = 1;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];
		uint32_t n = stage_replicas(members, member_stage(members->run, m), NULL);

		if (m->state == MEMBER_LIVE && !m->is_marked && m->move.drain == DRAIN_NOT &&
		    (n > most || (best && n == most && spares_wait(members, m)))) {
			best = m;
			most = n;
		}
	}
	return best;
}

static void ask_for_node(struct backups *backups, int stage)
{
	if (backups->run->now_us < backups->stall.next_ask_us)
		return;
	backups->stall.next_ask_us = backups->run->now_us + ASK_AGAIN_US;
	note(backups->run, NOTE_ALERT, -1, 0, "S%d needs a node, and no stage can spare one",
	     stage);
	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *m = &backups->members->list[i];

		if (member_stage(backups->run, m) == stage && !member_alive(m) && !m->is_marked &&
		    supervisor_tell(backups->run, "start", m->id))
			note(backups->run, NOTE_EVENT, m->id, 0, "n%02u is started again for S%d",
			     m->id, stage);
	}
}

static bool is_fetched(const struct members *members, int stage)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (member_alive(m) && !member_is_replica(m) && m->copy.stage == stage &&
		    member_stage(members->run, m) == stage)
			return true;
	}
	return false;
}

static void take_over(struct backups *backups, int stage, struct member *holder)
{
	/* A draining holder leaves soon, so the run waits only a short time for another node. */
	bool drains = holder->move.drain != DRAIN_NOT;
	int64_t patience_us = drains ? SLEEPER_PATIENCE_US : LOST_PATIENCE_US;
	bool patient = backups->run->now_us - backups->stall.since_us < patience_us ||
		       (!drains && !can_spare(backups->members, holder));
	struct member *taker;

	if (find_coming(backups->members, stage) &&
	    (patient || is_fetched(backups->members, stage)))
		return; /* the node that gets the stage will fetch the holder's copy */
	taker = can_spare(backups->members, holder) ? holder : find_spare(backups->members);
	if (!taker) {
		ask_for_node(backups, stage);
		return;
	}
	if (member_is_replica(taker) && !another_is_heard(backups, taker))
		return;
	backups->stall.taken_over = true;
	note(backups->run, NOTE_EVENT, taker->id, 'R',
	     "n%02u takes S%d over, from the copy of it%llu at n%02u", taker->id, stage,
	     (unsigned long long)backups->run->committed, holder->id);
	stage_moves_move(backups->members, taker, stage);
}

/* Returns true if the controller announced the last commit to m, so that m will soon report that it
 * holds the stage or a standby copy of the stage. */
static bool will_hold(const struct run *run, const struct member *m, int stage)
{
	bool own = m->weights.stage == stage && m->weights.iterations + 1 >= run->committed &&
		   m->weights.last_commit_sent == run->committed;

	return !m->is_marked && ((own && !m->weights.differ) ||
				 (copy_expected(run, m, stage) && !copy_usable(run, m, stage)));
}

static bool may_wake_with(const struct run *run, const struct member *m, int stage)
{
	return member_stage(run, m) == stage ||
	       (m->weights.stage == stage && m->weights.iterations == run->committed) ||
	       copy_holder_silent(run, m, stage);
}

/* Returns true if some node's memory may hold the weights of a lost stage: the node will soon
 * report the weights, or it is silent and may return with them. Otherwise waiting is useless. */
static bool may_still_be_held(const struct members *members)
{
	for (int s = 0; s < members->run->cluster->n_stages; s++)
		for (uint32_t i = 0; i < members->n && stage_replicas(members, s, NULL) == 0; i++) {
			const struct member *m = &members->list[i];

			if (member_alive(m) ? will_hold(members->run, m, s)
					    : may_wake_with(members->run, m, s))
				return true;
		}
	return false;
}

/* Returns true if a node may hold the last commit of the stage without having reported it. Such a
 * node has just joined, or has just reported that it could not read a checkpoint, and no heartbeat
 * has arrived since then. A heartbeat that arrives soon after this moment does not count, because
 * the node may have sent it before. */
static bool may_hold(const struct members *members, int stage)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (member_alive(m) && !m->is_marked && !m->weights.differ &&
		    m->weights.stage == stage && m->weights.iterations == members->run->committed &&
		    m->heard.message_us <= m->checkpoint.unready_us + TIMEOUT_BEAT_US +
						   timeout_round_trip(&m->heard.rounds))
			return true;
	}
	return false;
}

static void average_neighbours(struct backups *backups, int stage)
{
	struct member *taker = find_coming(backups->members, stage);

	if (backups->run->now_us < backups->stall.next_average_us)
		return; /* the previous attempt to restore the stage has failed */
	if (!taker)
		taker = find_spare(backups->members);
	if (!taker) {
		ask_for_node(backups, stage);
		return;
	}
	if (!restore_average(backups, stage, taker) && !restore_first(backups) &&
	    backups->run->now_us - backups->stall.since_us > LOST_PATIENCE_US &&
	    backups->run->record.jsonl)
		controller_finish(backups->members, 1,
				  "a stage is lost: nobody has a copy, there is no checkpoint, "
				  "and no neighbour can replace it");
}

/* Returning to a checkpoint repeats all iterations since the checkpoint was written. Waiting for up
 * to half the time of these iterations is cheaper. */
int64_t recover_patience_us(const struct run *run)
{
	uint64_t since = run->options.checkpoint_every
				 ? run->committed % run->options.checkpoint_every
				 : run->committed;
	double each_s =
		run->record.curves.n_iterations
			? (double)run->record.curves.iterations[run->record.curves.n_iterations - 1]
				  .real_s
			: 0;
	double us = (double)since * each_s * 1e6 / 2;

	if (us < SLEEPER_PATIENCE_US)
		return SLEEPER_PATIENCE_US;
	return us < LOST_PATIENCE_US ? (int64_t)us : LOST_PATIENCE_US;
}

/* Returns true if no iteration has been committed since the stages changed. In that case agents
 * may report weights of the former stages, which are useless. The controller does not wait for
 * such agents, because the checkpoint contains all of the new stages. */
static bool has_new_stages(const struct run *run)
{
	return run->committed > 0 && run->training.part.after == run->committed;
}

static void bring_back(struct backups *backups, int stage)
{
	int64_t waited = backups->run->now_us - backups->stall.since_us;

	if ((!has_new_stages(backups->run) && waited < recover_patience_us(backups->run) &&
	     may_still_be_held(backups->members)) ||
	    may_hold(backups->members, stage))
		return;
	if (!restore_checkpoint(backups))
		average_neighbours(backups, stage);
}

static void admit_joiners(struct backups *backups)
{
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];

		if (!member_joins(backups->run, m))
			continue;
		member_apply(backups->run, m, EVENT_ADMIT, "");
		copies_release(backups->members, m);
		backups->stall.taken_over = true;
	}
}

/* If the record has the hash of the weights that m's heartbeat reports, accepts these weights. An
 * earlier controller may have ordered m to load them without the knowledge of this controller. */
static void believe_beats(const struct members *members, struct member *m)
{
	const struct msg_heartbeat *h = &m->beat;

	if (has_new_stages(members->run) || member_is_restoring(m) || m->is_marked ||
	    m->weights.differ ||
	    (m->weights.stage != MSG_NO_STAGE && m->weights.stage != h->stage) ||
	    h->stage >= members->run->cluster->n_stages ||
	    h->committed != members->run->committed ||
	    stage_replicas(members, h->stage, NULL) > 0 ||
	    member_holds(members->run, m, h->stage) ||
	    !record_has_hash(members->run, h->stage, h->committed, h->hash))
		return;
	m->weights.stage = h->stage;
	m->weights.iterations = h->committed;
}

static void take_back(struct iteration *it)
{
	for (uint32_t i = 0; i < it->members->n; i++) {
		struct member *m = &it->members->list[i];

		if (member_is_replica(m) || !member_alive(m))
			continue;
		believe_beats(it->members, m);
		iteration_readmit(it, m);
	}
}

/* Continues a restore. Nodes that stay silent for too long are abandoned. */
static void continue_restore(struct iteration *it)
{
	switch (restore_turn(it->backups)) {
	case RESTORE_SETTLED:
		break;
	case RESTORE_UNANSWERED:
		if (stall_look(it) &&
		    stall_for(it, restore_patience_us(it->backups, it->detector.hung_us)))
			restore_abandon_silent(it->backups);
		break;
	case RESTORE_WENT_BACK:
		it->evaluation.wanted = false;
		break;
	}
}

/* Returns true if m has memory for the weights, gradients and moments of a stage without replicas.
 */
static bool fits_lost_stage(const struct members *members, const struct member *m)
{
	enum { FLOATS = 4 };

	for (int s = 0; s < members->run->cluster->n_stages; s++) {
		uint64_t parameters = members->run->training.stage_parameters[s];

		if (stage_replicas(members, s, NULL) == 0 &&
		    (m->hello.memory_bytes == 0 ||
		     members_memory(members, m) >= (double)(parameters * FLOATS * sizeof(float))))
			return true;
	}
	return false;
}

/* Some nodes were excluded when the stages were chosen, because iterations would have been longer
 * with them. Ends the exclusion of each such node that has enough memory for a lost stage. */
static void take_in_left_out(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (!m->assigned.is_left_out || !member_alive(m) || !fits_lost_stage(members, m))
			continue;
		member_mark(members, m, false);
		member_apply(members->run, m, EVENT_RECOVER, "a stage has no node");
		note(members->run, NOTE_EVENT, m->id, 0,
		     "n%02u, which was left out, is taken in: a stage has no node", m->id);
	}
}

/* Continues the run once every stage has a replica. A run that stalled while it was paused is
 * paused again, unless an iteration must restart. For example, an iteration must restart after the
 * run has gone back to a checkpoint. */
static void continue_run(struct iteration *it)
{
	static const char why[] = "a stage was taken over";

	if (it->backups->stall.in != PHASE_PAUSED || it->redo) {
		restart_iteration(it, why);
		return;
	}
	it->backups->stall.taken_over = false;
	set_phase(it->run, PHASE_PAUSED);
	replan(it->planning, why);
}

void recover_turn(struct iteration *it)
{
	bool all = true;

	take_in_left_out(it->members);
	take_back(it);
	if (it->backups->restore.state != RESTORING_NOTHING) {
		continue_restore(it);
		return;
	}
	admit_joiners(it->backups);
	for (int s = 0; s < it->run->cluster->n_stages && it->run->phase == PHASE_STALLED &&
			it->backups->restore.state == RESTORING_NOTHING;
	     s++) {
		struct member *holder;

		if (stage_replicas(it->members, s, NULL) > 0)
			continue;
		all = false;
		holder = copies_holder(it->members, s, NULL);
		if (holder)
			take_over(it->backups, s, holder);
		else if (it->run->committed > 0 || !find_coming(it->members, s))
			bring_back(it->backups, s);
	}
	if (all && it->run->phase == PHASE_STALLED)
		continue_run(it);
}
