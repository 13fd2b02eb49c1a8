/* iteration.c - the phases of an iteration, and what happens when a node dies in one.
 *
 *     begin -> COMPUTING -> (every microbatch done) REDUCING -> (every replica has the sum)
 * decide: write the commit durably, then announce it -> EVALUATING now and then -> begin
 *
 * A death while COMPUTING or REDUCING: the microbatches whose gradients died with the node run
 * again over other replicas of its stage; what others counted stays counted. A death after
 * every survivor of its stage has the sum changes nothing, as long as that sum stands: it holds
 * the node's part. Where sums begin anew, that part runs again first. After the decision the
 * survivors commit, whoever dies.
 */
#include "controller/iteration/iteration.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "controller/controller.h"
#include "controller/history/disk.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/history/run_state.h"
#include "controller/iteration/commit.h"
#include "controller/iteration/evaluate.h"
#include "controller/iteration/reroute.h"
#include "controller/iteration/sums.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/operator/announce.h"
#include "controller/operator/command.h"
#include "controller/operator/journal.h"
#include "controller/planning/drift.h"
#include "controller/planning/request.h"
#include "controller/planning/replan.h"
#include "controller/trust/exclude.h"
#include "controller/weights/checkpoints.h"
#include "controller/weights/copies.h"
#include "controller/weights/rebalance.h"
#include "controller/weights/stage_moves.h"
#include "controller/weights/restore.h"

/* A cross entropy is not negative (but for rounding); a model that guesses among a million
 * tokens has 14. */
static const float LEAST_LOSS = -0.1f, MOST_LOSS = 1e4f;

enum { REPLAN_AGAIN_US = 5000000 };

/* Joiners whose weights are of this very commit take part from here on. */
static bool admit_joiners(struct controller *c, bool computing)
{
	bool any = false, live = false;

	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!member_joins(c, m))
			continue;
		any = any || !m->replica;
		m->replica = true;
		copies_release(c, m);
		if (computing)
			continue; /* LIVE once it has committed */
		members_set(c, m, NODE_LIVE, "");
		note(c, NOTE_EVENT, m->id, 'R', "n%02u S%d joined with the weights of it%llu",
		     m->id, member_stage(c, m), (unsigned long long)c->committed);
		live = true;
	}
	if (live)
		replan(c, "a node joined");
	return any;
}

/* ---- reducing ---- */

/* A joiner takes part from here on, so all begin anew with it. Those that were told sooner may be done. */
static void begin_reducing(struct controller *c)
{
	if (admit_joiners(c, true))
		sums_forget(c);
	c->steps++;
	c->progress.reduce_us = c->progress.reduced_us = c->now_us;
	sums_order_rest(c);
	set_phase(c, PHASE_REDUCING);
	commit_when_reduced(c);
}

/* ---- beginning ---- */

static void retire_marked(struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *m = &c->members[i];

		if (!m->marked || !m->replica || planned_uses(c->current, m->id))
			continue;
		m->replica = false;
		m->ready = false;
		members_set(c, m, NODE_FAILED, "marked failed by the operator");
	}
}

/* A node's order, in the run's microbatch numbers (a plan's ids are any; ours are their ranks).
 */
static struct msg_rank *ranks_for(const struct plan *p, uint16_t node, uint32_t *n)
{
	const struct plan_order *order = NULL;
	struct msg_rank *ranks;

	for (int o = 0; o < p->n_orders; o++)
		if (p->orders[o].node == node)
			order = &p->orders[o];
	*n = order ? (uint32_t)order->n_tasks : 0;
	ranks = calloc(*n + 1, sizeof(*ranks));
	for (uint32_t k = 0; ranks && k < *n; k++) {
		const struct plan_task *t = &order->tasks[k];
		uint32_t at = 0;

		while (at < (uint32_t)p->n_microbatches &&
		       p->microbatches[at].id != t->microbatch)
			at++;
		ranks[k].microbatch = at;
		ranks[k].kind = (uint8_t)t->kind;
	}
	return ranks;
}

/* To every replica that does not have it. */
static int send_plan(struct controller *c)
{
	struct msg_route *routes = malloc(c->routes.n * sizeof(*routes));
	struct msg m = { .type = MSG_PLAN };

	if (!routes)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->routes.n; i++)
		routes[i] = c->routes.microbatches[i].route;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *w = &c->members[i];
		struct msg_rank *ranks;
		uint32_t n;

		if (!w->replica || w->plan_epoch == c->epoch)
			continue;
		ranks = ranks_for(c->current->plan, w->id, &n);
		if (!ranks) {
			free(routes);
			return -ENOMEM;
		}
		m.u.plan = (struct msg_plan){ c->epoch, c->routes.n, routes, n, ranks };
		if (member_send(c, w, &m) == 0)
			w->plan_epoch = c->epoch;
		free(ranks);
	}
	free(routes);
	return 0;
}

static bool take_pending(struct controller *c)
{
	struct planned *p = c->pending;
	struct error err;

	if (c->redo && !(p && replan_usable(c, p)))
		return false; /* the same epoch would be taken for the same try */
	c->redo = false;
	if (p && replan_usable(c, p)) {
		c->receipt = (struct receipt){
			.due = c->current != NULL,
			.said_s = p->plan->predicted.iteration_s,
			.before_s = c->current ? c->current->plan->predicted.iteration_s : 0,
		};
		snprintf(c->receipt.what, sizeof(c->receipt.what), "%s", p->reason);
		planned_free(c->current);
		c->current = p;
		c->pending = NULL;
		p->epoch = ++c->epoch;
		p->iteration = c->committed + 1;
		retire_marked(c);
		if (record_plan(c, p, &err) != 0)
			controller_unrecorded(c, err.text);
		consoles_plan(c, p);
		return true;
	}
	return c->current && replan_usable(c, c->current);
}

static void begin_progress(struct controller *c)
{
	c->progress.n_events = c->progress.told = c->progress.ended = 0;
	number_set_clear(&c->progress.told_of);
	c->progress.collisions = 0;
	c->progress.wait_s = c->progress.busy_s = 0;
	c->progress.started_us = c->progress.last_backward_us = c->now_us;
	sums_forget(c);
	c->n_differing = 0;
	c->steps++;
}

static void begin_iteration(struct controller *c)
{
	struct msg start = { .type = MSG_START };
	bool anew = c->redo;
	struct error err;

	if (!take_pending(c)) {
		bool entered = c->phase != PHASE_PLANNING;

		if (entered)
			set_phase(c, PHASE_PLANNING);
		if (!c->plan_wanted && (entered || c->now_us - c->replanned_us > REPLAN_AGAIN_US))
			replan(c, "the plan uses nodes that are gone");
		return;
	}
	if (c->phase == PHASE_FINISHED)
		return; /* the plan could not be recorded */
	c->iteration = c->committed + 1;
	if (routes_from_plan(&c->routes, c->current->plan, c->shard_of, c->n_shards,
			     c->per_shard, c->first_attempt, &err) != 0) {
		controller_finish(c, 1, err.text);
		return;
	}
	if (send_plan(c) != 0) {
		controller_finish(c, 1, "out of memory");
		return;
	}
	c->reduce_attempt = c->first_attempt;
	c->progress.voided = anew ? c->progress.voided + c->progress.ended : 0;
	begin_progress(c);
	if (c->progress.rerouted)
		reroute_show(c);
	c->progress.rerouted = false;
	start.u.start = (struct msg_start){ c->iteration, c->epoch, c->per_shard };
	send_replicas(c, &start);
	sums_order_ahead(c);
	set_phase(c, PHASE_COMPUTING);
}

void iteration_admit_joiners(struct controller *c)
{
	admit_joiners(c, false);
}

void iteration_boundary(struct controller *c)
{
	if (c->ending.stopping || run_is_done(c)) {
		if (!checkpoint_last(c))
			controller_finish(c, c->ending.exit_status, c->ending.stopping ? c->ending.stopping : "done");
		return;
	}
	if (c->pause && !c->step && !c->redo) { /* one that begins anew has not ended */
		if (c->phase != PHASE_PAUSED)
			set_phase(c, PHASE_PAUSED);
		return;
	}
	if (disk_full(c) || rebalance_awaited(c) || stage_moves_balance(c)) {
		set_phase(c, PHASE_PLANNING);
		return;
	}
	drift_turn(c);
	if (replan_awaited(c)) {
		set_phase(c, PHASE_PLANNING);
		return;
	}
	if (!c->redo)
		c->step = false;
	begin_iteration(c);
}

/* ---- computing ---- */

static void keep_event(struct controller *c, const struct msg_task_event *e)
{
	struct progress *p = &c->progress;

	if (!array_grow(&p->events, &p->room_events, p->n_events + 1, sizeof(*p->events)))
		return;
	p->events[p->n_events++] = *e;
}

static void task_ended(struct controller *c, struct microbatch *mb,
		       const struct msg_task_event *e)
{
	if (e->counted &&
	    routes_count(&c->routes, e->node, e->microbatch, e->kind) != 0)
		controller_finish(c, 1, "out of memory");
	c->steps += e->counted;
	if (e->kind == TASK_BACKWARD && e->at_us > c->progress.last_backward_us)
		c->progress.last_backward_us = e->at_us;
	if (e->kind == TASK_LOSS) {
		mb->loss = e->loss;
		mb->has_loss = true;
	}
}

/* A gradient that is home has been counted all the way, except at hops that owe their backward. */
static void look_whether_done(struct controller *c, struct microbatch *mb)
{
	if (mb->done || !routes_home(mb) || mb->owed_backward)
		return;
	mb->done = true;
	c->routes.done++;
}

/* Whether it is of a task that its node was told of. */
static bool is_of_route(const struct microbatch *mb, const struct msg_task_event *e)
{
	if (e->attempt > mb->route.attempt)
		return false;
	return e->attempt < mb->route.attempt || routes_hop(mb, e->node) >= 0;
}

/* A number for every event that there can be. */
static uint64_t number_of(const struct msg_task_event *e)
{
	_Static_assert(MSG_NODES <= 1 << 10 && MSG_MICROBATCHES <= 1 << 16, "they fit");
	return UINT64_C(1) << 63 | (uint64_t)e->node << 53 | (uint64_t)e->kind << 50 | (uint64_t)e->type << 48 |
	       (uint64_t)e->microbatch << 32 | e->attempt;
}

static void take_event(struct controller *c, struct member *m, struct msg_task_event e)
{
	struct microbatch *mb;
	bool told, again;

	if (e.microbatch >= c->routes.n || e.attempt < c->first_attempt)
		return; /* of an earlier controller's try at this iteration: void */
	if (!is_clock(e.at_us) || !is_clock(e.arrived_us))
		return;
	mb = &c->routes.microbatches[e.microbatch];
	e.node = m->id;
	e.blocker_node = m->id;
	/* What is not of this iteration's tasks, or said twice, is not kept: only how a task ended may still matter, and
	 * that one was counted twice does. */
	told = is_of_route(mb, &e);
	again = told && !(e.type == WORK_ENDS && e.counted) && !number_set_add(&c->progress.told_of, number_of(&e));
	if (!told || again)
		admission_stray(c, m, "tells of tasks that it was not given, or again and again");
	if (again || (!told && e.type != WORK_ENDS))
		return;
	e.at_us += m->clock_offset_us;
	e.arrived_us += m->clock_offset_us;
	m->slots = e.slots;
	m->changed = true;
	if (e.type == WORK_STARTS && e.blocker != UINT32_MAX &&
	    !(e.kind == TASK_FORWARD && m->id == mb->nodes[0]) && e.at_us > e.arrived_us) {
		c->progress.collisions++;
		c->progress.wait_s += (double)(e.at_us - e.arrived_us) * 1e-6;
	}
	if (e.type == WORK_ENDS && e.kind == TASK_LOSS &&
	    !(e.loss > LEAST_LOSS && e.loss < MOST_LOSS)) {
		exclude_for_number(c, m, "computed a loss that cannot be");
		return;
	}
	if (c->rerun_us != 0 && e.type == WORK_STARTS && e.attempt == mb->route.attempt &&
	    e.attempt > c->first_attempt && m->id == mb->nodes[mb->replaced] && e.at_us >= c->rerun_us) {
		c->rerun_us = 0;
		record_recovery(c, "started", m->id, e.microbatch, e.at_us);
	}
	if (e.type == WORK_ENDS && e.counted &&
	    !routes_may_count(&c->routes, m->id, e.microbatch, e.kind)) {
		if (mb->moved && e.attempt < mb->route.attempt && routes_hop(mb, m->id) < 0) {
			note(c, NOTE_WARNING, m->id, 0, "n%02u had counted m%02u, which it was taken not to have begun",
			     m->id, e.microbatch);
			request_anew(&c->requests, "what had been moved was counted");
			return;
		}
		note(c, NOTE_ALERT, m->id, 0, "n%02u says it counted m%02u, which is not its own to count%s",
		     m->id, e.microbatch, routes_hop(mb, m->id) < 0 ? "" : " now");
		exclude_member(c, m, "counted what it must not");
		return;
	}
	drift_task(c, m, &e);
	c->steps += routes_take(mb, e.node, e.attempt, (enum work_event)e.type, (enum task_kind)e.kind);
	if (e.type == WORK_ENDS) {
		c->progress.ended++;
		task_ended(c, mb, &e);
		look_whether_done(c, mb);
	}
	if (told)
		keep_event(c, &e);
}

static bool all_done(const struct controller *c)
{
	return c->routes.done == c->routes.n;
}

void iteration_report(struct controller *c, struct member *m, const struct msg_report *r)
{
	if (!m->replica)
		m->unheard = r->iteration;
	if (r->iteration != c->iteration || !m->replica || c->iteration != c->committed + 1)
		return; /* of an iteration that is over */
	for (uint32_t i = 0; i < r->n_events && m->replica; i++)
		take_event(c, m, r->events[i]);
	if (c->phase != PHASE_COMPUTING || requests_any(&c->requests))
		return; /* who lied, and what it did, is settled first */
	if (c->current->plan->overlap_sync)
		sums_order_counted(c);
	if (all_done(c))
		begin_reducing(c);
}

/* ---- recovering ---- */

static bool stage_has_sum(const struct controller *c, int stage)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (c->members[i].replica && member_stage(c, &c->members[i]) == stage &&
		    !c->members[i].reduced)
			return false;
	return true;
}

/* The gone node's weights are nowhere else among the living. If its process only slept they come back with
 * it (iteration_resumes); until then nothing can go on. */
static void stall_run(struct controller *c, const struct member *gone)
{
	if (c->phase != PHASE_STALLED)
		c->stall.in = c->phase;
	c->stall.since_us = c->now_us;
	c->stall.next_ask_us = 0;
	note(c, NOTE_ALERT, gone->id, 0, "S%d has lost its last replica%s",
	     member_stage(c, gone),
	     copies_holder(c, member_stage(c, gone), NULL) ? "" : ": the run waits for it");
	set_phase(c, PHASE_STALLED);
}

/* Whoever has a part in the iteration is there: nobody else died while it was stalled, or in a sum before. */
static bool all_on_route(const struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++)
		if (!c->members[i].replica && routes_visit(&c->routes, (uint16_t)i))
			return false;
	return true;
}

/* The node's part in the iteration runs again elsewhere. False: nobody else of its stage is left, and all wait, or
 * the run ends. */
static bool rerun_without(struct controller *c, struct member *gone)
{
	int n = reroute_without(c, gone);

	if (n > 0) {
		c->rerun_us = c->now_us;
		record_recovery(c, "rerun", gone->id, n, c->now_us);
		note(c, NOTE_EVENT, gone->id, 0, "%d microbatches of it%llu run again without n%02u",
		     n, (unsigned long long)c->iteration, gone->id);
	}
	if (n < 0)
		stall_run(c, gone);
	return n >= 0 && c->phase != PHASE_FINISHED; /* the new routes could not be recorded */
}

/* Who is gone and still on a route had its part in sums that are void now. It may be about to join again, with a
 * gradient of nothing: joiners come in after this. */
void begin_reduction(struct controller *c)
{
	sums_forget(c);
	for (uint32_t i = 0; i < c->n_members; i++)
		if (!c->members[i].replica && routes_visit(&c->routes, (uint16_t)i) &&
		    !rerun_without(c, &c->members[i]))
			return;
	if (all_done(c))
		begin_reducing(c);
	else
		set_phase(c, PHASE_COMPUTING);
}

bool iteration_resumes(struct controller *c, struct member *m)
{
	int stage = m->held_stage;

	if (c->phase != PHASE_STALLED || m->marked || m->restoring || !member_holds(c, m, stage) ||
	    stage_replicas(c, stage, NULL) > 0 || !restore_averted(c, stage))
		return false;
	if (member_stage(c, m) != stage) { /* its place was given to one that took the stage over */
		stage_moves_exchange(c, m, stage);
		resume_save(c);
		c->stall.taken_over = true;
	}
	if (m->beat.iteration != c->iteration) /* another process, or it left all to read a checkpoint */
		c->stall.taken_over = true;
	m->replica = true;
	if (m->keeps >= 0 && !copy_coming(c, m, m->keeps))
		copies_release(c, m);
	members_set(c, m, NODE_LIVE, "");
	note(c, NOTE_EVENT, m->id, 'R', "n%02u is back with the last copy of S%d", m->id, stage);
	if (m->unheard == c->iteration || (replicas_everywhere(c) && !all_on_route(c)))
		c->stall.taken_over = true;
	c->steps++;
	if (!replicas_everywhere(c) || c->stall.taken_over)
		return true; /* recover_turn goes on */
	if (c->stall.in == PHASE_COMPUTING || c->stall.in == PHASE_REDUCING) {
		reroute_tell_again(c); /* it was not told when it passed for dead */
		begin_reduction(c);
	} else {
		set_phase(c, PHASE_PLANNING);
	}
	replan(c, "a node came back");
	return true;
}

static void rerun_what_died(struct controller *c, struct member *gone)
{
	c->steps++;
	if (rerun_without(c, gone))
		begin_reduction(c);
}

/* Returns true if all that the node counted was reported. A replica reports that before its sum, but a node that is
 * gone may not have. */
static bool told_counts(const struct controller *c, const struct member *gone)
{
	for (uint32_t i = 0; i < c->routes.n; i++)
		if (routes_lacks(&c->routes, gone->id, i))
			return false;
	return true;
}

/* While tasks run its part runs again elsewhere. While sums are made that is so too, unless its stage has the sum, as two
 * have told, and all that it counted is known: then its part is in it. Between iterations nothing is lost but a replica. Where all
 * stages have one left, plans are made without it. */
void iteration_lost(struct controller *c, struct member *m)
{
	switch (c->phase) {
	case PHASE_COMPUTING:
		rerun_what_died(c, m);
		break;
	case PHASE_REDUCING:
		if (stage_replicas(c, member_stage(c, m), NULL) > 0 &&
		    stage_has_sum(c, member_stage(c, m)) && commit_can_compare(c, member_stage(c, m)) && told_counts(c, m))
			commit_when_reduced(c);
		else
			rerun_what_died(c, m);
		break;
	case PHASE_EVALUATING:
		if (replicas_everywhere(c))
			evaluation_begin(c);
		else
			stall_run(c, m);
		break;
	case PHASE_GATHERING:
		return;
	default:
		if (!replicas_everywhere(c))
			stall_run(c, m);
		break;
	}
	if (replicas_everywhere(c)) {
		replan(c, "a node was lost");
		c->recovery_plan = c->plan_wanted;
	}
}

void iteration_fini(struct controller *c)
{
	routes_fini(&c->routes);
	free(c->progress.events);
	number_set_fini(&c->progress.told_of);
	evaluation_fini(c);
}
