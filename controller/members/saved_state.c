/* saved_state.c - saves and loads the state that a successor needs beside the commits.
 *
 * A controller may die at any moment. Its successor finds the commits in the store, but also needs
 * the options, the stage of each node, the nodes marked as failed, and the agents' keys. They are
 * saved whenever they change, as JSON in the store's settings "options" and "controller". */
#include "base/alloc.h"
#include "controller/members/saved_state.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "controller/members/member.h"
#include "controller/members/members.h"
#include "controller/network/formats.h"

/* The options that a resumed run keeps. All are in the record "options", which is written once.
 * Some are also in the record "controller", which is written again and again. */
static const struct setting {
	const char *name;
	enum { WHOLE, LONG, REAL, FLAG } kind; /* uint32_t, (u)int64_t, double, bool */
	size_t at;                             /* offset of the option in struct options */
	double least, most;
	bool is_in_both;
	/* In struct options: a bool that is true if the command line sets the option and so
	 * overrides the record. 0: the command line cannot change the option. */
	size_t overridden_at;
} settings[] = {
#define AT(field) .at = offsetof(struct options, field)
#define GIVEN(change) \
	.overridden_at = offsetof(struct options, changed[CHANGE_##change]), .is_in_both = true
#define NUMBER(least_, most_) .least = (least_), .most = (most_)
	{ "skip", WHOLE, AT(skip), NUMBER(0, INT_MAX) },
	{ "time_scale", REAL, AT(cluster.time_scale), NUMBER(-HUGE_VAL, 1e6), .is_in_both = true },
	{ "iterations", LONG, AT(iterations), GIVEN(ITERATIONS), NUMBER(0, HUGE_VAL) },
	{ "eval_every", WHOLE, AT(eval_every), GIVEN(EVAL_EVERY), NUMBER(0, INT_MAX) },
	{ "eval_batches", WHOLE, AT(eval_batches), GIVEN(EVAL_BATCHES), NUMBER(1, INT_MAX) },
	{ "checkpoint_every", WHOLE, AT(checkpoint_every), GIVEN(CHECKPOINT_EVERY),
	  NUMBER(0, INT_MAX) },
	{ "skip_bad_steps", WHOLE, AT(skip_bad_steps), GIVEN(SKIP_BAD_STEPS), NUMBER(0, INT_MAX) },
	{ "serialise", FLAG, AT(cluster.serialise) },
	{ "overlap_sync", FLAG, AT(planning.overlap_sync) },
	{ "no_swaps", FLAG, AT(planning.no_swaps) },
	{ "stack", FLAG, AT(stack) },
	{ "phase_moves", FLAG, AT(planning.phase_moves) },
	{ "by_visits", FLAG, AT(training.by_visits) },
	{ "keep_tasks", LONG, AT(keep_tasks), GIVEN(KEEP_TASKS), NUMBER(0, HUGE_VAL) },
	{ "silence_us", LONG, AT(limits.silence_us), GIVEN(SILENCE), NUMBER(0, 1e13) },
	{ "overdue_us", LONG, AT(limits.overdue_us), GIVEN(OVERDUE), NUMBER(0, 1e13) },
	{ "gather_us", LONG, AT(limits.gather_us), GIVEN(GATHER), NUMBER(0, 1e13) },
	{ "budget_s", REAL, AT(planning.budget_s), GIVEN(BUDGET), NUMBER(0, 3600) },
	{ "ahead_s", REAL, AT(planning.ahead_s), GIVEN(AHEAD), NUMBER(0, 3600) },
	{ "given_assignment", FLAG, AT(cluster.assignment_given) },
#undef AT
#undef GIVEN
#undef NUMBER
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };
enum record { RECORD_OPTIONS, RECORD_CONTROLLER };

static bool is_in_record(const struct setting *s, enum record in)
{
	return in == RECORD_OPTIONS || s->is_in_both;
}

static json_t *pack_setting(const struct options *p, const struct setting *s)
{
	const void *from = (const char *)p + s->at;

	switch (s->kind) {
	case WHOLE:
		return json_integer(*(const uint32_t *)from);
	case LONG:
		return json_integer((json_int_t) * (const uint64_t *)from);
	case REAL:
		return json_real(*(const double *)from);
	default:
		return json_boolean(*(const bool *)from);
	}
}

/* The record as text, with the members of rest, which is freed. NULL: out of memory. */
static char *print_record(const struct options *p, enum record in, json_t *rest)
{
	json_t *o = json_object();
	bool whole = o && rest;
	char *text = NULL;

	for (int i = 0; whole && i < SETTINGS; i++)
		if (is_in_record(&settings[i], in))
			whole = json_object_set_new(o, settings[i].name,
						    pack_setting(p, &settings[i])) == 0;
	if (whole && json_object_update(o, rest) == 0)
		text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(o);
	json_decref(rest);
	return text;
}

/* Only the type is checked in the record "controller": there the time scale is one that the
 * controller chose, and may be any number. */
static bool setting_fits(const struct setting *s, const json_t *v, enum record in)
{
	if (s->kind == FLAG)
		return json_is_boolean(v);
	if (s->kind == REAL ? !json_is_number(v) : !json_is_integer(v))
		return false;
	return in == RECORD_CONTROLLER ||
	       (json_number_value(v) >= s->least && json_number_value(v) <= s->most);
}

static bool settings_fit(const json_t *o, enum record in)
{
	for (int i = 0; i < SETTINGS; i++) {
		const struct setting *s = &settings[i];

		if (is_in_record(s, in) && !setting_fits(s, json_object_get(o, s->name), in))
			return false;
	}
	return true;
}

/* Takes the recorded settings, except those that the command line sets. settings_fit(o, in) must
 * hold. */
static void take_settings(struct options *p, const json_t *o, enum record in)
{
	for (int i = 0; i < SETTINGS; i++) {
		const struct setting *s = &settings[i];
		const json_t *v = json_object_get(o, s->name);
		void *to = (char *)p + s->at;

		if (!is_in_record(s, in) ||
		    (s->overridden_at && *(const bool *)((const char *)p + s->overridden_at)))
			continue;
		switch (s->kind) {
		case WHOLE:
			*(uint32_t *)to = (uint32_t)json_integer_value(v);
			break;
		case LONG:
			*(uint64_t *)to = (uint64_t)json_integer_value(v);
			break;
		case REAL:
			*(double *)to = json_number_value(v);
			break;
		default:
			*(bool *)to = json_is_true(v);
		}
	}
}

char *resume_options(const struct run *run)
{
	return print_record(&run->options, RECORD_OPTIONS,
			    json_pack("{s:s, s:s}", "algorithm",
				      plan_algorithm_name(run->options.planning.algorithm),
				      "skip_schedule",
				      run->wanted.schedule_text ? run->wanted.schedule_text : ""));
}

int resume_options_again(struct run *run, struct error *err)
{
	const char *algorithm, *schedule;
	char *text = NULL;
	json_t *o;
	int rc = store_get(run->history.store, "options", &text, err);

	if (rc != 0)
		return rc == -ENOENT ? 0 : rc;
	o = json_loads(text, 0, NULL);
	free(text);
	if (o && settings_fit(o, RECORD_OPTIONS) &&
	    json_unpack(o, "{s:s, s:s}", "algorithm", &algorithm, "skip_schedule", &schedule) ==
		    0 &&
	    plan_algorithm_named(algorithm, &run->options.planning.algorithm)) {
		take_settings(&run->options, o, RECORD_OPTIONS);
		run->wanted.schedule_text = *schedule ? alloc_string(schedule) : NULL;
	} else {
		rc = error_set(err, -EINVAL, "%s: the saved options of the run are damaged",
			       run->options.run_dir);
	}
	json_decref(o);
	return rc;
}

static json_t *pack_formats(const struct tensor_formats *f)
{
	return json_pack("[s, s]", tensor_format_name(f->wire), tensor_format_name(f->sum_wire));
}

static int load_formats(struct tensor_formats *to, const json_t *from)
{
	const char *wire, *sum_wire;

	return json_unpack((json_t *)(uintptr_t)from, "[s, s]", &wire, &sum_wire) == 0 &&
			       tensor_format_parse(wire, &to->wire) == 0 &&
			       tensor_format_suits_activations(to->wire) &&
			       tensor_format_parse(sum_wire, &to->sum_wire) == 0 &&
			       tensor_format_suits_sums(to->sum_wire)
		       ? 0
		       : -EINVAL;
}

/* The record has an array for each property of a node, and the options. */
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
			    json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
				      "path_length", (int)members->run->wanted.path_length,
				      "skip_share", (int)members->run->wanted.skip_share,
				      "skip_phase", (int)members->run->wanted.phase, "formats",
				      pack_formats(&members->run->cluster->formats),
				      "wanted_formats", pack_formats(&members->run->wanted.formats),
				      "stages", stages, "shards", shards, "homes", homes, "marked",
				      marked, "keys", keys, "rates", rates_save(members->run)));
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

/* Loads the key of each node. By its key a returning agent gets its own node number again. */
static int load_keys(struct members *members, const json_t *from)
{
	struct error ignored;

	if (json_array_size(from) != members->n)
		return -EINVAL;
	for (uint32_t i = 0; i < members->n; i++) {
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
		marked[MSG_NODES],
		rc = store_get(members->run->history.store, "controller", &text, err);
	struct tensor_formats formats = { 0 }, wanted = { 0 };
	json_t *o, *fo, *wa, *st, *sh, *ho, *ma, *ke, *ra = NULL;
	int path_length, share = 0, phase;

	if (rc != 0)
		return rc;
	o = json_loads(text, 0, NULL);
	free(text);
	rc = o && settings_fit(o, RECORD_CONTROLLER) &&
			     json_unpack(o,
					 "{s:i, s?i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s?o}",
					 "path_length", &path_length, "skip_share", &share,
					 "skip_phase", &phase, "formats", &fo, "wanted_formats",
					 &wa, "stages", &st, "shards", &sh, "homes", &ho, "marked",
					 &ma, "keys", &ke, "rates", &ra) == 0
		     ? 0
		     : -EINVAL;
	if (rc == 0)
		rc = load_formats(&formats, fo);
	if (rc == 0)
		rc = load_formats(&wanted, wa);
	if (rc == 0)
		rc = load_numbers(stages, members->n, st);
	if (rc == 0)
		rc = load_numbers(members->run->training.shard_of, members->n, sh);
	if (rc == 0)
		rc = load_numbers(homes, members->n, ho);
	if (rc == 0)
		rc = load_numbers(marked, members->n, ma);
	if (rc == 0)
		rc = load_keys(members, ke);
	if (rc == 0)
		rc = rates_load(members->run, ra);
	if (rc == 0 && (phase < 0 || phase >= SKIP_SCHEDULE_MOST))
		rc = -EINVAL;
	if (rc == 0 && (path_length < 1 || path_length > members->run->cluster->n_stages ||
			share < 0 || share > 99))
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
		members->run->unit_s = members->run->options.cluster.time_scale > 0
					       ? members->run->options.cluster.time_scale
					       : 1;
		members->run->wanted.path_length = (uint32_t)path_length;
		members->run->wanted.skip_share = (uint32_t)share;
		members->run->wanted.phase = (uint32_t)phase;
		members->run->wanted.formats = wanted;
		formats_apply(members, &formats);
	}
	json_decref(o);
	return rc ? error_set(err, rc, "%s: the controller's saved state is damaged",
			      members->run->options.run_dir)
		  : 0;
}
