/* iteration.c - runs an iteration: start, reroutes, commit; and evaluations between iterations.
 *
 * Three things outlive an attempt and must never be counted twice: the gradients added so far, the
 * outputs sent (outputs.h), and the queue's newest attempt of each microbatch. A start resets all
 * three. A reroute keeps what is still valid and drops the rest. A commit ends the iteration, and
 * its number makes sure that this happens once.
 */
#include "agent/execution/iteration.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/execution/needs.h"
#include "agent/state.h"
#include "base/process/cgroup.h"
#include "base/stage_set.h"

/* ---- start ---- */

/* Drops the routes, tasks, outputs and sums of the iteration, and a step that waits for the
 * worker. */
void iteration_forget(struct agent *a)
{
	queue_clear(a->iteration.queue);
	memset(a->iteration.routes, 0, MSG_MICROBATCHES * sizeof(a->iteration.routes[0]));
	outputs_forget(a->modules.outputs);
	reduction_forget(a->modules.reduction);
	a->requests.step = false;
	a->progress.iteration = 0;
	misuse_forget(&a->modules.misuse);
}

static void begin_microbatch(struct agent *a, const struct route *r, int64_t now_us)
{
	if (r->wave >= a->progress.per_shard)
		tell_trouble(&a->tell, false,
			     "microbatch %u has wave %u, but a shard gives only %u", r->microbatch,
			     r->wave, a->progress.per_shard);
	else
		tasks_arrive(a, r, 0, false, NULL, now_us);
}

static uint32_t count_visits(const struct agent *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MSG_MICROBATCHES; i++)
		n += a->iteration.routes[i].n_hops > 0 &&
		     route_find(&a->iteration.routes[i], a->run.welcome.node) >= 0;
	return n;
}

/* Returns the free memory of the machine, or what --memory still allows if that is less. */
static uint64_t find_free_bytes(const struct agent *a)
{
	const uint64_t enough = UINT64_C(1) << 60, limit = a->options.memory_bytes;
	const uint64_t taken = a->held.stage_bytes + a->checked.total;
	uint64_t left = memory_usable();

	if (limit && (limit < taken || limit - taken < left))
		left = limit > taken ? limit - taken : 0;
	return left < enough ? left : enough;
}

/* Checks that the memory suffices for the iteration. Runs before the first microbatch, and again
 * when the need grows: with a larger plan or stage, or when this node replaces other nodes. The
 * heap may then hold memory that was free at the first check, so only the additional need must be
 * free. */
static int check_memory(struct agent *a, uint32_t visits, struct error *err)
{
	struct needs n = needs_of(a->held.parameters, a->held.activation, visits, EARLY_MOST_BYTES,
				  a->options.run_dir != NULL);
	struct needs more = needs_beyond(&n, &a->checked);
	uint64_t left = find_free_bytes(a);
	size_t bytes = links_chain_bytes(&a->modules.links, TENSOR_ACTIVATION, false);

	if (a->checked.total > 0 && more.total == 0)
		return 0;
	log_line(a->tell.log, LOG_INFO, "the stage takes %.1f MiB, an iteration up to %.1f MiB",
		 (double)a->held.stage_bytes / 0x1p20, (double)n.total / 0x1p20);
	if (bytes + LINKS_HEAD_BYTES > links_message_bytes(&a->modules.links))
		return error_set(err, -EMSGSIZE,
				 "a microbatch's activation has %.1f MiB, but a message to a "
				 "peer can have at most %.1f MiB: use smaller microbatches",
				 (double)bytes / 0x1p20,
				 (double)links_message_bytes(&a->modules.links) / 0x1p20);
	a->checked = n;
	a->early_room = (size_t)needs_early_room(&n, n.total - more.total + left, EARLY_MOST_BYTES);
	return needs_check(&more, left, err);
}

/* Measurements of transfers in another format say nothing about the coming transfers. */
static void travel_in(struct agent *a, uint8_t wire)
{
	if (a->progress.wire == wire)
		return;
	a->progress.wire = (enum tensor_format)wire;
	link_times_forget(&a->modules.link_times);
}

void iteration_start(struct agent *a, const struct msg_start *m, int64_t now_us)
{
	struct error err;
	const struct plan *p = plans_find(a, m->epoch);

	if (a->progress.iteration == m->iteration && a->progress.iteration &&
	    a->progress.epoch == m->epoch) {
		a->tell.tally.dropped++; /* the order is a repeated one */
		return;
	}
	if (m->iteration != a->held.committed + 1 || !p) {
		tell_trouble(&a->tell, false,
			     "cannot start iteration %" PRIu64 " by plan %" PRIu64
			     ": iteration %" PRIu64 " is committed here, and the plan is %s",
			     m->iteration, m->epoch, a->held.committed, p ? "known" : "unknown");
		return;
	}
	travel_in(a, m->wire);
	if (check_memory(a, p->visits, &err) < 0) {
		tell_trouble(&a->tell, true, "%s", err.text);
		return;
	}
	/* A gradient that was added by another plan is void. */
	report_flush(a->modules.report, now_us);
	a->requests.zero = a->progress.iteration != 0;
	iteration_forget(a);
	a->progress.iteration = m->iteration;
	a->progress.epoch = m->epoch;
	a->progress.per_shard = m->per_shard;
	a->progress.position = m->position;
	queue_rank(a->iteration.queue, p->ranks, p->n_ranks);
	for (uint32_t i = 0; i < p->n_routes; i++) {
		a->iteration.routes[p->routes[i].microbatch] = p->routes[i];
		/* Tensors of earlier attempts that still arrive are dropped. */
		queue_supersede(a->iteration.queue, p->routes[i].microbatch, p->routes[i].attempt);
	}
	for (uint32_t i = 0; i < p->n_routes; i++)
		if (p->routes[i].nodes[0] == a->run.welcome.node)
			begin_microbatch(a, &p->routes[i], now_us);
}

/* Sends the outputs that this node has kept to the nodes that are new in the route r. was: the
 * previous route. */
static void send_to_substitutes(struct agent *a, const struct route *was, const struct route *r,
				int64_t now_us)
{
	for (uint32_t t = 0; t < route_last(r, false); t++) {
		uint16_t to = route_node(r, t + 1);
		const float *kept;
		float *body;

		if (route_node(r, t) != a->run.welcome.node || to == a->run.welcome.node ||
		    to == route_node(was, t + 1))
			continue;
		kept = outputs_find(a->modules.outputs, r->microbatch, route_kind(r, t));
		if (!kept)
			continue; /* not computed yet: it will be sent there anyway */
		body = malloc(a->held.activation * sizeof(float));
		if (!body) {
			tell_trouble(&a->tell, true, "no memory to send a tensor again");
			return;
		}
		memcpy(body, kept, a->held.activation * sizeof(float));
		links_send_output(&a->modules.links, r, t, false, body, now_us);
	}
}

/* Continues the microbatch by a route in which only other nodes were replaced: this node's work
 * stays valid, and the substitutes get the outputs that they need. */
static void continue_microbatch(struct agent *a, const struct route *r, int64_t now_us)
{
	struct route was = a->iteration.routes[r->microbatch];

	if (!queue_continue(a->iteration.queue, r))
		return;
	a->iteration.routes[r->microbatch] = *r;
	send_to_substitutes(a, &was, r, now_us);
}

static void restart_microbatch(struct agent *a, const struct route *r, int64_t now_us)
{
	if (!queue_supersede(a->iteration.queue, r->microbatch, r->attempt))
		return;
	a->iteration.routes[r->microbatch] = *r;
	outputs_drop(a->modules.outputs, r->microbatch);
	if (r->nodes[0] == a->run.welcome.node)
		begin_microbatch(a, r, now_us);
}

void iteration_reroute(struct agent *a, const struct msg_reroute *m, int64_t now_us)
{
	const struct route *was;
	const char *fault;
	struct error err;
	struct route r;

	for (uint32_t i = 0; i < m->n_gone; i++)
		if (m->gone[i] < a->run.welcome.n_nodes && m->gone[i] != a->run.welcome.node)
			links_forget_peer(&a->modules.links, m->gone[i]);
	/* A node that joined during the reduction may have to replace one that died since. It
	 * got no START, so it does not know how many microbatches a shard gives. Only data nodes
	 * need that number. */
	if (a->progress.iteration == 0 && m->iteration == a->held.committed + 1) {
		a->progress.iteration = m->iteration;
		a->progress.epoch = m->epoch;
		travel_in(a, m->wire);
	}
	if (m->iteration != a->progress.iteration)
		return; /* the reroute belongs to an iteration that has ended */
	for (uint32_t i = 0; i < m->n_routes; i++) {
		fault = route_read(&r, &m->routes[i], &a->run.limits);
		if (fault) {
			tell_trouble(&a->tell, false, "reroute: %s", fault);
			continue;
		}
		was = &a->iteration.routes[r.microbatch];
		if (route_continues(was, &r) &&
		    route_find(was, a->run.welcome.node) == route_find(&r, a->run.welcome.node))
			continue_microbatch(a, &r, now_us);
		else
			restart_microbatch(a, &r, now_us);
	}
	if (check_memory(a, count_visits(a), &err) < 0)
		tell_trouble(&a->tell, true, "%s", err.text);
}

static bool has_counted_all(const struct agent *a)
{
	for (uint32_t i = 0; i < MSG_MICROBATCHES; i++) {
		const struct route *r = &a->iteration.routes[i];
		int hop = r->n_hops > 0 ? route_find(r, a->run.welcome.node) : -1;

		if (hop < 0)
			continue;
		if (!queue_counted(a->iteration.queue, i, TASK_BACKWARD) ||
		    (hop == 0 && !queue_counted(a->iteration.queue, i, TASK_LOSS)))
			return false;
	}
	return true;
}

/* The queue counts a gradient when its task starts. A task that is slowed, by a fault or in a
 * rehearsal, ends and is reported long after its computation. The sum must not overtake that
 * report: the controller excludes a node whose sum lacks a gradient. */
void iteration_begin_sum(struct agent *a)
{
	if (!queue_running(a->iteration.queue) &&
	    reduction_asks_for_count(a->modules.reduction, a->progress.iteration,
				     queue_counts(a->iteration.queue)) &&
	    has_counted_all(a))
		reduction_counted(a->modules.reduction, a->tell.now_us);
}

/* ---- commit ---- */

/* Returns true if this commit gives the stage the layers of another one, whose copy is here. */
static bool is_stacked(const struct agent *a, const struct msg_commit *m)
{
	return m->stack_from && !stage_set_has(m->stack_from, a->held.stage);
}

/* Returns true if the standby copy is complete and holds the stage from which this node's stage
 * takes its layers.
 */
static bool copy_is_here(const struct agent *a, const struct msg_commit *m)
{
	return standby_holds(a->modules.standby,
			     (uint8_t)stage_set_source(m->stack_from, a->held.stage));
}

void iteration_commit(struct agent *a, const struct msg_commit *m, int64_t now_us)
{
	struct msg done = { .type = MSG_COMMITTED };

	/* A copy of the same stage will replace these weights. If the run has gone back to a
	 * checkpoint, they are of an iteration that is repeated, and only the copy may answer. */
	if (standby_standing(a->modules.standby) != STANDBY_NONE &&
	    standby_stage(a->modules.standby) == a->held.stage)
		return;
	if (m->iteration <= a->held.committed) {
		/* The iteration is committed already: the controller asks again because it missed
		 * the report. */
		done.u.committed.iteration = a->held.committed;
		done.u.committed.stage = a->held.stage;
		done.u.committed.hash = a->held.hash;
		tell_controller(&a->tell, &done, POST_RELIABLE, now_us);
		return;
	}
	/* An agent that was away may still hold the sums of an iteration that it missed. */
	if ((!reduction_slices(a->modules.reduction) || m->iteration != a->held.committed + 1) &&
	    standby_standing(a->modules.standby) != STANDBY_NONE)
		return; /* the commit was for the standby copy */
	if (!reduction_ready(a->modules.reduction, m->iteration, m->attempt) ||
	    m->iteration != a->held.committed + 1) {
		tell_trouble(&a->tell, false,
			     "cannot commit iteration %" PRIu64 ": reduction %u is not "
			     "complete here, or iteration %" PRIu64 " is not the one before",
			     m->iteration, m->attempt, a->held.committed);
		return;
	}
	if (!isfinite(m->scale) || !isfinite(m->lr) || !isfinite(m->beta1) ||
	    !isfinite(m->beta2) || !isfinite(m->eps) || !isfinite(m->weight_decay)) {
		tell_trouble(&a->tell, false,
			     "the commit of iteration %" PRIu64 " has numbers that are not finite",
			     m->iteration);
		return;
	}
	if (m->stack_from && (!stage_set_fits(m->stack_from, (int)a->run.limits.n_stages) ||
			      (is_stacked(a, m) && !copy_is_here(a, m)))) {
		tell_trouble(&a->tell, false,
			     "cannot commit iteration %" PRIu64
			     ": the stage whose layers stage %u takes is not here",
			     m->iteration, a->held.stage);
		return;
	}
	a->iteration.commit = *m;
	a->iteration.commit.scale = recipe_stage_scale(m->scale, &m->visits, a->held.stage);
	a->requests.step = true;
}

/* Gives the job that takes the layers of the copy, once the copy has made this commit's step. */
static bool begin_stacking(struct agent *a, struct job *job)
{
	const struct msg_commit *m = &a->iteration.commit;

	if (!copy_is_here(a, m) || standby_iteration(a->modules.standby) > m->iteration) {
		tell_trouble(&a->tell, false, "the copy for stage %u has been dropped",
			     a->held.stage);
		a->requests.step = false;
		return false;
	}
	if (standby_iteration(a->modules.standby) < m->iteration)
		return false;
	*job = (struct job){ .kind = JOB_STACK, .iteration = m->iteration };
	return true;
}

bool iteration_next_job(struct agent *a, struct job *job)
{
	const struct msg_commit *m = &a->iteration.commit;

	if (a->requests.step && is_stacked(a, m))
		return begin_stacking(a, job);
	if (a->requests.step) {
		*job = (struct job){
			.kind = JOB_STEP,
			.slices = reduction_slices(a->modules.reduction),
			.step = { .scale = m->scale,
				  .adamw = { m->lr, m->beta1, m->beta2, m->eps, m->weight_decay } },
			.iteration = m->iteration,
		};
		return true;
	}
	if (a->requests.zero && a->held.standing == STAND_READY) {
		*job = (struct job) { .kind = JOB_ZERO };
		return true;
	}
	return false;
}

void iteration_job_done(struct agent *a, const struct job *job, int64_t now_us)
{
	struct msg m = { .type = MSG_COMMITTED };

	if (job->kind == JOB_ZERO) {
		a->requests.zero = false;
		return;
	}
	report_flush(a->modules.report, now_us);
	a->held.committed = a->iteration.commit.iteration;
	a->held.hash = job->hash;
	iteration_forget(a);
	/* The waiting evaluations are for the old weights. */
	queue_clear_evaluations(a->iteration.queue);
	links_drop_old(&a->modules.links, a->held.committed);
	m.u.committed.iteration = a->held.committed;
	m.u.committed.stage = a->held.stage;
	m.u.committed.hash = a->held.hash;
	tell_controller(&a->tell, &m, POST_RELIABLE, now_us);
	a->requests.look_again = true;
}

/* ---- evaluation ---- */

void iteration_forget_evaluation(struct agent *a)
{
	free(a->iteration.evaluation.routes);
	free(a->iteration.evaluation.arrived);
	a->iteration.evaluation = (struct evaluation){ .n = 0 };
	a->progress.evaluation_wire = FORMAT_FP32;
}

/* Replaces the previous evaluation. Data nodes begin at once. */
void iteration_evaluate(struct agent *a, const struct msg_evaluate *m, int64_t now_us)
{
	struct evaluation *e = &a->iteration.evaluation;
	const char *fault;
	struct route *r;

	if (m->iteration != a->held.committed) {
		tell_trouble(&a->tell, false,
			     "cannot evaluate iteration %" PRIu64 ": iteration %" PRIu64
			     " is committed here",
			     m->iteration, a->held.committed);
		return;
	}
	iteration_forget_evaluation(a);
	e->iteration = m->iteration;
	a->progress.evaluation_wire = (enum tensor_format)m->wire;
	e->routes = calloc(m->n_routes + 1u, sizeof(e->routes[0]));
	e->arrived = calloc(m->n_routes + 1u, sizeof(e->arrived[0]));
	if (!e->routes || !e->arrived) {
		tell_trouble(&a->tell, true, "no memory for an evaluation");
		return;
	}
	for (uint32_t i = 0; i < m->n_routes; i++) {
		r = &e->routes[e->n];
		fault = route_read(r, &m->routes[i], &a->run.limits);
		if (fault) {
			tell_trouble(&a->tell, false, "evaluation: %s", fault);
			continue;
		}
		e->n++;
		if (r->nodes[0] == a->run.welcome.node)
			tasks_arrive(a, r, 0, true, NULL, now_us);
	}
}
