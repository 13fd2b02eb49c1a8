/* resume.c - taking over a run: after the controller's end, or its death at any moment.
 *
 * The store says what was committed; agents say what they hold. An agent that holds the last
 * commit goes on as it is. One that missed its announcement, but has the sum that was
 * committed, is told the commit again. Any other fetches the weights from those. The iteration
 * that was under way starts over, with attempts above every earlier one, so that what still
 * travels is known as old. The writer's epoch in the store fences off a predecessor that only
 * slept.
 */
#include "controller/controller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "controller/operator/see.h"
#include "schedule/execution/jitter.h"

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

/* ---- what the store does not say ---- */

/* But for what the command line says anew. */
static void take_unsaid(struct options *o, json_int_t iterations, int eval_every,
			int eval_batches, int checkpoint_every)
{
	if (!o->said.iterations)
		o->iterations = (uint64_t)iterations;
	if (!o->said.eval_every)
		o->eval_every = (uint32_t)eval_every;
	if (!o->said.eval_batches)
		o->eval_batches = (uint32_t)eval_batches;
	if (!o->said.checkpoint_every)
		o->checkpoint_every = (uint32_t)checkpoint_every;
}

static bool said_anew(const struct options *o)
{
	return o->said.iterations || o->said.eval_every || o->said.eval_batches ||
	       o->said.checkpoint_every;
}

char *resume_options(const struct controller *c)
{
	const struct options *p = &c->options;
	json_t *o = json_pack("{s:i, s:f, s:I, s:i, s:i, s:i, s:b, s:b, s:b, s:f, s:b, s:s}", "skip",
			      (int)p->skip, "time_scale", p->time_scale, "iterations",
			      (json_int_t)p->iterations, "eval_every", (int)p->eval_every,
			      "eval_batches", (int)p->eval_batches, "checkpoint_every",
			      (int)p->checkpoint_every, "serialise", p->serialise,
			      "split_backward", p->split_backward, "overlap_sync",
			      p->overlap_sync, "robust", p->jitter, "given_assignment", p->given,
			      "algorithm", plan_algorithm_name(p->algorithm));
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;

	json_decref(o);
	return text;
}

int resume_options_again(struct controller *c, struct error *err)
{
	struct options *p = &c->options;
	int skip, every, batches, checkpoint, serialise, split, overlap, given;
	double scale, jitter;
	json_int_t iterations;
	const char *algorithm = "best"; /* earlier records say none */
	char *text = NULL;
	json_t *o;
	int rc = store_get(c->store, "options", &text, err);

	if (rc != 0)
		return rc == -ENOENT ? 0 : rc;
	o = json_loads(text, 0, NULL);
	free(text);
	rc = o && json_unpack(o, "{s:i, s:F, s:I, s:i, s:i, s:i, s:b, s:b, s:b, s:F, s:b, s?s}", "skip",
			      &skip, "time_scale", &scale, "iterations", &iterations, "eval_every",
			      &every, "eval_batches", &batches, "checkpoint_every", &checkpoint,
			      "serialise", &serialise, "split_backward", &split, "overlap_sync",
			      &overlap, "robust", &jitter, "given_assignment", &given, "algorithm",
			      &algorithm) == 0 &&
			     plan_algorithm_named(algorithm, &p->algorithm) &&
			     skip >= 0 && iterations >= 0 && every >= 0 && batches > 0 &&
			     checkpoint >= 0 && scale <= 1e6 && jitter >= 0 &&
			     jitter <= JITTER_MOST
		     ? 0
		     : -EINVAL;
	json_decref(o);
	if (rc != 0)
		return error_set(err, rc, "%s: the record of the run's options is damaged", p->run_dir);
	p->skip = (uint32_t)skip;
	p->time_scale = scale;
	p->serialise = serialise != 0;
	p->split_backward = split != 0;
	p->overlap_sync = overlap != 0;
	p->jitter = jitter;
	p->given = given != 0;
	take_unsaid(p, iterations, every, batches, checkpoint);
	return 0;
}

int resume_save(struct controller *c)
{
	json_t *stages = json_array(), *shards = json_array(), *homes = json_array();
	json_t *marked = json_array(), *keys = json_array(), *o;
	struct error err = { "" };
	char *text, key[KEYS_TEXT_SIZE];
	int rc = -ENOMEM;

	for (uint32_t i = 0; i < c->n_members; i++) {
		json_array_append_new(stages, json_integer(c->cluster->nodes[i].stage));
		json_array_append_new(shards, json_integer(c->shard_of[i]));
		json_array_append_new(homes, json_integer(c->members[i].home));
		json_array_append_new(marked, json_integer(c->members[i].marked));
		keys_text(&c->members[i].key, key);
		json_array_append_new(keys, json_string(member_has_key(&c->members[i]) ? key : ""));
	}
	o = json_pack("{s:f, s:i, s:I, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "time_scale",
		      c->options.time_scale, "path_length", (int)c->path_length, "iterations",
		      (json_int_t)c->options.iterations, "eval_every",
		      (int)c->options.eval_every, "eval_batches", (int)c->options.eval_batches,
		      "checkpoint_every", (int)c->options.checkpoint_every, "stages", stages, "shards", shards,
		      "homes", homes, "marked", marked, "keys", keys);
	text = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	if (text)
		rc = store_set(c->store, "controller", text, &err);
	if (rc != 0)
		log_line(&c->log, LOG_ERROR, "%s", text ? err.text : "out of memory");
	free(text);
	json_decref(o);
	return rc;
}

static int load_numbers(int *to, uint32_t n, const json_t *from)
{
	if (json_array_size(from) != n)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++)
		to[i] = (int)json_integer_value(json_array_get(from, i));
	return 0;
}

/* Who comes back gets its own node. Earlier records have no keys. */
static int load_keys(struct controller *c, const json_t *from)
{
	struct error ignored;

	if (from && json_array_size(from) != c->n_members)
		return -EINVAL;
	for (uint32_t i = 0; from && i < c->n_members; i++) {
		const char *text = json_string_value(json_array_get(from, i));

		if (!text || (*text && keys_parse(text, &c->members[i].key, &ignored) != 0))
			return -EINVAL;
	}
	return 0;
}

static int load_saved(struct controller *c, struct error *err)
{
	char *text = NULL;
	int stages[MSG_NODES], homes[MSG_NODES], marked[MSG_NODES] = { 0 }, rc = store_get(c->store, "controller", &text, err);
	json_t *o, *st, *sh, *ho = NULL, *ma = NULL, *ke = NULL;
	json_int_t iterations;
	int path_length, every, batches, checkpoint = (int)c->options.checkpoint_every;
	double scale;

	if (rc != 0)
		return rc;
	o = json_loads(text, 0, NULL);
	free(text);
	rc = o && json_unpack(o, "{s:F, s:i, s:I, s:i, s:i, s?i, s:o, s:o, s?o, s?o, s?o}", "time_scale", &scale,
			      "path_length", &path_length, "iterations", &iterations,
			      "eval_every", &every, "eval_batches", &batches,
			      "checkpoint_every", &checkpoint, "stages", &st, "shards", &sh, "homes", &ho,
			      "marked", &ma, "keys", &ke) == 0
		     ? 0
		     : -EINVAL;
	if (rc == 0)
		rc = load_numbers(stages, c->n_members, st);
	if (rc == 0)
		rc = load_numbers(c->shard_of, c->n_members, sh);
	if (rc == 0) /* earlier records have none */
		rc = load_numbers(homes, c->n_members, ho ? ho : st);
	if (rc == 0 && ma)
		rc = load_numbers(marked, c->n_members, ma);
	if (rc == 0)
		rc = load_keys(c, ke);
	if (rc == 0 && (path_length < 1 || path_length > c->cluster->n_stages))
		rc = -EINVAL;
	for (uint32_t i = 0; rc == 0 && i < c->n_members; i++)
		if (stages[i] >= c->cluster->n_stages || homes[i] >= c->cluster->n_stages)
			rc = -EINVAL;
	if (rc == 0) {
		for (uint32_t i = 0; i < c->n_members; i++) {
			c->cluster->nodes[i].stage = stages[i];
			c->members[i].home = homes[i];
			c->members[i].marked = c->members[i].shunned = marked[i] != 0;
		}
		c->options.time_scale = scale;
		c->unit_s = scale > 0 ? scale : 1;
		c->path_length = (uint32_t)path_length;
		take_unsaid(&c->options, iterations, every, batches, checkpoint);
	}
	json_decref(o);
	return rc ? error_set(err, rc, "%s: the controller's own record is damaged",
			      c->options.run_dir)
		  : 0;
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
	see_planned(c->history, c->n_history, p);
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
		rc = store_each_plan(c->store, c->n_history ? c->history[0].epoch : 0, see_plan, c, err);
	if (rc == 0)
		rc = store_last_note(c->store, &c->last_note, err);
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

int resume_begin(struct controller *c, struct error *err)
{
	uint64_t generation = store_writer_epoch(c->store) - 1;
	int rc = record_folder(c, err);

	if (rc != 0)
		return rc;
	rc = load_saved(c, err);
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
	if (resume_numbers(generation, &c->first_attempt) != 0)
		return error_set(err, -ERANGE, "%s: the run was taken over %llu times: no numbers are left for another",
				 c->options.run_dir, (unsigned long long)generation);
	c->own_attempt = c->first_attempt;
	c->assignments = c->commands = generation << 32;
	c->first_fault = c->first_attempt;
	carry_read(c);
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

void resume_member(struct controller *c, struct member *m)
{
	const struct msg_hello *h = &m->hello;
	struct msg again = { .type = MSG_COMMIT, .u.commit = c->last_commit };

	if (!c->resumed)
		return;
	if (c->committed == 0 && (h->run != c->run || h->stage != member_stage(c, m))) {
		members_assign(c, m, member_stage(c, m), false); /* the seed's weights */
		return;
	}
	if (h->run != c->run)
		return;
	if (h->keeps < c->cluster->n_stages && h->kept + 1 >= c->committed) {
		m->keeps = h->keeps;
		m->kept = true;
		m->kept_holds = h->kept;
	}
	if (h->committed + 1 == c->committed || h->kept + 1 == c->committed)
		m->commit_told = member_send(c, m, &again) == 0 ? c->committed : 0; /* it answers MSG_COMMITTED if it has that sum */
	m->held_stage = h->stage;
	m->holds = h->committed;
	if (!h->hash || h->committed != c->committed || h->stage != member_stage(c, m))
		return;
	m->ready = true;
	m->assignment = 0;
	m->hash = h->hash;
	m->hash_agrees = true;
}
