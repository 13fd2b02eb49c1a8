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

	if (generation > INT32_MAX || n > (1u << 30)) /* what agents and records take for an attempt */
		return -ERANGE;
	*first = (uint32_t)n;
	return 0;
}

static bool said_anew(const struct options *o)
{
	return o->said.iterations || o->said.eval_every || o->said.eval_batches ||
	       o->said.checkpoint_every;
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
		.at_us = c->now_us,
	};

	record_keep(c, &see);
	c->last_commit =
		(struct msg_commit){ s->iteration, s->attempt, s->scale, s->lr,
				     s->beta1,     s->beta2,   s->eps,   s->weight_decay };
	return 0;
}

static int see_validation(void *context, const struct store_validation *v)
{
	struct msg_see_validation see = { v->iteration, (float)v->loss, 0 };

	record_keep_validation(context, &see);
	return 0;
}

static int see_plan(void *context, const struct store_plan *p)
{
	struct controller *c = context;

	record_plan_file(c, p->epoch, p->plan);
	fill_planned(c->curves.history, c->curves.n_history, p);
	if (p->epoch > c->epoch)
		c->epoch = p->epoch;
	return 0;
}

/* What consoles are told of, and the newest plan: however long the run is, that is as much. */
static int see_history(struct controller *c, struct error *err)
{
	uint64_t from = c->committed > KEPT_CURVE ? c->committed - KEPT_CURVE + 1 : 1;
	int rc = store_each_commit(c->store, from, c->committed, see_commit, c, err);

	if (rc == 0)
		rc = store_each_validation(c->store, see_validation, c, err);
	if (rc == 0)
		rc = store_each_plan(c->store, c->curves.n_history ? c->curves.history[0].epoch : 0, see_plan, c, err);
	if (rc == 0)
		rc = store_last_note(c->store, &c->journal.last, err);
	return rc;
}

static int see_who_was_there(struct controller *c, struct error *err)
{
	struct store_commit last;
	int rc;

	for (uint32_t i = 0; i < c->n_members; i++)
		c->members[i].awaited = c->committed == 0;
	if (c->committed == 0)
		return 0;
	rc = store_read_commit(c->store, c->committed, &last, err);
	if (rc != 0)
		return rc;
	for (size_t r = 0; r < last.n_reductions; r++)
		for (size_t i = 0; i < last.reductions[r].n_nodes; i++)
			if (last.reductions[r].nodes[i] < c->n_members)
				c->members[last.reductions[r].nodes[i]].awaited = true;
	store_commit_clear(&last);
	return 0;
}

/* Agents hash as this program does: what the record says of weights and files must be comparable. */
static int check_hash(const struct controller *c, struct error *err)
{
	const struct store_run *run = store_run_of(c->store);

	if (run->hash && strcmp(run->hash, HASH_NAME) == 0)
		return 0;
	return error_set(err, -EPROTONOSUPPORT,
			 "%s: the run's hashes are %s, this program's " HASH_NAME
			 ": it goes on with the build that began it (version %s)",
			 c->options.run_dir, run->hash ? run->hash : "an earlier build's", run->version);
}

int resume_begin(struct controller *c, struct error *err)
{
	uint64_t generation = store_writer_epoch(c->store) - 1;
	int rc = check_hash(c, err);

	if (rc == 0)
		rc = record_folder(c, err);
	if (rc != 0)
		return rc;
	rc = resume_load(c, err);
	if (rc == -ENOENT) { /* it died before any agent was told its stage */
		note(c, NOTE_EVENT, -1, 0, "the run never got under way: it begins");
		return 0;
	}
	if (rc == 0)
		rc = store_last_commit(c->store, &c->committed, err);
	if (rc == 0)
		rc = see_history(c, err);
	if (rc == 0)
		rc = see_who_was_there(c, err);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < c->options.n_acts; i++) /* the predecessor did those */
		c->options.acts[i].done = c->options.acts[i].iteration <= c->committed + 1;
	c->corpus_hash = store_run_of(c->store)->corpus_hash;
	c->resumed = true;
	c->iteration = c->committed + 1;
	c->saving.last = restore_newest(c);
	if (resume_numbers(generation, &c->first_attempt) != 0)
		return error_set(err, -ERANGE, "%s: the run was taken over %llu times: no numbers are left for another",
				 c->options.run_dir, (unsigned long long)generation);
	c->assignments = c->operators.commands = generation << 32;
	c->first_fault = c->first_attempt;
	note(c, NOTE_EVENT, -1, 0, "the run was taken over after it%llu (controller %llu)",
	     (unsigned long long)c->committed, (unsigned long long)generation + 1);
	if (!said_anew(&c->options))
		return 0;
	note(c, NOTE_EVENT, -1, 0,
	     "said anew: iterations %llu, validations every %u, of %u, checkpoints every %u",
	     (unsigned long long)c->options.iterations, c->options.eval_every,
	     c->options.eval_batches, c->options.checkpoint_every);
	return resume_save(c);
}

/* ---- agents that were here before ---- */

/* Further on is only who holds what the run has gone back from, and will compute anew. */
static bool is_last_or_before(const struct controller *c, uint64_t iteration)
{
	return iteration == c->committed || iteration + 1 == c->committed;
}

/* A copy that cannot follow is let go. */
static void take_copy(struct controller *c, struct member *m)
{
	const struct msg_hello *h = &m->hello;

	if (h->keeps >= c->cluster->n_stages)
		return;
	m->keeps = h->keeps;
	if (!is_last_or_before(c, h->kept)) {
		copies_release(c, m);
		return;
	}
	m->kept = true;
	m->kept_holds = h->kept;
	m->kept_hash = h->kept_hash;
}

/* To who may have missed it, while nobody else may have its stage: if it has that sum it answers MSG_COMMITTED, of its
 * weights and of its copy. */
static void tell_again(struct controller *c, struct member *m)
{
	struct msg again = { .type = MSG_COMMIT, .u.commit = c->last_commit };
	bool copy = m->kept && m->kept_holds < c->committed;
	bool awaited = c->phase == PHASE_GATHERING || c->phase == PHASE_STALLED;

	if (!awaited || c->last_commit.iteration != c->committed || (m->hello.committed + 1 != c->committed && !copy) ||
	    member_send(c, m, &again) != 0)
		return;
	m->commit_told = c->committed;
	m->copy_told = copy ? c->committed : 0;
}

void resume_member(struct controller *c, struct member *m)
{
	const struct msg_hello *h = &m->hello;
	bool gathering = c->phase == PHASE_GATHERING;

	if (!c->resumed)
		return;
	if (gathering && c->committed == 0 && (h->run != c->run || h->stage != member_stage(c, m))) {
		members_assign(c, m, member_stage(c, m), false); /* the seed's weights */
		return;
	}
	if (h->run != c->run)
		return;
	take_copy(c, m);
	tell_again(c, m);
	if (!h->hash || h->committed > c->committed)
		return;
	m->held_stage = h->stage;
	m->holds = h->committed;
	m->unready_us = c->now_us;
	if (!gathering || h->committed != c->committed || h->stage != member_stage(c, m))
		return;
	m->ready = true;
	m->assignment = 0;
	m->hash = h->hash;
	m->hash_agrees = true;
}
