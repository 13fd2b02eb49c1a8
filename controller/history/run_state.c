/* run_state.c - what a controller that takes the run over must know beside what was committed: saved whenever it
 * changes, and loaded again.
 */
#include "controller/history/run_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "controller/controller.h"
#include "controller/members/member.h"
#include "schedule/execution/jitter.h"

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

/* An array each of what every node has, then the numbers that the command line may say anew. */
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

int resume_load(struct controller *c, struct error *err)
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
