/* iteration.c - runs an iteration through its phases, and recovers from a death in each phase.
 *
 *     begin -> COMPUTING -> (every microbatch done) REDUCING -> (every replica has the sum)
 *       -> commit, written durably and then announced -> EVALUATING at times -> begin
 *
 * If a node dies while COMPUTING or REDUCING, its gradients are lost. Other replicas of its stage
 * rerun the node's microbatches. Gradients that other nodes counted stay counted.
 *
 * A death changes nothing after every survivor of the stage has reported its sum, because that sum
 * contains the dead node's part. If the sums restart later, other replicas first rerun the dead
 * node's part. After the commit is recorded, the survivors apply it, even if another node dies. */
#include "controller/iteration/iteration.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/drain.h"
#include "controller/iteration/evaluate.h"
#include "controller/iteration/iteration_record.h"
#include "controller/iteration/plan_message.h"
#include "controller/iteration/recover.h"
#include "controller/iteration/reroute.h"
#include "controller/iteration/sums.h"
#include "controller/members/admission.h"
#include "controller/members/failures.h"
#include "controller/members/finish.h"
#include "controller/members/member.h"
#include "controller/members/saved_state.h"
#include "controller/network/formats.h"
#include "controller/planning/drift.h"
#include "controller/planning/replan.h"
#include "controller/planning/request.h"
#include "controller/planning/skip_phases.h"
#include "controller/planning/spares.h"
#include "controller/run/disk.h"
#include "controller/run/journal.h"
#include "controller/run/phase.h"
#include "controller/run/record.h"
#include "controller/trust/exclude.h"
#include "controller/weights/checkpoints.h"
#include "controller/weights/copies.h"
#include "controller/weights/first_weights.h"
#include "controller/weights/phase_moves.h"
#include "controller/weights/rebalance.h"
#include "controller/weights/restore.h"
#include "controller/weights/stacking.h"
#include "controller/weights/stage_moves.h"

/* Limits of a plausible loss. A cross entropy is negative only by rounding. A model that guesses
 * one of a million tokens has a cross entropy of 14. */
static const float LEAST_LOSS = -0.1f, MOST_LOSS = 1e4f;

enum { REPLAN_AGAIN_US = 5000000, CUT_OFF_PATIENCE_US = 5000000 };

/* Turns the joiners that hold the weights of the last commit into replicas. Returns true if at
 * least one of these joiners took no part in the sums until now. If `computing`, the iteration
 * has begun, and the joiners take part in its sums, but compute nothing. */
static bool admit_joiners(struct planning *planning, bool computing)
{
	const struct member *joined = NULL;
	bool any = false;

	for (uint32_t i = 0; i < planning->members->n; i++) {
		struct member *m = &planning->members->list[i];

		if (!member_joins(planning->run, m))
			continue;
		any = any || !member_is_replica(m);
		if (!computing)
			spares_admit(planning->members, m);
		member_apply(planning->run, m, computing ? EVENT_JOIN_SUMS : EVENT_ADMIT,
			     computing ? NULL : "");
		copies_release(planning->members, m);
		if (computing)
			continue; /* the joiner computes only after the next commit */
		if (!planned_uses(planning->pending, m->id) &&
		    (!joined || spares_wait(planning->members, joined)))
			joined = m;
		note(planning->run, NOTE_EVENT, m->id, 'R',
		     "n%02u S%d joined with the weights of it%llu", m->id,
		     member_stage(planning->run, m), (unsigned long long)planning->run->committed);
	}
	if (joined)
		replan_joined(planning, joined);
	return any;
}

/* ---- reducing ---- */

/* Orders the replicas to begin the sums that were not ordered earlier (sums.h). Sums that were
 * ordered earlier continue, and may be complete already. If a joiner takes part, all sums start
 * again, because they must include the joiner. */
static void begin_reducing(struct iteration *it)
{
	if (admit_joiners(it->planning, true))
		sums_forget(it);
	it->run->progress++;
	it->progress.reduce_us = it->progress.reduced_us = it->run->now_us;
	sums_order_rest(it);
	set_phase(it->run, PHASE_REDUCING);
	commit_when_reduced(it);
}

/* ---- beginning ---- */

static void retire_marked(struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++) {
		struct member *m = &members->list[i];

		if (!m->is_marked || !member_is_replica(m) ||
		    planned_uses(members->run->plan, m->id))
			continue;
		member_apply(members->run, m, EVENT_RETIRE,
			     m->move.drain == DRAIN_NOT ? "marked failed by the operator" : NULL);
	}
}

/* Returns the node's tasks in the order of their predicted starts. Two microbatches may arrive at a
 * node at almost the same time. Without this order, a millisecond of jitter would decide which one
 * runs first, and the iteration could take much longer than predicted. */
static struct msg_rank *ranks_for(const struct simulation *trace, uint16_t node, uint32_t *n)
{
	struct msg_rank *ranks = alloc_array((size_t)trace->n_tasks, sizeof(*ranks));

	*n = 0;
	for (int k = 0; k < trace->n_tasks; k++) {
		const struct sim_task *t = &trace->tasks[k];

		if (t->node == node)
			ranks[(*n)++] = (struct msg_rank){ (uint32_t)t->microbatch,
							   (uint8_t)t->kind };
	}
	return ranks;
}

/* Sends the plan to every replica that does not have it. */
static void send_plan(struct iteration *it)
{
	struct route *routes = alloc_array(it->routes.n, sizeof(*routes));
	struct msg m = { .type = MSG_PLAN };

	for (uint32_t i = 0; i < it->routes.n; i++)
		routes[i] = it->routes.microbatches[i].route;
	for (uint32_t i = 0; i < it->members->n; i++) {
		struct member *w = &it->members->list[i];
		struct msg_rank *ranks;
		uint32_t n;

		if (!member_is_replica(w) || w->assigned.plan_epoch == it->run->epoch)
			continue;
		ranks = ranks_for(it->run->plan->trace, w->id, &n);
		m.u.plan = (struct msg_plan){ it->run->epoch, it->routes.n, routes, n, ranks };
		if (member_send(it->run, w, &m) == 0)
			w->assigned.plan_epoch = it->run->epoch;
		free(ranks);
	}
	free(routes);
}

/* Returns true if the next iteration can follow plan p, which may be NULL. */
static bool can_follow(const struct iteration *it, const struct planned *p)
{
	return p && replan_usable(it->members, p) &&
	       !skip_phases_forbid(it->run, (uint32_t)p->plan->path_length,
				   (uint32_t)p->plan->skip_share);
}

/* Returns true if the next iteration can use the plan in force while agents are still connecting
 * for the pending plan. Both plans must have the same skip ratio and formats, so that the run
 * loses nothing but speed in this iteration. */
static bool may_postpone(const struct iteration *it)
{
	const struct planned *p = it->planning->pending, *now = it->run->plan;

	return !it->redo && can_follow(it, now) && p->exchange == 0 &&
	       p->plan->path_length == now->plan->path_length &&
	       p->plan->skip_share == now->plan->skip_share &&
	       formats_equal(&p->formats, &now->formats);
}

static bool take_pending(struct iteration *it)
{
	struct planned *p = it->planning->pending;
	struct error err;

	if (preparation_awaited(it->planning) && may_postpone(it))
		return !skip_phases_wait(it->planning);

	if (it->redo && !can_follow(it, p))
		/* an attempt needs a new epoch, or agents would confuse it with the previous
		 * attempt */
		return false;
	it->redo = false;
	if (can_follow(it, p)) {
		it->promise = (struct promise){
			.due = it->run->plan != NULL,
			.predicted_s = p->plan->predicted.iteration_s,
			.before_s = it->run->plan ? it->run->plan->plan->predicted.iteration_s : 0,
		};
		snprintf(it->promise.what, sizeof(it->promise.what), "%s", p->reason);
		planned_free(it->run->plan);
		it->run->plan = p;
		it->planning->pending = NULL;
		p->epoch = ++it->run->epoch;
		p->iteration = it->run->committed + 1;
		retire_marked(it->members);
		if (record_plan(it->run, p, &err) != 0)
			controller_unrecorded(it->members, err.text);
		consoles_plan(it, p);
		return true;
	}
	return can_follow(it, it->run->plan) &&
	       !skip_phases_wait(it->planning);
}

static void begin_progress(struct iteration *it)
{
	it->progress.n_events = it->progress.n_shown = it->progress.ended = 0;
	number_set_clear(&it->progress.events_seen);
	it->progress.collisions = 0;
	it->progress.wait_s = it->progress.busy_s = 0;
	it->progress.started_us = it->progress.last_backward_us = it->run->now_us;
	sums_forget(it);
	it->n_differing = 0;
	it->run->progress++;
}

/* Agents exchange an iteration's tensors in the formats of its plan. A restarted attempt keeps the
 * formats with which the iteration began, even under a restarted controller. Otherwise agents could
 * receive tensors of one iteration in two formats. */
static void take_formats(struct iteration *it)
{
	if (it->run->iteration == it->run->committed + 1 ||
	    formats_equal(&it->run->plan->formats, &it->run->cluster->formats))
		return;
	formats_apply(it->members, &it->run->plan->formats);
	resume_save(it->members);
	replan_baseline(it->planning);
}

static void begin_iteration(struct iteration *it)
{
	struct msg start = { .type = MSG_START };
	bool restarts = it->redo;
	struct error err;

	if (!take_pending(it)) {
		bool entered = it->run->phase != PHASE_PLANNING;

		if (entered)
			set_phase(it->run, PHASE_PLANNING);
		if (!skip_phases_postpone(it->planning) && !it->planning->wanted_id &&
		    (entered || it->run->now_us - it->planning->replanned_us > REPLAN_AGAIN_US))
			replan(it->planning, "the plan uses nodes that have left");
		return;
	}
	if (it->run->phase == PHASE_FINISHED)
		return; /* the plan could not be recorded */
	take_formats(it);
	it->run->iteration = it->run->committed + 1;
	if (routes_from_plan(&it->routes, it->run->plan->plan, it->run->training.shard_of,
			     it->run->training.n_shards, it->run->training.per_shard,
			     it->run->first_attempt, &err) != 0) {
		controller_finish(it->members, 1, err.text);
		return;
	}
	send_plan(it);
	stacking_turn(it->backups);
	phase_moves_fetch(it->backups);
	it->reduce_attempt = it->run->first_attempt;
	it->progress.voided = restarts ? it->progress.voided + it->progress.ended : 0;
	begin_progress(it);
	if (it->progress.rerouted)
		reroute_show(it);
	it->progress.rerouted = false;
	start.u.start = (struct msg_start){ it->run->iteration, it->run->epoch,
					    it->run->training.per_shard,
					    first_weights_position(it->run),
					    (uint8_t)it->run->cluster->formats.wire };
	send_replicas(it->members, &start);
	sums_order_ahead(it);
	set_phase(it->run, PHASE_COMPUTING);
	skip_phases_turn(it->planning, stacking_ready(it->backups));
	phase_moves_prepare(it->backups);
}

void iteration_admit_joiners(struct planning *planning)
{
	admit_joiners(planning, false);
}

/* Makes a draining node hand its stage over. Returns false if no draining node can do this now. */
static bool hand_over(struct iteration *it)
{
	const struct member *leaver = drain_last_replica(it->backups);

	if (!leaver)
		return false;
	it->progress.ended = 0; /* the counted tasks belong to an iteration that is committed */
	recover_begin(it->backups, leaver);
	return true;
}

/* Returns true if an iteration that had begun was voided and has to be computed again. A pause or a
 * step then takes effect when this iteration has ended. Returns false after a resume or a return to
 * a checkpoint, because no iteration had begun. */
static bool is_under_way(const struct iteration *it)
{
	return it->redo && it->run->plan && it->run->iteration == it->run->committed + 1;
}

/* Moves nodes to other stages once their standby copies are complete. Returns true while the next
 * iteration must wait for a move. */
static bool moves_awaited(struct iteration *it)
{
	return phase_moves_awaited(it->backups, it->redo) || rebalance_awaited(it->backups) ||
	       stage_moves_balance(it->planning) || drain_awaited(it->backups);
}

void iteration_boundary(struct iteration *it)
{
	bool pauses = it->run->wanted.pause && !it->run->wanted.step && !is_under_way(it);

	if (it->run->ending.stopping || run_is_done(it->run)) {
		if (!checkpoint_last(it->backups) && !offsite_awaited(it->backups))
			controller_finish(it->members, it->run->ending.exit_status,
					  it->run->ending.stopping ? it->run->ending.stopping
								   : "done");
		return;
	}
	if (pauses && it->run->phase != PHASE_PAUSED)
		set_phase(it->run, PHASE_PAUSED);
	if (disk_waits(it->run) || moves_awaited(it)) {
		if (!pauses)
			set_phase(it->run, PHASE_PLANNING);
		return;
	}
	if (hand_over(it) || pauses)
		return;
	drift_turn(it->planning);
	if (replan_awaited(it->planning) ||
	    (preparation_awaited(it->planning) && can_follow(it, it->planning->pending) &&
	     !may_postpone(it)) ||
	    (it->planning->pending && disk_is_locked(it->run))) {
		set_phase(it->run, PHASE_PLANNING);
		return;
	}
	if (!is_under_way(it))
		it->run->wanted.step = false;
	begin_iteration(it);
}

/* ---- computing ---- */

static void keep_event(struct iteration *it, const struct msg_task_event *e)
{
	struct progress *p = &it->progress;

	array_reserve(&p->events, &p->room_events, p->n_events + 1, sizeof(*p->events));
	p->events[p->n_events++] = *e;
}

static void task_ended(struct iteration *it, struct microbatch *mb, const struct msg_task_event *e)
{
	if (e->counted)
		routes_count(&it->routes, e->node, e->microbatch, e->kind);
	it->run->progress += e->counted;
	if (e->kind == TASK_BACKWARD && e->at_us > it->progress.last_backward_us)
		it->progress.last_backward_us = e->at_us;
	if (e->kind == TASK_LOSS)
		mb->loss = e->loss;
}

/* Marks the microbatch as done when its chain of tasks has ended and substitutes have run all
 * backward passes that they owed. By then the node of every hop has counted its gradient. */
static void mark_if_done(struct iteration *it, struct microbatch *mb)
{
	if (mb->done || !routes_chain_ended(mb) || mb->owed_backward)
		return;
	mb->done = true;
	it->routes.done++;
}

/* Returns true if the event belongs to a task that the route assigns to the node. */
static bool is_of_route(const struct microbatch *mb, const struct msg_task_event *e)
{
	if (e->attempt > mb->route.attempt)
		return false;
	return e->attempt < mb->route.attempt || routes_hop(mb, e->node) >= 0;
}

/* Returns a number that is unique to the event. */
static uint64_t event_number(const struct msg_task_event *e)
{
	_Static_assert(MSG_NODES <= 1 << 10 && MSG_MICROBATCHES <= 1 << 16, "they fit");
	return UINT64_C(1) << 63 | (uint64_t)e->node << 53 | (uint64_t)e->kind << 50 |
	       (uint64_t)e->type << 48 | (uint64_t)e->microbatch << 32 | e->attempt;
}

/* Counts a collision if the task that starts had to wait. The first forward task of a microbatch
 * never counts. */
static void note_collision(struct iteration *it, const struct microbatch *mb,
			   const struct msg_task_event *e)
{
	if (e->type != WORK_STARTS || e->blocker == UINT32_MAX || e->at_us <= e->arrived_us ||
	    (e->kind == TASK_FORWARD && e->node == mb->route.nodes[0]))
		return;
	it->progress.collisions++;
	it->progress.wait_s += (double)(e->at_us - e->arrived_us) * 1e-6;
}

/* A recovery ends when a substitute starts the first task that is repeated. If the event reports
 * that start, records the end of the recovery. */
static void note_recovery(struct iteration *it, const struct microbatch *mb,
			  const struct msg_task_event *e)
{
	if (it->rerun_us == 0 || e->type != WORK_STARTS || e->attempt != mb->route.attempt ||
	    e->attempt <= it->run->first_attempt || e->node != mb->route.nodes[mb->replaced] ||
	    e->at_us < it->rerun_us)
		return;
	it->rerun_us = 0;
	record_recovery(it->run, "started", e->node, e->microbatch, e->at_us);
}

/* Responds to a count that m should not have made. If the microbatch has meanwhile been moved away
 * from m, the iteration restarts. Otherwise m is excluded. */
static void refuse_count(struct iteration *it, struct member *m, const struct microbatch *mb,
			 const struct msg_task_event *e)
{
	bool visits = routes_hop(mb, m->id) >= 0;

	if (mb->moved && e->attempt < mb->route.attempt && !visits) {
		note(it->run, NOTE_WARNING, m->id, 0,
		     "n%02u had counted m%02u before the task was moved to another node", m->id,
		     e->microbatch);
		request_restart(&it->run->requests, "a moved microbatch was counted twice");
		return;
	}
	note(it->run, NOTE_ALERT, m->id, 0, "n%02u reports that it counted m%02u%s", m->id,
	     e->microbatch, visits ? " again or out of turn" : ", which does not visit it");
	exclude_member(it->members, m, "counted a gradient that it must not count");
}

static void take_event(struct iteration *it, struct member *m, struct msg_task_event e)
{
	struct microbatch *mb;
	bool is_expected, is_repeated;

	if (e.microbatch >= it->routes.n || e.attempt < it->run->first_attempt)
		/* the event is void, because it belongs to an attempt under an earlier
		 * controller */
		return;
	if (!is_clock(e.at_us) || !is_clock(e.arrived_us))
		return;
	mb = &it->routes.microbatches[e.microbatch];
	e.node = m->id;
	e.blocker_node = m->id;
	/* Unexpected and repeated events are dropped, except the end of a task that counts a
	 * gradient or a loss. Such an end is checked below (routes_may_count), because the node
	 * may have counted twice. */
	is_expected = is_of_route(mb, &e);
	is_repeated = is_expected && !(e.type == WORK_ENDS && e.counted) &&
		      !number_set_add(&it->progress.events_seen, event_number(&e));
	if (!is_expected || is_repeated)
		admission_stray(it->run, m,
				"reports tasks that it was not given, or repeats reports");
	if (is_repeated || (!is_expected && e.type != WORK_ENDS))
		return;
	e.at_us += m->clock.offset_us;
	e.arrived_us += m->clock.offset_us;
	m->compute.slots = e.slots;
	m->shown.is_stale = true;
	note_collision(it, mb, &e);
	if (e.type == WORK_ENDS && e.kind == TASK_LOSS &&
	    !(e.loss > LEAST_LOSS && e.loss < MOST_LOSS)) {
		exclude_for_number(it->members, m, it->run->epoch,
				   "computed an impossible loss");
		return;
	}
	note_recovery(it, mb, &e);
	if (e.type == WORK_ENDS && e.counted &&
	    !routes_may_count(&it->routes, m->id, e.microbatch, e.kind)) {
		refuse_count(it, m, mb, &e);
		return;
	}
	drift_task(it->planning, m, &e, it->progress.started_us);
	it->run->progress +=
		routes_take(mb, e.node, e.attempt, (enum work_event)e.type, (enum task_kind)e.kind);
	if (e.type == WORK_ENDS) {
		it->progress.ended++;
		task_ended(it, mb, &e);
		mark_if_done(it, mb);
	}
	if (is_expected)
		keep_event(it, &e);
}

static bool all_done(const struct iteration *it)
{
	return it->routes.done == it->routes.n;
}

void iteration_report(struct iteration *it, struct member *m, const struct msg_report *r)
{
	if (!member_is_replica(m))
		m->heard.reported_while_dead_in = r->iteration;
	if (r->iteration != it->run->iteration || !member_is_replica(m) ||
	    it->run->iteration != it->run->committed + 1)
		return; /* the event belongs to an iteration that is over */
	for (uint32_t i = 0; i < r->n_events && member_is_replica(m); i++)
		take_event(it, m, r->events[i]);
	if (it->run->phase != PHASE_COMPUTING || requests_any(&it->run->requests))
		return; /* the loop must first carry out the queued requests (loop.c, finish.c) */
	if (it->run->plan->plan->overlap_sync)
		sums_order_counted(it);
	if (all_done(it))
		begin_reducing(it);
}

/* ---- recovering ---- */

static bool stage_has_sum(const struct members *members, int stage)
{
	for (uint32_t i = 0; i < members->n; i++)
		if (member_is_replica(&members->list[i]) &&
		    member_stage(members->run, &members->list[i]) == stage &&
		    !members->list[i].sum.is_done)
			return false;
	return true;
}

/* Returns true if every node on a route is a replica. The result is false if another node died
 * during the stall or during an earlier sum. */
static bool all_on_route(const struct iteration *it)
{
	bool visited[MSG_NODES];

	routes_visited(&it->routes, visited);
	for (uint32_t i = 0; i < it->members->n; i++)
		if (visited[i] && !member_is_replica(&it->members->list[i]))
			return false;
	return true;
}

/* Reruns the lost node's part of the iteration on other replicas. Returns false if the stage has
 * no other replica; the run then stalls. Also returns false if the run has ended. */
static bool rerun_without(struct iteration *it, struct member *gone)
{
	int n = reroute_without(it, gone);

	if (n > 0) {
		it->rerun_us = it->run->now_us;
		record_recovery(it->run, "rerun", gone->id, n, it->run->now_us);
		note(it->run, NOTE_EVENT, gone->id, 0,
		     "%d microbatches of it%llu run again without n%02u", n,
		     (unsigned long long)it->run->iteration, gone->id);
	}
	if (n < 0)
		recover_begin(it->backups, gone);
	/* The run has ended if the new routes could not be recorded. */
	return n >= 0 && it->run->phase != PHASE_FINISHED;
}

/* Begins the sums again. The new sums lack the gradients of dead nodes. If a dead node is still on
 * a route, other replicas therefore rerun its microbatches first.
 *
 * The search for dead nodes must precede the admission of joiners: a dead node may have returned
 * as a joiner, without the gradients that it had counted. */
void begin_reduction(struct iteration *it)
{
	bool visited[MSG_NODES];

	sums_forget(it);
	/* no route visits a dead node whose microbatches were moved to replicas already */
	routes_visited(&it->routes, visited);
	for (uint32_t i = 0; i < it->members->n; i++)
		if (visited[i] && !member_is_replica(&it->members->list[i]) &&
		    !rerun_without(it, &it->members->list[i]))
			return;
	if (all_done(it))
		begin_reducing(it);
	else
		set_phase(it->run, PHASE_COMPUTING);
}

/* Returns true if m was removed for a cut link and should not return yet, because another node has
 * a standby copy and can take the stage over. With m, the run would stop at the same link again. */
static bool is_replaced(const struct iteration *it, const struct member *m, int stage)
{
	return m->stuck.is_cut_off && copies_holder(it->members, stage, m) &&
	       it->run->now_us - it->backups->stall.since_us < CUT_OFF_PATIENCE_US;
}

bool iteration_readmit(struct iteration *it, struct member *m)
{
	int stage = m->weights.stage;

	if (it->run->phase != PHASE_STALLED || m->is_marked || member_is_restoring(m) ||
	    !member_holds(it->run, m, stage) || stage_replicas(it->members, stage, NULL) > 0 ||
	    is_replaced(it, m, stage) || !restore_averted(it->backups, stage))
		return false;
	/* While m was dead, the controller assigned m's stage to another node, and another stage
	 * to m. The two nodes now exchange their stages. */
	if (member_stage(it->run, m) != stage) {
		stage_moves_exchange(it->members, m, stage);
		resume_save(it->members);
		it->backups->stall.taken_over = true;
	}
	/* The node runs a new process, or lost this iteration's results when it read a
	 * checkpoint. */
	if (m->beat.iteration != it->run->iteration)
		it->backups->stall.taken_over = true;
	if (m->copy.stage >= 0 && !copy_expected(it->run, m, m->copy.stage))
		copies_release(it->members, m);
	member_apply(it->run, m, EVENT_REINSTATE, "");
	note(it->run, NOTE_EVENT, m->id, 'R', "n%02u is back with the last copy of S%d", m->id,
	     stage);
	if (m->heard.reported_while_dead_in == it->run->iteration ||
	    (replicas_everywhere(it->members) && !all_on_route(it)))
		it->backups->stall.taken_over = true;
	it->run->progress++;
	if (!replicas_everywhere(it->members) || it->backups->stall.taken_over)
		return true; /* recover_turn lets the run continue */
	if (it->backups->stall.in == PHASE_COMPUTING || it->backups->stall.in == PHASE_REDUCING) {
		/* The node received no reroutes while it counted as dead. */
		reroute_announce_all(it);
		begin_reduction(it);
	} else {
		set_phase(it->run, PHASE_PLANNING);
	}
	replan(it->planning, "a node came back");
	return true;
}

static void rerun_what_died(struct iteration *it, struct member *gone)
{
	it->run->progress++;
	if (rerun_without(it, gone))
		begin_reduction(it);
}

/* Returns true if the node has reported all gradients that it counted. A replica reports its counts
 * before its sum. A node that died may have counted more than it reported. */
static bool has_reported_counts(const struct iteration *it, const struct member *gone)
{
	return routes_lacking(&it->routes, gone->id) < 0;
}

/* Recovers from the death of m, depending on the phase.
 *
 * COMPUTING: m's part runs again on other nodes.
 *
 * REDUCING: m's part runs again unless it is safely in the sum. The part is safe if all replicas
 * of m's stage have reported the sum, at least two reports can be compared, and all of m's counts
 * are known.
 *
 * Between iterations: m's death costs no work.
 *
 * If every stage still has a replica, a plan without m is requested. */
void iteration_lost(struct iteration *it, struct member *m)
{
	if (it->run->phase != PHASE_GATHERING)
		failures_count(it->members, m);
	spares_replace(it->members, m);
	drain_keep(it->members, member_stage(it->run, m));
	switch (it->run->phase) {
	case PHASE_COMPUTING:
		rerun_what_died(it, m);
		break;
	case PHASE_REDUCING:
		if (stage_replicas(it->members, member_stage(it->run, m), NULL) > 0 &&
		    stage_has_sum(it->members, member_stage(it->run, m)) &&
		    commit_can_compare(it, member_stage(it->run, m)) && has_reported_counts(it, m))
			commit_when_reduced(it);
		else
			rerun_what_died(it, m);
		break;
	case PHASE_EVALUATING:
		if (replicas_everywhere(it->members))
			evaluation_begin(it);
		else
			recover_begin(it->backups, m);
		break;
	case PHASE_GATHERING:
		return;
	default:
		if (!replicas_everywhere(it->members))
			recover_begin(it->backups, m);
		break;
	}
	if (replicas_everywhere(it->members)) {
		replan(it->planning, "a node was lost");
		it->planning->recovery_plan = it->planning->wanted_id;
	}
}

double iteration_sums_took_s(const struct iteration *it)
{
	return 1e-6 * (double)(it->progress.reduced_us - it->progress.reduce_us);
}

void controller_stop(struct iteration *it, const char *why)
{
	bool is_second = it->run->ending.stopping && it->run->phase == PHASE_PAUSED;

	if (it->run->phase == PHASE_FINISHED)
		return;
	it->run->ending.stopping = why;
	if (is_second || it->run->phase == PHASE_GATHERING || it->run->phase == PHASE_STALLED) {
		controller_finish(it->members, 0, why);
		return;
	}
	it->evaluation.wanted = false;
	/* iteration_boundary ends the run in the first turn in which no work is in progress. */
	set_phase(it->run, PHASE_PAUSED);
}

void iteration_fini(struct iteration *it)
{
	routes_fini(&it->routes);
	free(it->progress.events);
	number_set_fini(&it->progress.events_seen);
	evaluation_fini(it);
}
