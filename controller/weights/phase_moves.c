/* phase_moves.c - moves nodes to their stages of a phase of the skip schedule (--phase-moves).
 *
 * Each phase has its own allocation of nodes to stages (planning/phase_targets.c). A node that
 * changes its stage fetches a standby copy of the new stage shortly before the phase begins, and
 * receives the sums of this stage from then on. While the last iteration before the phase runs,
 * the controller prepares an exchange: it lists the nodes whose copies are complete, and requests
 * a plan in which these nodes have their new stages and all other nodes keep their stages.
 * Between the two iterations all listed nodes load their copies at once, and the new plan takes
 * effect.
 *
 * The controller saves the exchange before it sends any order. If the controller dies, the run
 * therefore has either the allocation before the exchange or the allocation after it. After a
 * restart of the controller, a node that has not loaded its copy loads it when it returns.
 *
 * A running node is listed only if its copy is complete in time. Absent nodes move without a copy.
 * If a listed node dies or loses its copy, the exchange is void, and the iteration uses the old
 * allocation. The controller prepares another exchange when no copy is being fetched any more, or
 * after five iterations.
 *
 * In each stage one replica stays, so that the weights never exist only in copies. If stages
 * start from trained stages (stacking.c), nodes move only afterwards, because a node can have
 * only one copy at a time. A node of a stage that starts in this way must keep its first copy
 * until it has reported the commit with which the stage starts. After this report, the controller
 * orders the node to fetch the copy for its move. */
#include "controller/weights/phase_moves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tensor_format.h"
#include "controller/members/member.h"
#include "controller/members/member_record.h"
#include "controller/members/saved_state.h"
#include "controller/planning/replan.h"
#include "controller/planning/request.h"
#include "controller/planning/skip_phases.h"
#include "controller/run/journal.h"
#include "controller/weights/copies.h"
#include "controller/weights/placement.h"
#include "controller/weights/stacking.h"
#include "controller/weights/stage_moves.h"
#include "controller/weights/backups.h"

enum {
	/* number of iterations for which nodes with complete copies wait for nodes that are still
	 * fetching */
	PATIENCE = 5,
	EARLIEST = 3, /* fetches of copies begin at least this many iterations before the phase */
	/* Number of failures to keep a copy after which the node does not move in this phase */
	MOST_FAILURES = 3,
	AGAIN_US = 30000000, /* time after which a node that failed tries again */
	/* Additional time for nodes to load their copies. Waiting is cheaper than an iteration
	 * without one of these nodes. */
	MORE_US = 1500000
};

/* ---- which nodes move ---- */

/* Returns true if m still has to move to the stage that it has in the phase. m's field `home` is
 * m's stage in the last allocation that took effect. */
static bool is_due(const struct backups *backups, uint32_t phase, const struct member *m)
{
	int to = phase_targets_stage(backups->planning, phase, m->id);

	return to >= 0 && to != m->move.home;
}

static bool has_failed(const struct run *run, const struct member *m)
{
	return m->copy.n_refused >= MOST_FAILURES && run->now_us - m->copy.refused_us <= AGAIN_US;
}

static bool has_copy(const struct run *run, const struct member *m, int stage)
{
	return m->copy.stage == stage && m->copy.state == COPY_WHOLE &&
	       copy_expected(run, m, stage) && !m->move.is_returning;
}

/* Returns true if m is fetching a copy of the stage. */
static bool is_fetching(const struct run *run, const struct member *m, int stage)
{
	if (m->copy.stage == stage)
		return m->copy.state == COPY_FETCHING;
	return m->copy.stage < 0 && m->state == MEMBER_LIVE && !m->is_marked &&
	       copy_fits(run, m, stage) && !has_failed(run, m);
}

/* Returns the real seconds that m needs to fetch the stage from the nearest replica. */
static double fetch_s(const struct backups *backups, const struct member *m, int stage)
{
	const struct run *run = backups->run;
	double parameters = (double)run->training.stage_parameters[stage], least = INFINITY;
	double more = STATE_FLOATS / tensor_format_sum_share(run->cluster->formats.sum_wire);

	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *from = &backups->members->list[i];
		double s;

		if (!member_is_replica(from) || member_stage(run, from) != stage)
			continue;
		s = backups->members->links
			    ? placement_transfer_s(backups->members, from, m,
						   STATE_BYTES * parameters)
			    : run->unit_s * more * placement_distance_s(run, from, m);
		least = fmin(least, fmax(s, 0));
	}
	return isfinite(least) ? least : 0;
}

/* Returns how many iterations before the phase the fetches have to begin, so that the slowest
 * fetch ends in time. */
static uint64_t find_lead(const struct backups *backups, uint32_t phase)
{
	const struct curves *c = &backups->run->record.curves;
	double each_s = c->n_iterations > 0 ? (double)c->iterations[c->n_iterations - 1].real_s : 0;
	double most_s = 0;

	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *m = &backups->members->list[i];
		int to = phase_targets_stage(backups->planning, phase, i);

		if (member_is_replica(m) && is_due(backups, phase, m))
			most_s = fmax(most_s, fetch_s(backups, m, to));
	}
	return EARLIEST + (each_s > 0 ? (uint64_t)fmin(1e9, 2 * most_s / each_s) : 0);
}

/* Returns true if a node can still move to its stage of the present phase. */
static bool has_moves(const struct backups *backups)
{
	const struct run *run = backups->run;

	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *m = &backups->members->list[i];

		if (member_is_replica(m) && is_due(backups, run->wanted.phase, m) &&
		    !has_failed(run, m))
			return true;
	}
	return false;
}

/* Returns true if nodes should fetch their copies for the next phase now. A node can have only one
 * copy at a time. Fetches that begin too early would therefore stop moves of the present phase. */
static bool next_is_near(const struct backups *backups)
{
	const struct run *run = backups->run;
	const struct skip_schedule *s = &run->wanted.schedule;
	uint32_t next = run->wanted.phase + 1;
	uint64_t lead;

	if (next >= s->n ||
	    (run->wanted.stack && s->phases[next].from >= skip_phases_stacks_at(run)))
		return false;
	lead = has_moves(backups) ? EARLIEST : find_lead(backups, next);
	return run->iteration + lead >= s->phases[next].from;
}

/* Finds the phase for which nodes fetch copies now. Returns false if there is none. */
static bool find_phase(const struct backups *backups, uint32_t *phase)
{
	if (!phase_moves_are_planned(backups->planning->targets.state) || stacking_is_near(backups))
		return false;
	*phase = backups->run->wanted.phase + (next_is_near(backups) ? 1 : 0);
	return backups->planning->targets.without_plan != *phase + 1;
}

bool phase_moves_pending(const struct backups *backups)
{
	uint32_t phase = 0;
	bool moves = find_phase(backups, &phase);

	for (uint32_t i = 0; moves && i < backups->members->n; i++)
		if (is_due(backups, phase, &backups->members->list[i]))
			return true;
	return false;
}

/* ---- copies ---- */

/* Lets m give up a copy that m keeps for another purpose, so that m can fetch the copy for its
 * move. If another node has a copy of the same stage, releases m's copy. Otherwise makes another
 * node fetch a copy of that stage. */
static void free_node(struct backups *backups, struct member *m, uint32_t phase)
{
	struct members *members = backups->members;

	for (uint32_t i = 0; i < members->n; i++) {
		struct member *o = &members->list[i];

		if (o == m || o->copy.stage != m->copy.stage)
			continue;
		if (copy_usable(backups->run, o, m->copy.stage))
			copies_release(members, m);
		return; /* o is still fetching its copy, so m keeps m's own copy */
	}
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *o = &members->list[i];

		if (o->state == MEMBER_LIVE && !o->is_marked && o->copy.stage < 0 &&
		    !is_due(backups, phase, o) && !has_failed(backups->run, o) &&
		    member_stage(backups->run, o) != m->copy.stage &&
		    copy_fits(backups->run, o, m->copy.stage) &&
		    copies_fetch(members, o, m->copy.stage))
			return;
	}
}

static void get_copy(struct backups *backups, struct member *m, uint32_t phase)
{
	struct run *run = backups->run;
	int to = phase_targets_stage(backups->planning, phase, m->id);

	if (m->copy.stage == to) {
		copies_use_again(run, m, to);
		m->copy.purpose = COPY_FOR_MOVE;
	} else if (m->copy.stage >= 0 && m->copy.purpose == COPY_FOR_MOVE) {
		copies_release(backups->members, m);
	} else if (m->copy.stage >= 0) {
		free_node(backups, m, phase);
	} else if (is_fetching(run, m, to) && copies_fetch(backups->members, m, to)) {
		m->copy.purpose = COPY_FOR_MOVE;
		note(run, NOTE_EVENT, m->id, 0, "n%02u fetches S%d, to which it will move from S%d",
		     m->id, to, member_stage(run, m));
	}
}

/* ---- the exchange ---- */

/* Returns a replica that stays in the stage during the exchange; NULL: there is none. */
static const struct member *stayer(const struct members *members, const int *to, int stage)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if (m->state == MEMBER_LIVE && !m->is_marked &&
		    member_stage(members->run, m) == stage && to[i] == stage)
			return m;
	}
	return NULL;
}

/* Changes the list of moves so that a replica stays in each stage. Returns false if no replica of
 * some stage can stay. */
static bool keep_stayers(const struct members *members, int *to)
{
	for (int s = 0; s < members->run->cluster->n_stages; s++) {
		for (uint32_t i = 0; !stayer(members, to, s) && i < members->n; i++)
			if (members->list[i].state == MEMBER_LIVE && !members->list[i].is_marked &&
			    member_stage(members->run, &members->list[i]) == s)
				to[i] = s;
		if (!stayer(members, to, s))
			return false;
	}
	return true;
}

/* Keeps nodes from entering or leaving stage 0, because the number of data nodes has to divide
 * the batch. */
static void keep_data_nodes(const struct members *members, int *to)
{
	for (uint32_t i = 0; i < members->n; i++) {
		int stage = member_stage(members->run, &members->list[i]);

		if (to[i] == 0 || stage == 0)
			to[i] = stage;
	}
}

/* Returns the stage that m will have after the exchange. A replica moves only with a complete copy.
 * An absent or marked node moves without a copy. */
static int stage_after(const struct backups *backups, uint32_t phase, const struct member *m)
{
	const struct run *run = backups->run;
	int stage = member_stage(run, m), to = phase_targets_stage(backups->planning, phase, m->id);

	if (!is_due(backups, phase, m))
		return stage;
	if (member_is_replica(m))
		return m->state == MEMBER_LIVE && !m->is_marked && has_copy(run, m, to) ? to
											 : stage;
	return !member_alive(m) || m->is_marked ? to : stage;
}

/* Fills in the stages after the exchange. Returns false if no replica moves. */
static bool list_moves(const struct backups *backups, uint32_t phase, int *to)
{
	const struct members *members = backups->members;

	for (uint32_t i = 0; i < members->n; i++)
		to[i] = stage_after(backups, phase, &members->list[i]);
	if (!keep_stayers(members, to))
		return false;
	if (!cluster_may_have_stages(backups->run->cluster, to))
		keep_data_nodes(members, to);
	if (!cluster_may_have_stages(backups->run->cluster, to))
		return false;
	for (uint32_t i = 0; i < members->n; i++)
		if (member_is_replica(&members->list[i]) &&
		    to[i] != member_stage(backups->run, &members->list[i]))
			return true;
	return false;
}

/* Returns true if the exchange can still take place, because its nodes have their copies and a
 * replica stays in each stage. */
static bool is_possible(const struct backups *backups)
{
	const struct exchange *x = &backups->planning->targets.exchange;
	const struct run *run = backups->run;

	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *m = &backups->members->list[i];

		if (x->to[i] == member_stage(run, m))
			continue;
		if (member_is_replica(m)
			    ? m->state != MEMBER_LIVE || m->is_marked || !has_copy(run, m, x->to[i])
			    : member_alive(m) && !m->is_marked)
			return false;
	}
	for (int s = 0; s < run->cluster->n_stages; s++)
		if (!stayer(backups->members, x->to, s))
			return false;
	return true;
}

static void drop_exchange(struct backups *backups)
{
	if (!phase_targets_drop(backups->planning))
		return;
	note(backups->run, NOTE_WARNING, -1, 0,
	     "nodes keep their stages until another exchange: a node or a copy was lost");
	replan(backups->planning, "an exchange of stages that became impossible");
}

/* Shows the operator the reason why a working node will move. why: the reason; "": the node will
 * not move. */
static void show_move(struct member *m, const char *why)
{
	if (m->state != MEMBER_LIVE || strcmp(m->why, why) == 0)
		return;
	snprintf(m->why, sizeof(m->why), "%s", why);
	m->shown.is_stale = true;
}

/* If m keeps a copy of the stage to which it will move, sets the move as the purpose of the
 * copy. */
static void mark_copy(const struct backups *backups, struct member *m, uint32_t phase)
{
	uint64_t from = backups->run->wanted.schedule.phases[phase].from;
	char why[64];

	m->copy.purpose = COPY_FOR_MOVE;
	if (from > backups->run->iteration)
		snprintf(why, sizeof(why), "moves to S%d with it%llu", m->copy.stage,
			 (unsigned long long)from);
	else
		snprintf(why, sizeof(why), "moves to S%d soon", m->copy.stage);
	show_move(m, why);
}

void phase_moves_turn(struct backups *backups)
{
	struct run *run = backups->run;
	uint32_t phase = 0;
	bool moves;

	if (backups->planning->targets.state == PHASE_MOVES_OFF ||
	    run->now_us < backups->standbys.next_us || run->phase == PHASE_GATHERING ||
	    run->phase == PHASE_REDUCING || run->phase == PHASE_STALLED)
		return;
	phase_targets_turn(backups->planning);
	if (backups->planning->targets.state == PHASE_MOVES_PREPARED && !is_possible(backups))
		drop_exchange(backups);
	moves = find_phase(backups, &phase);
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];

		if (moves && is_due(backups, phase, m)) {
			if (m->copy.stage == phase_targets_stage(backups->planning, phase, i))
				mark_copy(backups, m, phase);
		} else if (m->copy.purpose == COPY_FOR_MOVE) {
			/* without this purpose, the copy may be released */
			m->copy.purpose = COPY_FOR_SAFETY;
			show_move(m, "");
		}
	}
}

void phase_moves_fetch(struct backups *backups)
{
	struct run *run = backups->run;
	uint32_t phase;

	if (run->committed == 0 || backups->standbys.lacks || !find_phase(backups, &phase))
		return;
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];

		if (is_due(backups, phase, m) && m->state == MEMBER_LIVE && !m->is_marked &&
		    member_stage(run, m) != phase_targets_stage(backups->planning, phase, i) &&
		    !stacking_needs(run, m))
			get_copy(backups, m, phase);
	}
}

void phase_moves_prepare(struct backups *backups)
{
	struct run *run = backups->run;
	struct exchange *x = &backups->planning->targets.exchange;
	uint32_t phase;
	bool begins, fetch = false;

	if (backups->planning->targets.state != PHASE_MOVES_IDLE || !find_phase(backups, &phase) ||
	    phase != run->wanted.phase)
		return;
	begins = run->wanted.schedule.phases[phase].from == run->iteration + 1;
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];
		int to = phase_targets_stage(backups->planning, phase, m->id);

		if (!is_due(backups, phase, m))
			continue;
		if (member_is_replica(m) && member_stage(run, m) == to)
			m->move.home = to;
		else
			fetch = fetch || (member_is_replica(m) && is_fetching(run, m, to));
	}
	if ((fetch && !begins && run->iteration < x->at + PATIENCE) ||
	    !list_moves(backups, phase, x->to))
		return;
	x->number++;
	x->at = run->iteration + 1;
	phase_targets_apply(backups->planning, PHASE_MOVES_PREPARE);
	replan(backups->planning, "nodes move to their stages of this phase");
}

static void exchange_stages(struct backups *backups)
{
	struct run *run = backups->run;
	struct exchange *x = &backups->planning->targets.exchange;
	int was[MSG_NODES];

	for (uint32_t i = 0; i < backups->members->n; i++)
		was[i] = run->cluster->nodes[i].stage;
	cluster_set_stages(run->cluster, x->to);
	backups->planning->pending->exchange = 0;
	phase_targets_apply(backups->planning, PHASE_MOVES_EXCHANGE);
	for (uint32_t i = 0; i < backups->members->n; i++) {
		struct member *m = &backups->members->list[i];

		if (x->to[i] == was[i])
			continue;
		m->move.home = x->to[i];
		m->shown.is_stale = true;
		note(run, NOTE_EVENT, m->id, member_is_replica(m) ? 'R' : 0,
		     "n%02u moves from S%d to S%d with it%llu", m->id, was[i], x->to[i],
		     (unsigned long long)x->at);
		if (member_is_replica(m))
			member_apply(run, m, EVENT_LEAVE, "moves to another stage");
		else
			record_node(run, m);
	}
	resume_save(backups->members);
	for (uint32_t i = 0; i < backups->members->n; i++)
		if (x->to[i] != was[i] && member_alive(&backups->members->list[i]) &&
		    !backups->members->list[i].is_marked)
			stage_moves_load(backups->members, &backups->members->list[i], x->to[i]);
	backups->members->moved_us += MORE_US;
}

bool phase_moves_awaited(struct backups *backups, bool restarts)
{
	const struct planning *planning = backups->planning;
	const struct exchange *x = &planning->targets.exchange;
	bool complete = true;

	if (planning->targets.state != PHASE_MOVES_PREPARED)
		return false;
	if (restarts || x->at != backups->run->committed + 1 || !is_possible(backups)) {
		drop_exchange(backups);
		return false;
	}
	if (!planning->pending || planning->pending->exchange != x->number) {
		if (planning->wanted_id != 0)
			return true;
		drop_exchange(backups);
		return false;
	}
	for (uint32_t i = 0; i < backups->members->n; i++) {
		const struct member *m = &backups->members->list[i];

		complete = complete && (x->to[i] == member_stage(backups->run, m) ||
					!member_is_replica(m) ||
					copy_usable(backups->run, m, x->to[i]));
	}
	if (!phase_targets_fit(planning, planning->pending) ||
	    (!complete && !stage_moves_settle(backups->members, backups->run->committed_us))) {
		drop_exchange(backups);
		return false;
	}
	if (complete)
		exchange_stages(backups);
	return true;
}
