/* commit.c - the decision.
 *
 * When every replica has its stage's sum, and keepers have it too, the sums are compared to the bit, the routes
 * are audited, and the commit is written durably; only then it is announced. A crash leaves the state before it or
 * after it.
 */
#include "controller/iteration/commit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/history/disk.h"
#include "controller/history/finish.h"
#include "controller/history/record.h"
#include "controller/members/admission.h"
#include "controller/members/member.h"
#include "controller/members/node_state.h"
#include "controller/operator/journal.h"
#include "controller/operator/console_messages.h"
#include "controller/operator/stream.h"
#include "controller/planning/replan.h"
#include "controller/trust/agreement.h"
#include "controller/trust/exclude.h"
#include "controller/weights/checkpoints.h"
#include "controller/weights/copies.h"
#include "controller/weights/standbys.h"

/* Of a gradient that any training survives it is far below. */
static const double MOST_SQUARES = 1e20;

static bool sum_missing(const struct controller *c)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if ((m->replica && !m->reduced) || (copies_awaited(m) && !m->copy_reduced))
			return true;
	}
	return false;
}

static bool is_of_this_attempt(const struct controller *c, const struct told_sum *told, int stage)
{
	return told->iteration == c->iteration && told->attempt == c->reduce_attempt && told->stage == stage;
}

/* Somebody has told another one in this attempt, and is gone since: which of them is right nobody can tell. */
static bool gone_differ(const struct controller *c, int stage, const struct told_sum *first)
{
	for (uint32_t i = 0; i < c->n_members; i++) {
		const struct member *m = &c->members[i];

		if ((is_of_this_attempt(c, &m->sum, stage) && !agreement_same_sum(first, &m->sum)) ||
		    (is_of_this_attempt(c, &m->copy_sum, stage) && !agreement_same_sum(first, &m->copy_sum)))
			return true;
	}
	return false;
}

bool commit_can_compare(const struct controller *c, int stage)
{
	uint32_t words = 0;

	for (uint32_t i = 0; i < c->n_members; i++)
		words += is_of_this_attempt(c, &c->members[i].sum, stage) + is_of_this_attempt(c, &c->members[i].copy_sum, stage);
	return words >= 2;
}

/* The replicas of a stage, and those that keep a copy, must have got the same sum, to the bit; so must who
 * has died since. -EPROTO: those of *stage have not.
 */
static int stage_sums(struct controller *c, double *total, int *stage)
{
	*total = 0;
	if (sum_missing(c)) /* asked after each sum that comes: comparing is for the last */
		return -EAGAIN;
	for (int s = *stage = 0; s < c->cluster->n_stages; *stage = ++s) {
		const struct told_sum *first = NULL;
		bool differ = false;

		for (uint32_t i = 0; i < c->n_members; i++) {
			const struct member *m = &c->members[i];

			if (!m->replica || member_stage(c, m) != s)
				continue;
			first = first ? first : &m->sum;
			differ = differ || !agreement_same_sum(first, &m->sum);
		}
		if (!first)
			return -EAGAIN; /* stalled */
		for (uint32_t i = 0; i < c->n_members; i++) {
			const struct member *m = &c->members[i];

			if (!copies_awaited(m) || m->keeps != s)
				continue;
			differ = differ || !agreement_same_sum(first, &m->copy_sum);
		}
		if (differ || gone_differ(c, s, first))
			return -EPROTO;
		*total += first->squares;
		c->stage_squares[s] = first->squares;
	}
	return 0;
}

/* Times are measured from the start to the last backward; what came after that is the sums' part. Tokens and idle time
 * are of the whole. */
static void fill_iteration(struct controller *c, const struct msg_commit *m, double sum_squares,
			   struct msg_see_iteration *see)
{
	const struct plan_predicted *predicted = &c->current->plan->predicted;
	const struct progress *p = &c->progress;
	double loss = 0, seconds = (double)(p->last_backward_us - p->started_us) * 1e-6;
	int64_t since_us = p->started_us < c->committed_us ? p->started_us : c->committed_us;

	for (uint32_t i = 0; i < c->routes.n; i++)
		loss += c->routes.microbatches[i].loss;
	*see = (struct msg_see_iteration){
		.iteration = c->iteration,
		.epoch = c->epoch,
		.loss = (float)(loss / c->routes.n),
		.iteration_s = (float)(seconds / c->unit_s),
		.predicted_s = (float)predicted->iteration_s,
		.sync_s = (float)((double)(c->now_us - p->last_backward_us) * 1e-6 / c->unit_s),
		.predicted_sync_s = (float)plan_visible_sync_s(c->current->plan),
		.real_s = (float)((double)(c->now_us - since_us) * 1e-6),
		.collisions = p->collisions,
		.wait_s = (float)(p->wait_s / c->unit_s),
		.gradient_norm = (float)(sqrt(sum_squares) / c->routes.n),
		.clip = m->scale * (float)c->routes.n,
		.lr = m->lr,
		.alive = members_live(c),
		.path_length = (uint32_t)c->current->plan->path_length,
		.rerun = c->routes.rerun,
		.at_us = c->now_us,
	};
	see->tokens_per_s = (float)((double)c->routes.n * c->recipe.batch * c->recipe.sequence /
				    ((double)(c->now_us - p->started_us) * 1e-6));
	see->idle_fraction = (float)(1 - p->busy_s / (seconds * members_live(c)));
	fill_algorithm(see, c->current->plan);
}

/* Seconds that all nodes computed, together. A task that began and did not end, as its node died, is nobody's work. */
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

static void remember_prediction(struct controller *c, const struct msg_see_iteration *see)
{
	struct prediction_record *r = &c->record;

	if (see->rerun > 0 || see->iteration_s <= 0)
		return;
	r->errors[r->next] = fabsf(see->iteration_s - see->predicted_s) / see->iteration_s;
	r->next = (r->next + 1) % 64;
	if (r->n < 64)
		r->n++;
}

static void settle_receipt(struct controller *c, const struct msg_see_iteration *see)
{
	struct receipt *r = &c->receipt;
	double off = r->said_s > 0 ? (double)see->iteration_s / r->said_s - 1 : 0;

	if (!r->due || see->rerun > 0)
		return;
	r->due = false;
	note(c, NOTE_PREDICTION, -1, 0, "%.80s: %.3g > %.3g s said, %.3g s took (%+.0f%%) %s", r->what,
	     r->before_s, r->said_s, (double)see->iteration_s, 100 * off,
	     fabs(off) < 0.05 ? "ok" : fabs(off) < 0.15 ? "WARN" : "MISS");
}

static void announce_commit(struct controller *c, const struct msg *m, const struct msg_see_iteration *see)
{
	struct msg told = { .type = MSG_SEE_ITERATION, .u.see_iteration = *see };

	c->committed = c->iteration;
	for (uint32_t i = 0; i < c->n_members; i++) {
		struct member *r = &c->members[i];

		if (r->copies)
			r->copy_told = c->committed;
		if (r->copies && !r->replica)
			member_send(c, r, m);
		if (!r->replica)
			continue;
		r->holds = r->commit_told = c->committed;
		r->held_stage = (uint8_t)member_stage(c, r);
		r->hash_agrees = true;
		r->hash = 0; /* told by MSG_COMMITTED */
		member_send(c, r, m);
		if (r->state == NODE_SYNCING) {
			members_set(c, r, NODE_LIVE, "");
			note(c, NOTE_EVENT, r->id, 'R', "n%02u S%d joined at it%llu", r->id,
			     member_stage(c, r), (unsigned long long)c->committed);
			replan(c, "a node joined");
		}
	}
	record_iteration(c, see);
	consoles_tell(c, &told);
	remember_prediction(c, see);
	settle_receipt(c, see);
	c->committed_us = c->now_us;
}

static void decide_commit(struct controller *c, double sum_squares)
{
	struct msg m = { .type = MSG_COMMIT };
	struct msg_see_iteration see;
	const struct adamw *h = &c->recipe.adamw;
	int sum_of[MSG_NODES], rc;
	struct error err = { "" };

	for (uint32_t i = 0; i < c->n_members; i++)
		sum_of[i] = c->members[i].in_sum ? c->members[i].sum_stage : -1;
	if (routes_audit(&c->routes, sum_of, &err) != 0) {
		note(c, NOTE_ALERT, -1, 0, "not committed: %s", err.text);
		controller_finish(c, 1, err.text);
		return;
	}
	m.u.commit = (struct msg_commit){
		.iteration = c->iteration, .attempt = c->reduce_attempt,
		.scale = recipe_scale(&c->recipe, sum_squares, c->routes.n),
		.lr = recipe_lr(&c->recipe, c->iteration), .beta1 = h->beta1, .beta2 = h->beta2,
		.eps = h->eps, .weight_decay = h->weight_decay,
	};
	c->progress.busy_s = busy_seconds(&c->progress);
	fill_iteration(c, &m.u.commit, sum_squares, &see);
	rc = record_commit(c, &m.u.commit, sum_squares, &see, &err);
	if (rc == -ENOSPC)
		disk_refused(c);
	else if (rc != 0)
		controller_unrecorded(c, err.text); /* nothing was announced: the last commit stands */
	if (rc != 0)
		return;
	announce_commit(c, &m, &see);
	checkpoint_when_due(c);
	c->evaluation.wanted =
		c->options.eval_every > 0 && (c->committed % c->options.eval_every == 0 ||
					      c->committed == c->options.iterations);
	set_phase(c, PHASE_COMMITTING);
}

/* Once a bit may have flipped. */
static void take_differing(struct controller *c, int stage)
{
	if (++c->n_differing > 1) {
		agreement_sums(c, stage);
		return;
	}
	note(c, NOTE_ALERT, -1, 0, "the nodes of S%d got different sums: reduced again", stage);
	c->requests.sum_anew = true;
}

void commit_when_reduced(struct controller *c)
{
	double sum_squares;
	int stage, rc = stage_sums(c, &sum_squares, &stage);

	if (rc == -EAGAIN)
		return;
	if (rc != 0) {
		take_differing(c, stage);
	} else if (!isfinite(sum_squares)) {
		note(c, NOTE_ALERT, -1, 0, "the gradient is not finite: the run stops");
		controller_finish(c, 1, "the gradient is not finite");
	} else {
		decide_commit(c, sum_squares);
	}
}

static bool told_sum(struct told_sum *to, const struct msg_reduced *r)
{
	uint64_t *slices = realloc(to->slices, (r->n_slices + 1) * sizeof(*slices));

	if (!slices)
		return false;
	if (r->n_slices > 0)
		memcpy(slices, r->slices, r->n_slices * sizeof(*slices));
	to->slices = slices;
	to->n = r->n_slices;
	to->iteration = r->iteration;
	to->attempt = r->attempt;
	to->stage = r->stage;
	to->squares = r->sum_squares;
	return true;
}

/* Excludes a replica that reports its sum before it has counted every gradient of its own. */
static bool lacks_gradient(struct controller *c, struct member *m)
{
	for (uint32_t i = 0; i < c->routes.n; i++) {
		if (!routes_lacks(&c->routes, m->id, i))
			continue;
		note(c, NOTE_ALERT, m->id, 0, "n%02u has reported its sum, but not that it counted m%02u", m->id, i);
		exclude_member(c, m, "left a gradient out");
		return true;
	}
	return false;
}

void iteration_reduced(struct controller *c, struct member *m, const struct msg_reduced *r)
{
	if ((c->phase != PHASE_REDUCING && c->phase != PHASE_COMPUTING) ||
	    r->iteration != c->iteration || r->attempt != c->reduce_attempt ||
	    r->stage >= MSG_STAGES || c->summing[r->stage] == 0)
		return;
	if (r->n_slices != c->summing[r->stage]) {
		if (m->replica)
			exclude_member(c, m, "has another sum than it was told to make");
		return;
	}
	if (m->copies && r->stage == m->keeps) {
		m->copy_reduced = told_sum(&m->copy_sum, r);
		if (c->phase == PHASE_REDUCING)
			commit_when_reduced(c);
		return;
	}
	if (!m->replica || r->stage != member_stage(c, m))
		return;
	/* What others sent was checked: it is this one's own. */
	if (!(r->sum_squares >= 0 && r->sum_squares < MOST_SQUARES)) {
		exclude_for_number(c, m, "summed a gradient that cannot be");
		return;
	}
	if (lacks_gradient(c, m))
		return;
	m->reduced = told_sum(&m->sum, r);
	c->progress.reduced_us = c->now_us;
	c->steps++;
	if (c->phase == PHASE_REDUCING)
		commit_when_reduced(c);
}

/* A member's word of any other commit, or of another stage, proves nothing. */
static bool was_told(const struct controller *c, const struct member *m, const struct msg_committed *r)
{
	if (r->iteration > c->committed)
		return false; /* the run has gone back since */
	return (r->stage == m->held_stage && r->iteration == m->commit_told) ||
	       (r->stage == m->keeps && (r->iteration == m->copy_told || r->iteration == m->commit_told));
}

/* Whether the word is of a copy that is fetched again, as it was not the stage's: the new one's word is to come. */
static bool was_given_up(const struct member *m, const struct msg_committed *r)
{
	return r->stage == m->keeps && (r->copy || r->stage != m->held_stage) && !m->kept;
}

/* The word of one that is no replica yet, or no more: after a takeover it was told the commit again, and its stage may
 * be nowhere else. */
static void take_late_word(const struct controller *c, struct member *m, const struct msg_committed *r)
{
	if (r->copy || r->stage != m->held_stage || r->iteration != c->committed || r->iteration != m->commit_told)
		return;
	m->holds = r->iteration;
	m->hash = r->hash;
}

void iteration_committed(struct controller *c, struct member *m, const struct msg_committed *r)
{
	if (!was_told(c, m, r))
		admission_stray(c, m, "tells of commits that it was not told of");
	else if (!was_given_up(m, r))
		record_hash(c, m, r->stage, r->iteration, r->hash);
	if (r->copy || r->stage != m->held_stage || !(m->replica || c->phase == PHASE_GATHERING)) {
		take_late_word(c, m, r);
		standbys_committed(c, m, r);
		return;
	}
	if (r->iteration != c->committed || r->iteration != m->commit_told)
		return; /* not the newest */
	if (c->phase == PHASE_GATHERING && c->resumed) { /* told again, and it had the sum */
		m->ready = r->stage == member_stage(c, m);
		m->holds = r->iteration;
	}
	m->hash = r->hash;
	m->changed = true;
	if (m->replica)
		agreement_told(c, m);
}
