/* One iteration: plan, start, reruns, commit; and evaluations between iterations. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/needs.h"
#include "agent/state.h"
#include "model/cpu/arena.h"

void plan_free(struct plan *p)
{
	free(p->routes);
	free(p->ranks);
	memset(p, 0, sizeof(*p));
}

/* ---- plan ---- */

static struct plan *find_plan(struct agent *a, uint64_t epoch)
{
	for (int i = 0; i < 2; i++)
		if (a->plans[i].known && a->plans[i].epoch == epoch)
			return &a->plans[i];
	return NULL;
}

/* Where a new plan goes: over the same epoch's, else over the older one. */
static struct plan *place_for_plan(struct agent *a, uint64_t epoch)
{
	struct plan *p = find_plan(a, epoch);

	if (p)
		return p;
	if (!a->plans[0].known || !a->plans[1].known)
		return &a->plans[a->plans[0].known ? 1 : 0];
	return &a->plans[a->plans[0].epoch < a->plans[1].epoch ? 0 : 1];
}

void iteration_plan(struct agent *a, const struct msg_plan *m)
{
	struct plan new = { .known = true, .epoch = m->epoch, .n_ranks = m->n_ranks,
			    .split_backward = m->split_backward };
	const char *fault = NULL;
	struct plan *to;

	new.routes = calloc(m->n_routes + 1u, sizeof(new.routes[0]));
	new.ranks = calloc(m->n_ranks + 1u, sizeof(new.ranks[0]));
	if (!new.routes || !new.ranks) {
		plan_free(&new);
		agent_trouble(a, true, "no memory for plan %" PRIu64, m->epoch);
		return;
	}
	for (uint32_t i = 0; i < m->n_routes && !fault; i++)
		fault = route_read(&new.routes[new.n_routes++], &m->routes[i], &a->limits);
	if (fault) {
		plan_free(&new);
		agent_trouble(a, false, "plan %" PRIu64 ": %s", m->epoch, fault);
		return;
	}
	if (m->n_ranks)
		memcpy(new.ranks, m->ranks, m->n_ranks * sizeof(new.ranks[0]));
	for (uint32_t i = 0; i < new.n_routes; i++)
		new.visits += route_find(&new.routes[i], a->run.node) >= 0;
	to = place_for_plan(a, m->epoch);
	plan_free(to);
	*to = new;
}

/* ---- start ---- */

/* What of the iteration is known and under way, and what waits to be counted. */
void iteration_forget(struct agent *a)
{
	queue_clear(a->queue);
	memset(a->routes, 0, MSG_MICROBATCHES * sizeof(a->routes[0]));
	resend_forget(a);
	reduction_forget(a);
	a->step_wanted = false;
	a->iteration = 0;
	report_forget(a);
}

static void begin_microbatch(struct agent *a, const struct route *r, int64_t now_us)
{
	if (r->wave >= a->per_shard)
		agent_trouble(a, false, "microbatch %u: wave %u of %u a shard", r->microbatch,
			      r->wave, a->per_shard);
	else
		tasks_arrive(a, r, 0, false, NULL, now_us);
}

/* Once, before the first microbatch: later the heap holds what was free then. */
static int check_memory(struct agent *a, const struct plan *p, struct error *err)
{
	uint64_t most = a->options.memory_bytes, left = arena_free_bytes();
	struct needs n;

	if (a->memory_checked)
		return 0;
	n = needs_of(a->parameters, a->activation, p->visits, EARLY_MOST_BYTES,
		     a->options.run_dir != NULL);
	if (most && (most < a->stage_bytes || most - a->stage_bytes < left))
		left = most > a->stage_bytes ? most - a->stage_bytes : 0;
	log_line(a->options.log, LOG_INFO, "the stage takes %.1f MiB, an iteration up to %.1f",
		 (double)a->stage_bytes / 0x1p20, (double)n.total / 0x1p20);
	a->memory_checked = true;
	if (links_activation_bytes(a) + TENSOR_HEAD_BYTES > agent_message_bytes(a))
		return error_set(err, -EMSGSIZE,
				 "a microbatch's activation has %.1f MiB, and a message to a peer at most "
				 "%.1f: smaller microbatches are needed",
				 (double)links_activation_bytes(a) / 0x1p20,
				 (double)agent_message_bytes(a) / 0x1p20);
	return needs_check(&n, left, err);
}

static void start(struct agent *a, const struct msg_start *m, int64_t now_us)
{
	struct error err;
	const struct plan *p = find_plan(a, m->epoch);

	if (a->iteration == m->iteration && a->iteration && a->epoch == m->epoch) {
		a->dropped++; /* said twice */
		return;
	}
	if (m->iteration != a->committed + 1 || !p) {
		agent_trouble(a, false, "start of iteration %" PRIu64 " by plan %" PRIu64
			      ": %" PRIu64 " committed here, plan %sknown", m->iteration,
			      m->epoch, a->committed, p ? "" : "not ");
		return;
	}
	if (check_memory(a, p, &err) < 0) {
		agent_trouble(a, true, "%s", err.text);
		return;
	}
	/* By another plan, what was added for the one before is void. */
	report_flush(a, now_us);
	a->zero_wanted = a->iteration != 0;
	iteration_forget(a);
	a->iteration = m->iteration;
	a->epoch = m->epoch;
	a->per_shard = m->per_shard;
	queue_split(a->queue, p->split_backward);
	queue_rank(a->queue, p->ranks, p->n_ranks);
	for (uint32_t i = 0; i < p->n_routes; i++) {
		a->routes[p->routes[i].microbatch] = p->routes[i];
		/* Attempts before these are old, whoever still sends them. */
		queue_supersede(a->queue, p->routes[i].microbatch, p->routes[i].attempt);
	}
	for (uint32_t i = 0; i < p->n_routes; i++)
		if (p->routes[i].nodes[0] == a->run.node)
			begin_microbatch(a, &p->routes[i], now_us);
}

/* Only other nodes stand in: what is done here stays, and whoever is new gets what it needs of it. */
static void go_on(struct agent *a, const struct route *r, int64_t now_us)
{
	struct route was = a->routes[r->microbatch];

	if (!queue_go_on(a->queue, r))
		return;
	a->routes[r->microbatch] = *r;
	resend_to_others(a, &was, r, now_us);
}

static void begin_again(struct agent *a, const struct route *r, int64_t now_us)
{
	if (!queue_supersede(a->queue, r->microbatch, r->attempt))
		return;
	a->routes[r->microbatch] = *r;
	resend_drop(a, r->microbatch);
	if (r->nodes[0] == a->run.node)
		begin_microbatch(a, r, now_us);
}

static void reroute(struct agent *a, const struct msg_reroute *m, int64_t now_us)
{
	const struct route *was;
	const char *fault;
	struct route r;

	for (uint32_t i = 0; i < m->n_gone; i++)
		if (m->gone[i] < a->run.n_nodes && m->gone[i] != a->run.node)
			join_forget_peer(a, m->gone[i]);
	/* A joiner, in since the reduction, may be needed for what died since. It was never told
	 * how many microbatches a shard gives: data nodes need an earlier start for that. */
	if (a->iteration == 0 && m->iteration == a->committed + 1) {
		a->iteration = m->iteration;
		a->epoch = m->epoch;
	}
	if (m->iteration != a->iteration)
		return; /* of one that is over */
	for (uint32_t i = 0; i < m->n_routes; i++) {
		fault = route_read(&r, &m->routes[i], &a->limits);
		if (fault) {
			agent_trouble(a, false, "reroute: %s", fault);
			continue;
		}
		was = &a->routes[r.microbatch];
		if (route_goes_on(was, &r) && route_find(was, a->run.node) == route_find(&r, a->run.node))
			go_on(a, &r, now_us);
		else
			begin_again(a, &r, now_us);
	}
}

/* ---- commit ---- */

static void commit(struct agent *a, const struct msg_commit *m, int64_t now_us)
{
	struct msg done = { .type = MSG_COMMITTED };

	if (m->iteration <= a->committed) {
		/* Done before: whoever asks again did not hear of it. */
		done.u.committed.iteration = a->committed;
		done.u.committed.stage = a->stage;
		done.u.committed.hash = a->hash;
		agent_tell(a, &done, POST_RELIABLE, now_us);
		return;
	}
	if (!a->slices && a->standby.standing != STANDBY_NONE)
		return; /* it was for the copy */
	if (!reduction_ready(a, m->iteration, m->attempt) || m->iteration != a->committed + 1) {
		agent_trouble(a, false,
			      "commit of iteration %" PRIu64 " by reduction %u, which "
			      "is not complete here; %" PRIu64 " committed",
			      m->iteration, m->attempt, a->committed);
		return;
	}
	if (!isfinite(m->scale) || !isfinite(m->lr) || !isfinite(m->beta1) ||
	    !isfinite(m->beta2) || !isfinite(m->eps) || !isfinite(m->weight_decay)) {
		agent_trouble(a, false, "commit of iteration %" PRIu64 " with numbers that are "
			      "none", m->iteration);
		return;
	}
	a->commit = *m;
	a->step_wanted = true;
}

bool iteration_next_job(struct agent *a)
{
	const struct msg_commit *m = &a->commit;

	if (a->step_wanted) {
		a->job = (struct job) {
			.kind = JOB_STEP,
			.slices = a->slices,
			.scale = m->scale,
			.adamw = { m->lr, m->beta1, m->beta2, m->eps, m->weight_decay },
			.iteration = m->iteration,
		};
		return true;
	}
	if (a->zero_wanted && a->standing == STAND_READY) {
		a->job = (struct job) { .kind = JOB_ZERO };
		return true;
	}
	return false;
}

void iteration_job_done(struct agent *a, int64_t now_us)
{
	struct msg m = { .type = MSG_COMMITTED };

	if (a->job.kind == JOB_ZERO) {
		a->zero_wanted = false;
		return;
	}
	report_flush(a, now_us);
	a->committed = a->commit.iteration;
	a->hash = a->job.hash;
	iteration_forget(a);
	queue_clear_evaluations(a->queue); /* of the weights before */
	links_drop_old(a, a->committed);
	m.u.committed.iteration = a->committed;
	m.u.committed.stage = a->stage;
	m.u.committed.hash = a->hash;
	agent_tell(a, &m, POST_RELIABLE, now_us);
	early_look_again(a, now_us);
}

/* ---- evaluation ---- */

void evaluation_forget(struct agent *a)
{
	free(a->evaluation.routes);
	free(a->evaluation.arrived);
	a->evaluation = (struct evaluation){ .n = 0 };
}

static void evaluate(struct agent *a, const struct msg_evaluate *m, int64_t now_us)
{
	struct evaluation *e = &a->evaluation;
	const char *fault;
	struct route *r;

	if (m->iteration != a->committed) {
		agent_trouble(a, false, "evaluation of iteration %" PRIu64 ": %" PRIu64
			      " committed here", m->iteration, a->committed);
		return;
	}
	evaluation_forget(a);
	e->iteration = m->iteration;
	e->routes = calloc(m->n_routes + 1u, sizeof(e->routes[0]));
	e->arrived = calloc(m->n_routes + 1u, sizeof(e->arrived[0]));
	if (!e->routes || !e->arrived) {
		agent_trouble(a, true, "no memory for an evaluation");
		return;
	}
	for (uint32_t i = 0; i < m->n_routes; i++) {
		r = &e->routes[e->n];
		fault = route_read(r, &m->routes[i], &a->limits);
		if (fault) {
			agent_trouble(a, false, "evaluation: %s", fault);
			continue;
		}
		e->n++;
		if (r->nodes[0] == a->run.node)
			tasks_arrive(a, r, 0, true, NULL, now_us);
	}
}

void iteration_control(struct agent *a, const struct msg *m, int64_t now_us)
{
	if (a->standing != STAND_READY && m->type == MSG_COMMIT &&
	    a->standby.standing != STANDBY_NONE)
		return;
	if (a->standing != STAND_READY) {
		agent_trouble(a, false, "%s for an agent without a stage", msg_name(m->type));
		return;
	}
	switch (m->type) {
	case MSG_START:
		start(a, &m->u.start, now_us);
		break;
	case MSG_REROUTE:
		reroute(a, &m->u.reroute, now_us);
		break;
	case MSG_REDUCE:
		reduction_begin(a, &m->u.reduce, now_us);
		break;
	case MSG_COMMIT:
		commit(a, &m->u.commit, now_us);
		break;
	case MSG_SAVE:
		save_begin(a, &m->u.save, now_us);
		break;
	case MSG_EVALUATE:
		evaluate(a, &m->u.evaluate, now_us);
		break;
	default:
		break;
	}
}
