/* settings.c - the options that a resumed run keeps, and where the record has them.
 *
 * A restarted controller must run with the options of the run, even if its own command line has
 * other options. The store has these options as JSON in two of its settings: "options" is written
 * once, and "controller" is written again at each change (members/saved_state.c). */
#include "controller/run/settings.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "controller/run/run.h"

/* The options that a resumed run keeps. All are in the store's setting "options", which is written
 * once. Some are also in the setting "controller", which is written again at each change. */
static const struct setting {
	const char *name;
	enum { WHOLE, LONG, REAL, FLAG } kind; /* the option's type */
	size_t at;                             /* offset of the option in struct options */
	double least, most;
	bool is_in_both;
	/* Offset, in struct options, of a bool that is true if the command line sets this option.
	 * The command line's value then replaces the recorded value. 0: the command line cannot
	 * change the option. */
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
	{ "least_agents", WHOLE, AT(cluster.least_agents), NUMBER(0, MSG_NODES) },
#undef AT
#undef GIVEN
#undef NUMBER
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };
static bool is_in_record(const struct setting *s, enum settings_record in)
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

char *settings_print(const struct options *p, enum settings_record in, json_t *rest)
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

/* Returns true if the recorded value is possible. For the setting "controller" only the type is
 * checked, because the controller may have chosen any number as the time scale. */
static bool setting_fits(const struct setting *s, const json_t *v, enum settings_record in)
{
	/* Earlier versions recorded no least number of agents. settings_take reads the missing
	 * number as 0. */
	if (!v && s->at == offsetof(struct options, cluster.least_agents))
		return true;
	if (s->kind == FLAG)
		return json_is_boolean(v);
	if (s->kind == REAL ? !json_is_number(v) : !json_is_integer(v))
		return false;
	return in == RECORD_CONTROLLER ||
	       (json_number_value(v) >= s->least && json_number_value(v) <= s->most);
}

bool settings_fit(const json_t *o, enum settings_record in)
{
	for (int i = 0; i < SETTINGS; i++) {
		const struct setting *s = &settings[i];

		if (is_in_record(s, in) && !setting_fits(s, json_object_get(o, s->name), in))
			return false;
	}
	return true;
}

void settings_take(struct options *p, const json_t *o, enum settings_record in)
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
	return settings_print(
		&run->options, RECORD_OPTIONS,
		json_pack("{s:s, s:s}", "algorithm",
			  plan_algorithm_name(run->options.planning.algorithm), "skip_schedule",
			  run->wanted.schedule_text ? run->wanted.schedule_text : ""));
}

int resume_options_again(struct run *run, struct error *err)
{
	const char *algorithm, *schedule;
	char *text = NULL;
	json_t *o;
	int rc = store_get(run->record.store, "options", &text, err);

	if (rc != 0)
		return rc == -ENOENT ? 0 : rc;
	o = json_loads(text, 0, NULL);
	free(text);
	if (o && settings_fit(o, RECORD_OPTIONS) &&
	    json_unpack(o, "{s:s, s:s}", "algorithm", &algorithm, "skip_schedule", &schedule) ==
		    0 &&
	    plan_algorithm_named(algorithm, &run->options.planning.algorithm)) {
		settings_take(&run->options, o, RECORD_OPTIONS);
		run->wanted.schedule_text = *schedule ? alloc_string(schedule) : NULL;
	} else {
		rc = error_set(err, -EINVAL, "%s: the saved options of the run are damaged",
			       run->options.run_dir);
	}
	json_decref(o);
	return rc;
}
