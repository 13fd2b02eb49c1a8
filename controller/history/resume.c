/* resume.c - taking over a run: after the controller's end, or its death at any moment.
 *
 * The store says what was committed; agents say what they hold. An agent that holds the last
 * commit goes on as it is. One that missed its announcement, but has the sum that was
 * committed, is told the commit again. Any other fetches the weights from those. The iteration
 * that was under way starts over, with attempts above every earlier one, so that what still
 * travels is known as old. The writer's epoch in the store fences off a predecessor that only
 * slept.
 */
#include "controller/history/resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller.h"
#include "controller/history/record.h"
#include "controller/history/run_state.h"
#include "controller/members/assign.h"
#include "controller/members/member.h"
#include "controller/operator/journal.h"
#include "controller/operator/console_messages.h"
#include "controller/weights/copies.h"
#include "controller/weights/restore.h"
#include "model/hash.h"

/* Attempts that a controller may use up, and how many controllers; of the many after these each has fewer, for they
 * can hardly live long. */
enum { ATTEMPTS = 1 << 16, ATTEMPTS_LATER = 1 << 9, CONTROLLERS = 1 << 13 };

int resume_numbers(uint64_t generation, uint32_t *first)
{
	uint64_t n = generation <= CONTROLLERS ? generation * ATTEMPTS
					       : CONTROLLERS * (uint64_t)ATTEMPTS + (generation - CONTROLLERS) * ATTEMPTS_LATER;

	/* What agents and records take for an attempt */
	if (generation > INT32_MAX || n > (1u << 30))
		return -ERANGE;
	*first = (uint32_t)n;
	return 0;
}

static bool said_anew(const struct options *o)
{
	return o->overridden.iterations || o->overridden.eval_every || o->overridden.eval_batches ||
	       o->overridden.checkpoint_every;
}

/* ---- the history, as consoles see it ---- */

static int see_commit(void *context, const struct store_commit *s)
{
	struct controller *c = context;
	struct msg_see_iteration see = {
		.iteration = s->iteration,
		.epoch = s->epoch,
		.loss = s->loss,
		.iteration_s = (float)s->iteration_s,
		.predicted_s = (float)s->predicted_s,
		.sync_s = (float)s->sync_s,
		.real_s = (float)s->real_s,
		.collisions = s->collisions,
		.wait_s = (float)s->wait_s,
		.gradient_norm = (float)s->gradient_norm,
		.lr = s->lr,
		.alive = s->alive,
		.path_length = s->path_length,
		.rerun = s->rerun,
		.at_us = c->run.now_us,
	};

	record_keep(&c->run, &see);
	c->run.last_commit =
		(struct msg_commit){ s->iteration, s->attempt, s->scale, s->lr,
				     s->beta1,     s->beta2,   s->eps,   s->weight_decay };
	return 0;
}

static int see_validation(void *context, const struct store_validation *v)
{
	struct controller *c = context;
	struct msg_see_validation see = { v->iteration, (float)v->loss, 0 };

	record_keep_validation(&c->run, &see);
	return 0;
}

static int see_plan(void *context, const struct store_plan *p)
{
	struct controller *c = context;

	record_plan_file(&c->run, p->epoch, p->plan);
	fill_planned(c->run.history.curves.history, c->run.history.curves.n_history, p);
	if (p->epoch > c->run.epoch)
		c->run.epoch = p->epoch;
	return 0;
}

/* What consoles are told of, and the newest plan: however long the run is, that is as much. */
static int see_history(struct controller *c, struct error *err)
{
	uint64_t from = c->run.committed > KEPT_CURVE ? c->run.committed - KEPT_CURVE + 1 : 1;
	int rc =
		store_each_commit(c->run.history.store, from, c->run.committed, see_commit, c, err);

	if (rc == 0)
		rc = store_each_validation(c->run.history.store, see_validation, c, err);
	if (rc == 0)
		rc = store_each_plan(c->run.history.store,
				     c->run.history.curves.n_history
					     ? c->run.history.curves.history[0].epoch
					     : 0,
				     see_plan, c, err);
	if (rc == 0)
		rc = store_last_note(c->run.history.store, &c->run.journal.last, err);
	return rc;
}

static int see_who_was_there(struct members *members, struct error *err)
{
	struct store_commit last;
	int rc;

	for (uint32_t i = 0; i < members->n; i++)
		members->list[i].is_awaited = members->run->committed == 0;
	if (members->run->committed == 0)
		return 0;
	rc = store_read_commit(members->run->history.store, members->run->committed, &last, err);
	if (rc != 0)
		return rc;
	for (size_t r = 0; r < last.n_reductions; r++)
		for (size_t i = 0; i < last.reductions[r].n_nodes; i++)
			if (last.reductions[r].nodes[i] < members->n)
				members->list[last.reductions[r].nodes[i]].is_awaited = true;
	store_commit_clear(&last);
	return 0;
}

/* Agents hash as this program does: what the record says of weights and files must be comparable. */
static int check_hash(const struct run *r_, struct error *err)
{
	const struct store_run *run = store_run_of(r_->history.store);

	if (run->hash && strcmp(run->hash, HASH_NAME) == 0)
		return 0;
	return error_set(err, -EPROTONOSUPPORT,
			 "%s: the run's hashes are %s, this program's " HASH_NAME
			 ": it goes on with the build that began it (version %s)",
			 r_->options.run_dir, run->hash ? run->hash : "an earlier build's",
			 run->version);
}

int resume_begin(struct controller *c, struct error *err)
{
	uint64_t generation = store_writer_epoch(c->run.history.store) - 1;
	int rc = check_hash(&c->run, err);

	if (rc == 0)
		rc = record_folder(&c->run, err);
	if (rc != 0)
		return rc;
	rc = resume_load(&c->members, err);
	if (rc == -ENOENT) { /* it died before any agent was told its stage */
		note(&c->run, NOTE_EVENT, -1, 0, "the run never got under way: it begins");
		return 0;
	}
	if (rc == 0)
		rc = store_last_commit(c->run.history.store, &c->run.committed, err);
	if (rc == 0)
		rc = see_history(c, err);
	if (rc == 0)
		rc = see_who_was_there(&c->members, err);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < c->run.options.n_acts; i++) /* the predecessor did those */
		c->run.options.acts[i].done =
			c->run.options.acts[i].iteration <= c->run.committed + 1;
	c->run.training.corpus_hash = store_run_of(c->run.history.store)->corpus_hash;
	c->run.resumed = true;
	c->run.iteration = c->run.committed + 1;
	c->weights.saving.last = restore_newest(&c->run);
	if (resume_numbers(generation, &c->run.first_attempt) != 0)
		return error_set(
			err, -ERANGE,
			"%s: the run was taken over %llu times: no numbers are left for another",
			c->run.options.run_dir, (unsigned long long)generation);
	c->members.assignments = c->operators.commands = generation << 32;
	c->run.faults.first = c->run.first_attempt;
	note(&c->run, NOTE_EVENT, -1, 0, "the run was taken over after it%llu (controller %llu)",
	     (unsigned long long)c->run.committed, (unsigned long long)generation + 1);
	if (!said_anew(&c->run.options))
		return 0;
	note(&c->run, NOTE_EVENT, -1, 0,
	     "said anew: iterations %llu, validations every %u, of %u, checkpoints every %u",
	     (unsigned long long)c->run.options.iterations, c->run.options.eval_every,
	     c->run.options.eval_batches, c->run.options.checkpoint_every);
	return resume_save(&c->members);
}

/* ---- agents that were here before ---- */

/* Further on is only who holds what the run has gone back from, and will compute anew. */
static bool is_last_or_before(const struct run *run, uint64_t iteration)
{
	return iteration == run->committed || iteration + 1 == run->committed;
}

/* A copy that cannot follow is let go. */
static void take_copy(struct members *members, struct member *m)
{
	const struct msg_hello *h = &m->hello;

	if (h->keeps >= members->run->cluster->n_stages)
		return;
	m->copy.stage = h->keeps;
	if (!is_last_or_before(members->run, h->kept)) {
		copies_release(members, m);
		return;
	}
	m->copy.is_whole = true;
	m->copy.iterations = h->kept;
	m->copy.hash = h->kept_hash;
}

/* To who may have missed it, while nobody else may have its stage: if it has that sum it answers MSG_COMMITTED, of its
 * weights and of its copy. */
static void tell_again(struct run *run, struct member *m)
{
	struct msg again = { .type = MSG_COMMIT, .u.commit = run->last_commit };
	bool copy = m->copy.is_whole && m->copy.iterations < run->committed;
	bool awaited = run->phase == PHASE_GATHERING || run->phase == PHASE_STALLED;

	if (!awaited || run->last_commit.iteration != run->committed ||
	    (m->hello.committed + 1 != run->committed && !copy) || member_send(run, m, &again) != 0)
		return;
	m->weights.last_commit_sent = run->committed;
	m->copy.last_commit_sent = copy ? run->committed : 0;
}

void resume_member(struct members *members, struct member *m)
{
	const struct msg_hello *h = &m->hello;
	bool gathering = members->run->phase == PHASE_GATHERING;

	if (!members->run->resumed)
		return;
	if (gathering && members->run->committed == 0 &&
	    (h->run != members->run->id || h->stage != member_stage(members->run, m))) {
		/* The seed's weights */
		members_assign(members, m, member_stage(members->run, m), false);
		return;
	}
	if (h->run != members->run->id)
		return;
	take_copy(members, m);
	tell_again(members->run, m);
	if (!h->hash || h->committed > members->run->committed)
		return;
	m->weights.stage = h->stage;
	m->weights.iterations = h->committed;
	m->checkpoint.unready_us = members->run->now_us;
	if (!gathering || h->committed != members->run->committed ||
	    h->stage != member_stage(members->run, m))
		return;
	m->assigned.is_ready = true;
	m->assigned.number = 0;
	m->weights.hash = h->hash;
	m->weights.hash_agrees = true;
}
