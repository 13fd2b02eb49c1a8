/* commit.c - decides and announces the commit of an iteration.
 *
 * Once every replica and every standby copy has reported its stage's sum, the controller compares
 * the sums to the bit, audits the routes and writes the commit durably. The controller announces a
 * commit only after that write. A crash therefore leaves either the state before the commit or the
 * state after it. */
#include "controller/iteration/commit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "controller/iteration/iteration.h"
#include "controller/iteration/iteration_record.h"
#include "controller/iteration/plan_message.h"
#include "controller/members/admission.h"
#include "controller/members/finish.h"
#include "controller/members/member.h"
#include "controller/members/member_record.h"
#include "controller/planning/replan.h"
#include "controller/planning/skip_phases.h"
#include "controller/planning/spares.h"
#include "controller/run/disk.h"
#include "controller/run/journal.h"
#include "controller/run/phase.h"
#include "controller/run/record.h"
#include "controller/run/stream.h"
#include "controller/trust/agreement.h"
#include "controller/trust/exclude.h"
#include "controller/weights/checkpoints.h"
#include "controller/weights/copies.h"
#include "controller/weights/stacking.h"
#include "controller/weights/standbys.h"

/* Limit of the squared norm of a stage's summed gradient. Gradients of a training that converges
 * are far below this limit. */
static const double MOST_SQUARES = 1e20;

static bool sum_missing(const struct members *members)
{
	for (uint32_t i = 0; i < members->n; i++) {
		const struct member *m = &members->list[i];

		if ((member_is_replica(m) && !m->sum.is_done) || copies_lacks_sum(m))
			return true;
	}
	return false;
}

static bool is_of_this_attempt(const struct iteration *it, const struct reported_sum *reported,
			       int stage)
{
	return reported->iteration == it->run->iteration &&
	       reported->attempt == it->reduce_attempt && reported->stage == stage;
}

/* Returns true if a node reported a different sum in this attempt and has since left. Nobody can
 * say which of the two sums is correct. */
static bool dead_differ(const struct iteration *it, int stage, const struct reported_sum *first)
{
	for (uint32_t i = 0; i < it->members->n; i++) {
		const struct member *m = &it->members->list[i];

		if ((is_of_this_attempt(it, &m->sum.reported, stage) &&
		     !agreement_same_sum(first, &m->sum.reported)) ||
		    (is_of_this_attempt(it, &m->copy.sum, stage) &&
		     !agreement_same_sum(first, &m->copy.sum)))
			return true;
	}
	return false;
}

bool commit_can_compare(const struct iteration *it, int stage)
{
	uint32_t reports = 0;

	for (uint32_t i = 0; i < it->members->n; i++)
		reports += is_of_this_attempt(it, &it->members->list[i].sum.reported, stage) +
			   is_of_this_attempt(it, &it->members->list[i].copy.sum, stage);
	return reports >= 2;
}

/* Checks that the replicas and standby copies of each stage reported sums that are equal to the
 * bit. Reports of nodes that have since died also count. -EAGAIN: a report is missing. -EPROTO:
 * sums differ, and *stage is the stage. */
static int stage_sums(struct iteration *it, int *stage)
{
	/* Comparing the sums after every report would waste time, so they are compared after the
	 * last report. */
	if (sum_missing(it->members))
		return -EAGAIN;
	for (int s = *stage = 0; s < it->run->cluster->n_stages; *stage = ++s) {
		const struct reported_sum *first = NULL;
		bool differ = false;

		for (uint32_t i = 0; i < it->members->n; i++) {
			const struct member *m = &it->members->list[i];

			if (!member_is_replica(m) || member_stage(it->run, m) != s)
				continue;
			first = first ? first : &m->sum.reported;
			differ = differ || !agreement_same_sum(first, &m->sum.reported);
		}
		if (!first)
			return -EAGAIN; /* the stage has no replica */
		for (uint32_t i = 0; i < it->members->n; i++) {
			const struct member *m = &it->members->list[i];

			if (!copies_awaited(m) || m->copy.stage != s)
				continue;
			differ = differ || !agreement_same_sum(first, &m->copy.sum);
		}
		if (differ || dead_differ(it, s, first))
			return -EPROTO;
		it->backups->stage_squares[s] = first->squares;
	}
	return 0;
}

/* Fills in the figures of the iteration. The iteration's duration ends with the last backward
 * pass, and the time of the sums is a separate figure. The tokens per second include the time of
 * the sums, but the idle fraction does not. */
static void fill_iteration(struct iteration *it, const struct msg_commit *m, double norm,
			   struct msg_see_iteration *see)
{
	const struct plan_predicted *predicted = &it->run->plan->plan->predicted;
	const struct progress *p = &it->progress;
	double loss = 0, seconds = (double)(p->last_backward_us - p->started_us) * 1e-6;
	int64_t since_us =
		p->started_us < it->run->committed_us ? p->started_us : it->run->committed_us;

	for (uint32_t i = 0; i < it->routes.n; i++)
		loss += it->routes.microbatches[i].loss;
	*see = (struct msg_see_iteration){
		.iteration = it->run->iteration,
		.epoch = it->run->epoch,
		.loss = run_is_rehearsal(it->run) ? NAN : (float)(loss / it->routes.n),
		.iteration_s = (float)(seconds / it->run->unit_s),
		.predicted_s = (float)predicted->iteration_s,
		.sync_s = (float)((double)(it->run->now_us - p->last_backward_us) * 1e-6 /
				  it->run->unit_s),
		.predicted_sync_s = (float)plan_visible_sync_s(it->run->plan->plan),
		.real_s = (float)((double)(it->run->now_us - since_us) * 1e-6),
		.collisions = p->collisions,
		.wait_s = (float)(p->wait_s / it->run->unit_s),
		.gradient_norm = (float)norm,
		.clip = m->visits.n ? m->scale : m->scale * (float)it->routes.n,
		.lr = m->lr,
		.alive = members_live(it->members),
		.path_length = (uint32_t)it->run->plan->plan->path_length,
		.rerun = it->routes.rerun,
		.at_us = it->run->now_us,
		.wall_us = clock_wall_us(),
		.wire = (uint8_t)it->run->cluster->formats.wire,
		.sum_wire = (uint8_t)it->run->cluster->formats.sum_wire,
	};
	if (!run_is_rehearsal(it->run))
		see->tokens_per_s = (float)((double)it->routes.n * it->run->training.hyper.batch *
					    it->run->training.hyper.sequence /
					    ((double)(it->run->now_us - p->started_us) * 1e-6));
	see->idle_fraction = (float)(1 - p->busy_s / (seconds * members_live(it->members)));
	fill_from_plan(see, it->run->plan->plan);
}

/* Returns the seconds that all nodes together spent computing. A task that began but never ended,
 * because its node died, does not count. */
static double busy_seconds(const struct progress *p)
{
	int64_t began_us[MSG_NODES] = { 0 }, busy_us = 0;

	for (uint32_t i = 0; i < p->n_events; i++) {
		const struct msg_task_event *e = &p->events[i];

		if (e->type == WORK_STARTS)
			began_us[e->node] = e->at_us;
		else if (e->type == WORK_ENDS && began_us[e->node] != 0)
			busy_us += e->at_us - began_us[e->node];
		if (e->type == WORK_ENDS)
			began_us[e->node] = 0;
	}
	return (double)busy_us * 1e-6;
}

static void remember_prediction(struct iteration *it, const struct msg_see_iteration *see)
{
	struct prediction_record *r = &it->prediction;

	if (see->rerun > 0 || see->iteration_s <= 0)
		return;
	r->errors[r->next] = fabsf(see->iteration_s - see->predicted_s) / see->iteration_s;
	r->next = (r->next + 1) % 64;
	if (r->n < 64)
		r->n++;
}

static void check_promise(struct iteration *it, const struct msg_see_iteration *see)
{
	struct promise *r = &it->promise;
	double off = r->predicted_s > 0 ? (double)see->iteration_s / r->predicted_s - 1 : 0;

	if (!r->due || see->rerun > 0)
		return;
	r->due = false;
	note(it->run, NOTE_PREDICTION, -1, 0,
	     "%.80s: %.3g > %.3g s predicted, %.3g s measured (%+.0f%%) %s", r->what, r->before_s,
	     r->predicted_s, (double)see->iteration_s, 100 * off,
	     fabs(off) < 0.05                   ? "ok"
	     : shared_machines_any(it->members) ? "on shared machines"
	     : fabs(off) < 0.15                 ? "WARN"
						: "MISS");
}

static void announce_commit(struct iteration *it, const struct msg *m,
			    const struct msg_see_iteration *see)
{
	struct msg shown = { .type = MSG_SEE_ITERATION, .u.see_iteration = *see };
	const struct member *joined = NULL;

	record_devices_event(it->members);
	it->run->committed = it->run->iteration;
	for (uint32_t i = 0; i < it->members->n; i++) {
		struct member *r = &it->members->list[i];

		if (r->copy.sum_state != COPY_NO_SUM)
			r->copy.last_commit_sent = it->run->committed;
		if (r->copy.sum_state != COPY_NO_SUM && !member_is_replica(r))
			member_send(it->run, r, m);
		if (!member_is_replica(r))
			continue;
		if (stacking_lacks(it->run, r, m->u.commit.stack_from)) {
			member_apply(it->run, r, EVENT_LOST,
				     "its stage starts from a copy that it does not have");
			continue;
		}
		r->weights.iterations = r->weights.last_commit_sent = it->run->committed;
		r->weights.stage = (uint8_t)member_stage(it->run, r);
		r->weights.hash_agrees = true;
		r->weights.hash = 0; /* MSG_COMMITTED will report the new hash */
		r->compute.spent_from_us = it->run->committed_us;
		member_send(it->run, r, m);
		if (r->state == MEMBER_SUMMING) {
			spares_admit(it->members, r);
			member_apply(it->run, r, EVENT_ADMIT, "");
			note(it->run, NOTE_EVENT, r->id, 'R', "n%02u S%d joined at it%llu", r->id,
			     member_stage(it->run, r), (unsigned long long)it->run->committed);
			/* A request for a plan names one joiner as its reason. A joiner that waits
			 * as a spare is named only if no other node has joined. */
			if (!joined || spares_wait(it->members, joined))
				joined = r;
		}
	}
	if (joined)
		replan_joined(it->planning, joined);
	record_iteration(it, see);
	consoles_tell(it->run, &shown);
	remember_prediction(it, see);
	check_promise(it, see);
	it->run->committed_us = it->run->now_us;
}

/* Sets the factors of the summed gradients. The sums are divided by the number of microbatches or,
 * with --grad-norm visits, by the number of visits to each stage. The result is then clipped.
 * Returns the norm of the whole gradient, divided but not clipped. */
static double set_scale(const struct iteration *it, struct msg_commit *m)
{
	const double *squares = it->backups->stage_squares;
	uint32_t n_stages = (uint32_t)it->run->cluster->n_stages;
	bool by_visits = it->run->options.training.by_visits;
	double sum = 0, divisor = by_visits ? 1 : it->routes.n;

	if (by_visits) {
		m->visits.n = n_stages;
		routes_visits(&it->routes, m->visits.of, n_stages);
	}
	for (uint32_t s = 0; s < n_stages; s++) {
		double visits = by_visits && m->visits.of[s] ? m->visits.of[s] : 1;

		sum += squares[s] / (visits * visits);
	}
	m->scale = hyper_scale(&it->run->training.hyper, sum, divisor);
	return sqrt(sum) / divisor;
}

static void decide_commit(struct iteration *it)
{
	struct msg m = { .type = MSG_COMMIT };
	double norm;
	struct msg_see_iteration see;
	const struct adamw *h = &it->run->training.hyper.adamw;
	int sum_of[MSG_NODES], rc;
	struct error err = { "" };

	for (uint32_t i = 0; i < it->members->n; i++)
		sum_of[i] = it->members->list[i].sum.counts ? it->members->list[i].sum.stage : -1;
	if (routes_audit(&it->routes, sum_of, &err) != 0) {
		note(it->run, NOTE_ALERT, -1, 0, "not committed: %s", err.text);
		controller_finish(it->members, 1, err.text);
		return;
	}
	m.u.commit = (struct msg_commit){
		.iteration = it->run->iteration,
		.attempt = it->reduce_attempt,
		.lr = rates_of(it->run, it->run->iteration),
		.beta1 = h->beta1,
		.beta2 = h->beta2,
		.eps = h->eps,
		.weight_decay = h->weight_decay,
		.stack_from = stacking_due(it->backups),
	};
	norm = set_scale(it, &m.u.commit);
	it->progress.busy_s = busy_seconds(&it->progress);
	fill_iteration(it, &m.u.commit, norm, &see);
	rc = record_commit(it, &m.u.commit, &see, &err);
	if (rc == -ENOSPC || rc == -EBUSY)
		disk_refused(it->run, rc);
	else if (rc != 0)
		controller_unrecorded(it->members,
				      /* No agent knows of this commit yet, so the last commit
				       * remains valid */
				      err.text);
	if (rc != 0)
		return;
	if (m.u.commit.stack_from)
		stacking_begin(it->backups, m.u.commit.stack_from);
	else
		skip_phases_postpone(it->planning);
	announce_commit(it, &m, &see);
	rates_turn(it->run);
	checkpoint_when_due(it->backups);
	it->evaluation.wanted = it->run->options.eval_every > 0 &&
				(it->run->committed % it->run->options.eval_every == 0 ||
				 it->run->committed == rates_last(it->run));
	set_phase(it->run, PHASE_COMMITTING);
}

/* Repeats the sums if they differ for the first time in this iteration, because a flipped bit may
 * be the cause. If sums differ again, excludes the nodes in the minority. */
static void take_differing(struct iteration *it, int stage)
{
	if (++it->n_differing > 1) {
		agreement_sums(it->members, stage);
		return;
	}
	note(it->run, NOTE_ALERT, -1, 0, "the nodes of S%d reported different sums and sum again",
	     stage);
	it->run->requests.restart_sums = true;
}

void commit_when_reduced(struct iteration *it)
{
	int stage, rc = stage_sums(it, &stage);
	double sum_squares = 0;

	if (rc == -EAGAIN)
		return;
	for (int s = 0; rc == 0 && s < it->run->cluster->n_stages; s++)
		sum_squares += it->backups->stage_squares[s];
	if (rc != 0) {
		take_differing(it, stage);
	} else if (!isfinite(sum_squares)) {
		if (!exclude_try_skipping(it->members, it->run->epoch,
					  "the gradient is not finite"))
			training_diverged(it->members, "the gradient is not finite");
	} else {
		decide_commit(it);
	}
}

static void keep_reported_sum(struct reported_sum *to, const struct msg_reduced *r)
{
	to->slices = alloc_resize(to->slices, r->n_slices, sizeof(*to->slices));
	if (r->n_slices > 0)
		memcpy(to->slices, r->slices, r->n_slices * sizeof(*to->slices));
	to->n = r->n_slices;
	to->iteration = r->iteration;
	to->attempt = r->attempt;
	to->stage = r->stage;
	to->squares = r->sum_squares;
}

/* Excludes a replica that reports its sum although it has not counted all of its gradients. */
static bool lacks_gradient(struct iteration *it, struct member *m)
{
	int64_t id = routes_lacking(&it->routes, m->id);

	if (id < 0)
		return false;
	note(it->run, NOTE_ALERT, m->id, 0,
	     "n%02u has reported its sum, but not that it counted m%02lld", m->id, (long long)id);
	exclude_member(it->members, m, "reported a sum that lacks a gradient");
	return true;
}

void iteration_reduced(struct iteration *it, struct member *m, const struct msg_reduced *r)
{
	if ((it->run->phase != PHASE_REDUCING && it->run->phase != PHASE_COMPUTING) ||
	    r->iteration != it->run->iteration || r->attempt != it->reduce_attempt ||
	    r->stage >= MSG_STAGES || it->summing[r->stage] == 0)
		return;
	if (r->n_slices != it->summing[r->stage]) {
		if (member_is_replica(m))
			exclude_member(it->members, m,
				       "summed over another number of replicas than ordered");
		return;
	}
	if (m->copy.sum_state != COPY_NO_SUM && r->stage == m->copy.stage) {
		keep_reported_sum(&m->copy.sum, r);
		copies_sum_reported(m);
		if (it->run->phase == PHASE_REDUCING)
			commit_when_reduced(it);
		return;
	}
	if (!member_is_replica(m) || r->stage != member_stage(it->run, m))
		return;
	/* The replica has checked its inputs, so an absurd sum is its own fault. */
	if (!(r->sum_squares >= 0 && r->sum_squares < MOST_SQUARES)) {
		exclude_for_number(it->members, m, it->run->epoch, "reported an impossible sum");
		return;
	}
	if (lacks_gradient(it, m))
		return;
	keep_reported_sum(&m->sum.reported, r);
	m->sum.is_done = true;
	it->progress.reduced_us = it->run->now_us;
	it->run->progress++;
	if (it->run->phase == PHASE_REDUCING)
		commit_when_reduced(it);
}

/* Returns true if the controller announced this commit of this stage to the node. A report about
 * any other commit proves nothing. */
static bool was_announced(const struct run *run, const struct member *m,
			  const struct msg_committed *r)
{
	if (r->iteration > run->committed)
		return false; /* the run has gone back to a checkpoint older than this commit */
	return (r->stage == m->weights.stage && r->iteration == m->weights.last_commit_sent) ||
	       (r->stage == m->copy.stage && (r->iteration == m->copy.last_commit_sent ||
					      r->iteration == m->weights.last_commit_sent));
}

/* Returns true if the report is about a standby copy that the controller refused and the node is
 * fetching again. The node will report the new copy too. */
static bool is_fetched_again(const struct member *m, const struct msg_committed *r)
{
	return r->stage == m->copy.stage && (r->copy || r->stage != m->weights.stage) &&
	       m->copy.state == COPY_FETCHING;
}

/* Takes the weights' hash from a node that is not a replica at the moment. A restarted controller
 * announces the last commit again to such nodes, because one of them may hold the only weights of
 * its stage. */
static void take_late_report(const struct run *run, struct member *m, const struct msg_committed *r)
{
	if (r->copy || r->stage != m->weights.stage || r->iteration != run->committed ||
	    r->iteration != m->weights.last_commit_sent)
		return;
	m->weights.iterations = r->iteration;
	m->weights.hash = r->hash;
}

/* Takes the node's report of how long its device computed in the committed iteration, once for each
 * commit. No time may exceed the real time since the previous commit. Without this limit, a false
 * report of one node could outweigh all others in the totals that consoles show. */
static void take_device_times(struct run *run, struct member *m, const struct msg_committed *r)
{
	if (m->compute.spent_from_us == 0 || !device_time_is_sane(&r->spent) ||
	    device_time_total_us(&r->spent) == 0)
		return;
	m->compute.spent = r->spent;
	device_time_limit(&m->compute.spent, (uint64_t)(run->now_us - m->compute.spent_from_us));
	m->compute.spent_from_us = 0;
	m->compute.spent_in = run->committed;
	record_device(run, m);
}

void iteration_committed(struct members *members, struct member *m, const struct msg_committed *r)
{
	if (!was_announced(members->run, m, r))
		admission_stray(members->run, m, "reports commits that were not announced to it");
	else if (!is_fetched_again(m, r))
		record_hash(members->run, m->id, r->stage, r->iteration, r->hash);
	if (r->copy || r->stage != m->weights.stage ||
	    !(member_is_replica(m) || members->run->phase == PHASE_GATHERING)) {
		take_late_report(members->run, m, r);
		standbys_committed(members, m, r);
		return;
	}
	if (r->iteration != members->run->committed || r->iteration != m->weights.last_commit_sent)
		return; /* the report is not about the newest commit */
	/* When the controller restarted, the node had only the sum of this commit. The repeated
	 * announcement of the commit made the node apply the sum, so the node holds the weights
	 * now. */
	if (members->run->phase == PHASE_GATHERING && members->run->resumed) {
		if (r->stage == member_stage(members->run, m))
			member_apply(members->run, m, EVENT_HOLDS, NULL);
		m->weights.iterations = r->iteration;
	}
	m->weights.hash = r->hash;
	m->shown.is_stale = true;
	take_device_times(members->run, m, r);
	if (member_is_replica(m))
		agreement_check_hash(members, m);
}
