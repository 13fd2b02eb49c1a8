/* run_state.c - what a controller that takes the run over must know beside what was committed: saved whenever it
 * changes, and loaded again.
 */
#include "controller/history/run_state.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "controller/members/members.h"
#include "controller/members/member.h"

/* What a run goes on with of its options, as the record of them has it, and, for those of both, the controller's own. */
static const struct setting {
	const char *name;
	enum { WHOLE, LONG, REAL, FLAG } kind; /* uint32_t, uint64_t, double, bool */
	size_t at; /* in struct options */
	double least, most;
	/* Later: the controller's of an earlier build has none */
	enum { OF_OPTIONS, OF_BOTH, OF_BOTH_LATER } of;
	/* Whether the command line says it anew, and what is recorded does not count; 0: it cannot
	 */
	size_t overridden;
} settings[] = {
#define AT(field) .at = offsetof(struct options, field)
#define OVERRIDABLE(field) AT(field), .overridden = offsetof(struct options, overridden.field)
#define NUMBER(least_, most_) .least = (least_), .most = (most_)
	{ "skip", WHOLE, AT(skip), NUMBER(0, INT_MAX) },
	{ "time_scale", REAL, AT(time_scale), NUMBER(-HUGE_VAL, 1e6), .of = OF_BOTH },
	{ "iterations", LONG, OVERRIDABLE(iterations), NUMBER(0, HUGE_VAL), .of = OF_BOTH },
	{ "eval_every", WHOLE, OVERRIDABLE(eval_every), NUMBER(0, INT_MAX), .of = OF_BOTH },
	{ "eval_batches", WHOLE, OVERRIDABLE(eval_batches), NUMBER(1, INT_MAX), .of = OF_BOTH },
	{ "checkpoint_every", WHOLE, OVERRIDABLE(checkpoint_every), NUMBER(0, INT_MAX), .of = OF_BOTH_LATER },
	{ "serialise", FLAG, AT(serialise) },
	{ "overlap_sync", FLAG, AT(overlap_sync) },
	{ "given_assignment", FLAG, AT(assignment_given) },
#undef AT
#undef OVERRIDABLE
#undef NUMBER
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };
enum record { RECORD_OPTIONS, RECORD_CONTROLLER };

static bool is_kept(const struct setting *s, enum record in)
{
	return in == RECORD_OPTIONS || s->of != OF_OPTIONS;
}

static json_t *pack_setting(const struct options *p, const struct setting *s)
{
	const void *from = (const char *)p + s->at;

	switch (s->kind) {
	case WHOLE: return json_integer(*(const uint32_t *)from);
	case LONG: return json_integer((json_int_t)*(const uint64_t *)from);
	case REAL: return json_real(*(const double *)from);
	default: return json_boolean(*(const bool *)from);
	}
}

/* With the rest of the record, which it takes. NULL: no memory. */
static char *print_record(const struct options *p, enum record in, json_t *rest)
{
	json_t *o = json_object();
	bool whole = o && rest;
	char *text = NULL;

	for (int i = 0; whole && i < SETTINGS; i++)
		if (is_kept(&settings[i], in))
			whole = json_object_set_new(o, settings[i].name, pack_setting(p, &settings[i])) == 0;
	if (whole && json_object_update(o, rest) == 0)
		text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(o);
	json_decref(rest);
	return text;
}

/* Of the controller's own record the kind of value alone is looked at: a scale that was chosen may be any. */
static bool setting_fits(const struct setting *s, const json_t *v, enum record in)
{
	if (s->kind == FLAG)
		return json_is_boolean(v);
	if (s->kind == REAL ? !json_is_number(v) : !json_is_integer(v))
		return false;
	return in == RECORD_CONTROLLER || (json_number_value(v) >= s->least && json_number_value(v) <= s->most);
}

static bool settings_fit(const json_t *o, enum record in)
{
	for (int i = 0; i < SETTINGS; i++) {
		const struct setting *s = &settings[i];
		const json_t *v = json_object_get(o, s->name);

		if (!v && in == RECORD_CONTROLLER && s->of == OF_BOTH_LATER)
			continue;
		if (is_kept(s, in) && !setting_fits(s, v, in))
			return false;
	}
	return true;
}

/* Takes the recorded settings but for what the command line says anew. The record fits. */
static void take_settings(struct options *p, const json_t *o, enum record in)
{
	for (int i = 0; i < SETTINGS; i++) {
		const struct setting *s = &settings[i];
		const json_t *v = json_object_get(o, s->name);
		void *to = (char *)p + s->at;

		if (!v || !is_kept(s, in) || (s->overridden && *(const bool *)((const char *)p + s->overridden)))
			continue;
		switch (s->kind) {
		case WHOLE: *(uint32_t *)to = (uint32_t)json_integer_value(v); break;
		case LONG: *(uint64_t *)to = (uint64_t)json_integer_value(v); break;
		case REAL: *(double *)to = json_number_value(v); break;
		default: *(bool *)to = json_is_true(v);
		}
	}
}

char *resume_options(const struct run *run)
{
	return print_record(
		&run->options, RECORD_OPTIONS,
		json_pack("{s:s}", "algorithm", plan_algorithm_name(run->options.algorithm)));
}

int resume_options_again(struct run *run, struct error *err)
{
	const char *algorithm = "best"; /* earlier records say none */
	char *text = NULL;
	json_t *o;
	int rc = store_get(run->history.store, "options", &text, err);

	if (rc != 0)
		return rc == -ENOENT ? 0 : rc;
	o = json_loads(text, 0, NULL);
	free(text);
	if (o && settings_fit(o, RECORD_OPTIONS) &&
	    json_unpack(o, "{s?s}", "algorithm", &algorithm) == 0 &&
	    plan_algorithm_named(algorithm, &run->options.algorithm))
		take_settings(&run->options, o, RECORD_OPTIONS);
	else
		rc = error_set(err, -EINVAL, "%s: the record of the run's options is damaged",
			       run->options.run_dir);
	json_decref(o);
	return rc;
}

/* An array each of what every node has, beside what is kept of the options. */
int resume_save(struct members *members)
{
	json_t *stages = json_array(), *shards = json_array(), *homes = json_array();
	json_t *marked = json_array(), *keys = json_array();
	struct error err = { "" };
	char *text, key[KEYS_TEXT_SIZE];
	int rc = -ENOMEM;

	for (uint32_t i = 0; i < members->n; i++) {
		json_array_append_new(stages, json_integer(members->run->cluster->nodes[i].stage));
		json_array_append_new(shards, json_integer(members->run->training.shard_of[i]));
		json_array_append_new(homes, json_integer(members->list[i].move.home));
		json_array_append_new(marked, json_integer(members->list[i].is_marked));
		keys_text(&members->list[i].key, key);
		json_array_append_new(keys,
				      json_string(member_has_key(&members->list[i]) ? key : ""));
	}
	text = print_record(&members->run->options, RECORD_CONTROLLER,
			    json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "path_length",
				      (int)members->run->wanted.path_length, "stages", stages,
				      "shards", shards, "homes", homes, "marked", marked, "keys",
				      keys));
	if (text)
		rc = store_set(members->run->history.store, "controller", text, &err);
	if (rc != 0)
		log_line(&members->run->log, LOG_ERROR, "%s", text ? err.text : "out of memory");
	free(text);
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
static int load_keys(struct members *members, const json_t *from)
{
	struct error ignored;

	if (from && json_array_size(from) != members->n)
		return -EINVAL;
	for (uint32_t i = 0; from && i < members->n; i++) {
		const char *text = json_string_value(json_array_get(from, i));

		if (!text || (*text && keys_parse(text, &members->list[i].key, &ignored) != 0))
			return -EINVAL;
	}
	return 0;
}

int resume_load(struct members *members, struct error *err)
{
	char *text = NULL;
	int stages[MSG_NODES], homes[MSG_NODES],
		marked[MSG_NODES] = { 0 },
		rc = store_get(members->run->history.store, "controller", &text, err);
	json_t *o, *st, *sh, *ho = NULL, *ma = NULL, *ke = NULL;
	int path_length;

	if (rc != 0)
		return rc;
	o = json_loads(text, 0, NULL);
	free(text);
	rc = o && settings_fit(o, RECORD_CONTROLLER) &&
			     json_unpack(o, "{s:i, s:o, s:o, s?o, s?o, s?o}", "path_length", &path_length, "stages", &st,
					 "shards", &sh, "homes", &ho, "marked", &ma, "keys", &ke) == 0
		     ? 0
		     : -EINVAL;
	if (rc == 0)
		rc = load_numbers(stages, members->n, st);
	if (rc == 0)
		rc = load_numbers(members->run->training.shard_of, members->n, sh);
	if (rc == 0) /* earlier records have none */
		rc = load_numbers(homes, members->n, ho ? ho : st);
	if (rc == 0 && ma)
		rc = load_numbers(marked, members->n, ma);
	if (rc == 0)
		rc = load_keys(members, ke);
	if (rc == 0 && (path_length < 1 || path_length > members->run->cluster->n_stages))
		rc = -EINVAL;
	for (uint32_t i = 0; rc == 0 && i < members->n; i++)
		if (stages[i] >= members->run->cluster->n_stages ||
		    homes[i] >= members->run->cluster->n_stages)
			rc = -EINVAL;
	if (rc == 0) {
		for (uint32_t i = 0; i < members->n; i++) {
			members->run->cluster->nodes[i].stage = stages[i];
			members->list[i].move.home = homes[i];
			members->list[i].is_marked = members->list[i].peers.is_excluded =
				marked[i] != 0;
		}
		take_settings(&members->run->options, o, RECORD_CONTROLLER);
		members->run->unit_s =
			members->run->options.time_scale > 0 ? members->run->options.time_scale : 1;
		members->run->wanted.path_length = (uint32_t)path_length;
	}
	json_decref(o);
	return rc ? error_set(err, rc, "%s: the controller's own record is damaged",
			      members->run->options.run_dir)
		  : 0;
}
