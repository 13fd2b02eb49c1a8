/* iteration.c - runs an iteration: start, reroutes, commit; and evaluations between iterations.
 *
 * Three records stay when a microbatch is attempted again: the gradients added so far, the
 * outputs sent (outputs.h), and the newest attempt of each microbatch (queue.h). They ensure that
 * no gradient is added twice. A start resets all three. A reroute keeps what is still valid and
 * drops the rest. A commit ends the iteration. The commit contains the iteration's number, so
 * that a node recognises a repeated commit.
 */
#include "agent/execution/iteration.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/execution/needs.h"
#include "agent/shared/job.h"
#include "agent/tensors/early.h"
#include "base/process/cgroup.h"
#include "base/stage_set.h"

/* ---- start ---- */

/* Drops the routes, tasks, outputs and sums of the iteration, and a requested step that the worker
 * has not begun. */
void iteration_forget(struct iteration *x)
{
	queue_clear(tasks_queue(x->uses.tasks));
	memset(x->routes, 0, MSG_MICROBATCHES * sizeof(x->routes[0]));
	outputs_forget(x->uses.outputs);
	reduction_forget(x->uses.reduction);
	x->uses.requests->step = false;
	x->uses.progress->iteration = 0;
	misuse_forget(x->uses.misuse);
}

static void begin_microbatch(struct iteration *x, const struct route *r, int64_t now_us)
{
	if (r->wave >= x->uses.progress->per_shard)
		tell_trouble(x->uses.tell, false,
			     "microbatch %u has wave %u, but a shard gives only %u", r->microbatch,
			     r->wave, x->uses.progress->per_shard);
	else
		tasks_arrive(x->uses.tasks, r, 0, false, (struct tensor_bytes){ 0 }, now_us);
}

static uint32_t count_visits(const struct iteration *x)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MSG_MICROBATCHES; i++)
		n += x->routes[i].n_hops > 0 &&
		     route_find(&x->routes[i], x->uses.run->welcome.node) >= 0;
	return n;
}

/* Returns the free memory of the machine, bytes. If memory_bytes sets a limit, returns at most the
 * part of this limit that is not used yet. */
static uint64_t find_free_bytes(const struct iteration *x)
{
	const uint64_t enough = UINT64_C(1) << 60, limit = x->uses.memory_bytes;
	const uint64_t taken = x->uses.held->stage_bytes + x->checked.total;
	uint64_t left = memory_usable();

	if (limit && (limit < taken || limit - taken < left))
		left = limit > taken ? limit - taken : 0;
	return left < enough ? left : enough;
}

/* Checks that the memory suffices for the iteration. Runs before the first microbatch, and again
 * when a larger plan, a larger stage or a reroute through this node increases the need. The heap
 * may still hold the memory that the first check found free. Therefore only the additional need
 * must be free now. */
static int check_memory(struct iteration *x, uint32_t visits, struct error *err)
{
	struct needs n = needs_of(x->uses.held->parameters, x->uses.held->activation, visits,
				  EARLY_MOST_BYTES, x->uses.saves);
	struct needs more = needs_beyond(&n, &x->checked);
	uint64_t left = find_free_bytes(x);
	size_t bytes = links_chain_bytes(x->uses.links, TENSOR_ACTIVATION, false);

	if (x->checked.total > 0 && more.total == 0)
		return 0;
	log_line(x->uses.tell->log, LOG_INFO,
		 "the stage takes %.1f MiB, an iteration up to %.1f MiB",
		 (double)x->uses.held->stage_bytes / 0x1p20, (double)n.total / 0x1p20);
	if (bytes + LINKS_HEAD_BYTES > links_message_bytes(x->uses.links))
		return error_set(err, -EMSGSIZE,
				 "a microbatch's activation has %.1f MiB, but a message to a "
				 "peer can have at most %.1f MiB: use smaller microbatches",
				 (double)bytes / 0x1p20,
				 (double)links_message_bytes(x->uses.links) / 0x1p20);
	x->checked = n;
	x->early_room = (size_t)needs_early_room(&n, n.total - more.total + left, EARLY_MOST_BYTES);
	return needs_check(&more, left, err);
}

/* Sets the format in which tensors travel. Measurements of transfers in another format are dropped,
 * because they do not predict transfers in the new format. */
static void travel_in(struct iteration *x, uint8_t wire)
{
	if (x->uses.progress->wire == wire)
		return;
	x->uses.progress->wire = (enum tensor_format)wire;
	link_times_forget(x->uses.link_times);
}

void iteration_start(struct iteration *x, const struct msg_start *m, int64_t now_us)
{
	struct error err;
	const struct agent_plan *p = plans_find(x->uses.plans, m->epoch);

	if (x->uses.progress->iteration == m->iteration && x->uses.progress->iteration &&
	    x->uses.progress->epoch == m->epoch) {
		/* An order that repeats an earlier order is counted as dropped. */
		x->uses.tell->tally.dropped++;
		return;
	}
	if (m->iteration != x->uses.held->committed + 1 || !p) {
		tell_trouble(x->uses.tell, false,
			     "cannot start iteration %" PRIu64 " by plan %" PRIu64
			     ": iteration %" PRIu64 " is committed here, and the plan is %s",
			     m->iteration, m->epoch, x->uses.held->committed,
			     p ? "known" : "unknown");
		return;
	}
	travel_in(x, m->wire);
	if (check_memory(x, p->visits, &err) < 0) {
		tell_trouble(x->uses.tell, true, "%s", err.text);
		return;
	}
	/* Sends the events of the previous plan before its gradients are dropped. */
	report_flush(x->uses.report, now_us);
	device_clock_begin(x->uses.device_clock, now_us);
	x->uses.requests->zero = x->uses.progress->iteration != 0;
	iteration_forget(x);
	x->uses.progress->iteration = m->iteration;
	x->uses.progress->epoch = m->epoch;
	x->uses.progress->per_shard = m->per_shard;
	x->uses.progress->position = m->position;
	queue_rank(tasks_queue(x->uses.tasks), p->ranks, p->n_ranks);
	for (uint32_t i = 0; i < p->n_routes; i++) {
		x->routes[p->routes[i].microbatch] = p->routes[i];
		/* The queue now drops tensors of earlier attempts that arrive late. */
		queue_supersede(tasks_queue(x->uses.tasks), p->routes[i].microbatch,
				p->routes[i].attempt);
	}
	for (uint32_t i = 0; i < p->n_routes; i++)
		if (p->routes[i].nodes[0] == x->uses.run->welcome.node)
			begin_microbatch(x, &p->routes[i], now_us);
}

/* Sends to the substitutes the outputs that this node has kept. A substitute is a node of route r
 * that replaces another node of the previous route, `was`. */
static void send_to_substitutes(struct iteration *x, const struct route *was, const struct route *r,
				int64_t now_us)
{
	for (uint32_t t = 0; t < route_last(r, false); t++) {
		uint16_t to = route_node(r, t + 1);
		struct body *kept;

		if (route_node(r, t) != x->uses.run->welcome.node ||
		    to == x->uses.run->welcome.node || to == route_node(was, t + 1))
			continue;
		kept = outputs_find(x->uses.outputs, r->microbatch, route_kind(r, t));
		if (!kept)
			/* The output is not computed yet; the task will send the output along the
			 * new route. */
			continue;
		links_send_output(x->uses.links, r, t, false, body_hold(kept), now_us);
	}
}

/* Continues the microbatch on a route that differs from its previous route only in replaced
 * nodes. This node's work stays valid, and each substitute gets the outputs that it needs. */
static void continue_microbatch(struct iteration *x, const struct route *r, int64_t now_us)
{
	struct route was = x->routes[r->microbatch];

	if (!queue_continue(tasks_queue(x->uses.tasks), r))
		return;
	x->routes[r->microbatch] = *r;
	send_to_substitutes(x, &was, r, now_us);
}

static void restart_microbatch(struct iteration *x, const struct route *r, int64_t now_us)
{
	if (!queue_supersede(tasks_queue(x->uses.tasks), r->microbatch, r->attempt))
		return;
	x->routes[r->microbatch] = *r;
	outputs_drop(x->uses.outputs, r->microbatch);
	if (r->nodes[0] == x->uses.run->welcome.node)
		begin_microbatch(x, r, now_us);
}

void iteration_reroute(struct iteration *x, const struct msg_reroute *m, int64_t now_us)
{
	const struct route *was;
	const char *fault;
	struct error err;
	struct route r;

	for (uint32_t i = 0; i < m->n_gone; i++)
		if (m->gone[i] < x->uses.run->welcome.n_nodes &&
		    m->gone[i] != x->uses.run->welcome.node)
			links_forget_peer(x->uses.links, m->gone[i]);
	/* A node that joined during the reduction may have to replace a node that died later. The
	 * joined node got no START, and takes the iteration's number and epoch from this order. The
	 * number of microbatches per shard stays unknown, but only data nodes need it. */
	if (x->uses.progress->iteration == 0 && m->iteration == x->uses.held->committed + 1) {
		x->uses.progress->iteration = m->iteration;
		x->uses.progress->epoch = m->epoch;
		travel_in(x, m->wire);
		device_clock_begin(x->uses.device_clock, now_us);
	}
	if (m->iteration != x->uses.progress->iteration)
		return; /* the reroute belongs to an iteration that has ended */
	for (uint32_t i = 0; i < m->n_routes; i++) {
		fault = route_read(&r, &m->routes[i], &x->uses.run->limits);
		if (fault) {
			tell_trouble(x->uses.tell, false, "reroute: %s", fault);
			continue;
		}
		was = &x->routes[r.microbatch];
		if (route_continues(was, &r) && route_find(was, x->uses.run->welcome.node) ==
							route_find(&r, x->uses.run->welcome.node))
			continue_microbatch(x, &r, now_us);
		else
			restart_microbatch(x, &r, now_us);
	}
	if (check_memory(x, count_visits(x), &err) < 0)
		tell_trouble(x->uses.tell, true, "%s", err.text);
}

static bool has_counted_all(const struct iteration *x)
{
	for (uint32_t i = 0; i < MSG_MICROBATCHES; i++) {
		const struct route *r = &x->routes[i];
		int hop = r->n_hops > 0 ? route_find(r, x->uses.run->welcome.node) : -1;

		if (hop < 0)
			continue;
		if (!queue_counted(tasks_queue(x->uses.tasks), i, TASK_BACKWARD) ||
		    (hop == 0 && !queue_counted(tasks_queue(x->uses.tasks), i, TASK_LOSS)))
			return false;
	}
	return true;
}

/* Begins the sum as soon as no task runs. The queue counts a gradient when its task starts. A
 * task that is slowed by a fault or a rehearsal reports its end long after its computation.
 * Without the wait, the sum could overtake the report of a task. The controller would then
 * exclude this node, because the sum would seem to lack a gradient. */
void iteration_begin_sum(struct iteration *x)
{
	if (!queue_running(tasks_queue(x->uses.tasks)) &&
	    reduction_asks_for_count(x->uses.reduction, x->uses.progress->iteration,
				     queue_counts(tasks_queue(x->uses.tasks))) &&
	    has_counted_all(x))
		reduction_counted(x->uses.reduction, x->uses.tell->now_us);
}

/* ---- commit ---- */

/* Returns true if this commit gives the layers of another stage to this node's stage. The standby
 * copy has these layers. */
static bool is_stacked(const struct iteration *x, const struct msg_commit *m)
{
	return m->stack_from && !stage_set_has(m->stack_from, x->uses.held->stage);
}

/* Returns true if the standby copy is complete and of the stage whose layers this node's stage
 * takes.
 */
static bool copy_is_here(const struct iteration *x, const struct msg_commit *m)
{
	return standby_holds(x->uses.standby,
			     (uint8_t)stage_set_source(m->stack_from, x->uses.held->stage));
}

/* Reports the hash of the weights after the last commit, and how the device spent the iteration. */
static void tell_committed(struct iteration *x, int64_t now_us)
{
	struct msg m = { .type = MSG_COMMITTED };

	m.u.committed.iteration = x->uses.held->committed;
	m.u.committed.stage = x->uses.held->stage;
	m.u.committed.hash = x->uses.held->hash;
	m.u.committed.spent = device_clock_last(x->uses.device_clock);
	tell_controller(x->uses.tell, &m, POST_RELIABLE, now_us);
}

void iteration_commit(struct iteration *x, const struct msg_commit *m, int64_t now_us)
{
	/* A standby copy of this node's own stage will replace the node's weights, so the copy,
	 * and not the node's own stage, must answer the commit. The node's present weights may be
	 * of an iteration that the run repeats after a return to a checkpoint. */
	if (standby_standing(x->uses.standby) != STANDBY_NONE &&
	    standby_stage(x->uses.standby) == x->uses.held->stage)
		return;
	if (m->iteration <= x->uses.held->committed) {
		/* This node has committed the iteration. The controller has not received the
		 * report and asks for it again. */
		tell_committed(x, now_us);
		return;
	}
	/* While a standby copy exists, a commit may be meant for the copy alone. This is the case
	 * if this node's own stage has no reduction, or has missed an earlier commit. */
	if ((!reduction_slices(x->uses.reduction) || m->iteration != x->uses.held->committed + 1) &&
	    standby_standing(x->uses.standby) != STANDBY_NONE)
		return; /* standby.c carries out the commit */
	if (!reduction_ready(x->uses.reduction, m->iteration, m->attempt) ||
	    m->iteration != x->uses.held->committed + 1) {
		tell_trouble(x->uses.tell, false,
			     "cannot commit iteration %" PRIu64 ": reduction %u is not "
			     "complete here, or iteration %" PRIu64 " is not the one before",
			     m->iteration, m->attempt, x->uses.held->committed);
		return;
	}
	if (!isfinite(m->scale) || !isfinite(m->lr) || !isfinite(m->beta1) ||
	    !isfinite(m->beta2) || !isfinite(m->eps) || !isfinite(m->weight_decay)) {
		tell_trouble(x->uses.tell, false,
			     "the commit of iteration %" PRIu64 " has numbers that are not finite",
			     m->iteration);
		return;
	}
	if (m->stack_from && (!stage_set_fits(m->stack_from, (int)x->uses.run->limits.n_stages) ||
			      (is_stacked(x, m) && !copy_is_here(x, m)))) {
		tell_trouble(x->uses.tell, false,
			     "cannot commit iteration %" PRIu64
			     ": the stage whose layers stage %u takes is not here",
			     m->iteration, x->uses.held->stage);
		return;
	}
	x->commit = *m;
	x->commit.scale = hyper_stage_scale(m->scale, &m->visits, x->uses.held->stage);
	x->uses.requests->step = true;
}

/* Gives the job JOB_STACK, in which the stage takes the layers of the standby copy. Gives no job
 * before the copy has made the step of this commit. */
static bool begin_stacking(struct iteration *x, struct job *job)
{
	const struct msg_commit *m = &x->commit;

	if (!copy_is_here(x, m) || standby_iteration(x->uses.standby) > m->iteration) {
		tell_trouble(x->uses.tell, false, "the copy for stage %u has been dropped",
			     x->uses.held->stage);
		x->uses.requests->step = false;
		return false;
	}
	if (standby_iteration(x->uses.standby) < m->iteration)
		return false;
	*job = (struct job){ .kind = JOB_STACK, .iteration = m->iteration };
	return true;
}

bool iteration_next_job(struct iteration *x, struct job *job)
{
	const struct msg_commit *m = &x->commit;

	if (x->uses.requests->step && is_stacked(x, m))
		return begin_stacking(x, job);
	if (x->uses.requests->step) {
		*job = (struct job){
			.kind = JOB_STEP,
			.slices = reduction_slices(x->uses.reduction),
			.step = { .scale = m->scale,
				  .adamw = { m->lr, m->beta1, m->beta2, m->eps, m->weight_decay } },
			.iteration = m->iteration,
		};
		return true;
	}
	if (x->uses.requests->zero && x->uses.held->standing == STAND_READY) {
		*job = (struct job) { .kind = JOB_ZERO };
		return true;
	}
	return false;
}

void iteration_job_done(struct iteration *x, const struct job *job, int64_t now_us)
{
	if (job->kind == JOB_ZERO) {
		x->uses.requests->zero = false;
		return;
	}
	report_flush(x->uses.report, now_us);
	x->uses.held->committed = x->commit.iteration;
	x->uses.held->hash = job->hash;
	iteration_forget(x);
	/* Drops the waiting evaluations, because they were ordered for the weights before this
	 * commit. */
	queue_clear_evaluations(tasks_queue(x->uses.tasks));
	links_drop_old(x->uses.links, x->uses.held->committed);
	device_clock_end(x->uses.device_clock, job->ended_us);
	tell_committed(x, now_us);
	x->uses.requests->look_again = true;
}

/* ---- evaluation ---- */

void iteration_forget_evaluation(struct iteration *x)
{
	free(x->evaluation.routes);
	free(x->evaluation.arrived);
	x->evaluation = (struct evaluation){ .n = 0 };
	x->uses.progress->evaluation_wire = FORMAT_FP32;
}

/* Replaces the previous evaluation. A data node queues its forward tasks at once. */
void iteration_evaluate(struct iteration *x, const struct msg_evaluate *m, int64_t now_us)
{
	struct evaluation *e = &x->evaluation;
	const char *fault;
	struct route *r;

	if (m->iteration != x->uses.held->committed) {
		tell_trouble(x->uses.tell, false,
			     "cannot evaluate iteration %" PRIu64 ": iteration %" PRIu64
			     " is committed here",
			     m->iteration, x->uses.held->committed);
		return;
	}
	iteration_forget_evaluation(x);
	e->iteration = m->iteration;
	x->uses.progress->evaluation_wire = (enum tensor_format)m->wire;
	e->routes = calloc(m->n_routes + 1u, sizeof(e->routes[0]));
	e->arrived = calloc(m->n_routes + 1u, sizeof(e->arrived[0]));
	if (!e->routes || !e->arrived) {
		tell_trouble(x->uses.tell, true, "no memory for an evaluation");
		return;
	}
	for (uint32_t i = 0; i < m->n_routes; i++) {
		r = &e->routes[e->n];
		fault = route_read(r, &m->routes[i], &x->uses.run->limits);
		if (fault) {
			tell_trouble(x->uses.tell, false, "evaluation: %s", fault);
			continue;
		}
		e->n++;
		if (r->nodes[0] == x->uses.run->welcome.node)
			tasks_arrive(x->uses.tasks, r, 0, true, (struct tensor_bytes){ 0 }, now_us);
	}
}

/* Finds the evaluation that has route r. Returns its record of arrived inputs, and sets *bit to the
 * bit of the input at `position`. NULL: no evaluation needs this input, or it has arrived
 * already. */
static uint8_t *find_needed(const struct iteration *x, const struct route *r, uint32_t position,
			    uint8_t *bit)
{
	const struct evaluation *e = &x->evaluation;

	*bit = position < r->n_hops ? 1 : 2;
	for (uint32_t i = 0; e->iteration == x->uses.held->committed && i < e->n; i++) {
		if (e->routes[i].microbatch != r->microbatch)
			continue;
		if (!route_equal(&e->routes[i], r) || e->arrived[i] & *bit)
			return NULL;
		return &e->arrived[i];
	}
	return NULL;
}

bool iteration_needs_input(const struct iteration *x, const struct route *r, uint32_t position)
{
	uint8_t bit;

	return find_needed(x, r, position, &bit) != NULL;
}

void iteration_takes_input(struct iteration *x, const struct route *r, uint32_t position)
{
	uint8_t bit, *arrived = find_needed(x, r, position, &bit);

	if (arrived)
		*arrived |= bit;
}
