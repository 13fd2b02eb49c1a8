/* drill.c - writes the operator's acts to RUN-DIR/drill.json.
 *
 * `skippipe drill FILE` repeats the acts in such a file in a new run. The drill fails if the new
 * run is slower, or has a higher loss, than the limits in the file allow. The limits are this run's
 * measurements with a margin. In this way an exercise that an operator once did by hand becomes a
 * test. */
#include "controller/run/drill.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "base/skip_schedule.h"
#include "base/stage_set.h"
#include "controller/run/run.h"

enum { ACT_TEXT = 192 };

/* Ratio of the limit for an iteration's time to the time of the slowest measured iteration */
static const double margin = 1.25;

/* Writes the act in the syntax of --at; "" if --at has no such act. */
static void act_text(const struct run *run, const struct msg_command *m, char out[ACT_TEXT])
{
	unsigned long long n = run->committed + 1;

	out[0] = '\0';
	switch (m->verb) {
	case COMMAND_SKIP:
		if (skip_share_of(m->value) > 0)
			snprintf(out, ACT_TEXT, "%llu:skip:%u%%:%u", n, skip_share_of(m->value),
				 skip_share_stages(m->value));
		else
			snprintf(out, ACT_TEXT, "%llu:skip:%u", n, skip_share_stages(m->value));
		break;
	case COMMAND_WIRE:
	case COMMAND_SUM_WIRE:
		snprintf(out, ACT_TEXT, "%llu:%s:%s", n, verb_name(m->verb),
			 tensor_format_name((enum tensor_format)m->value));
		break;
	case COMMAND_FINISH:
		snprintf(out, ACT_TEXT, "%llu:finish:%lld", n, (long long)m->value);
		break;
	case COMMAND_CUT:
		if (m->text[0])
			snprintf(out, ACT_TEXT, "%llu:cut:%.200s", n, m->text);
		break;
	case COMMAND_FAIL:
	case COMMAND_RECOVER:
		snprintf(out, ACT_TEXT, "%llu:%s:%d", n, verb_name(m->verb), m->node);
		break;
	case COMMAND_INJECT:
		snprintf(out, ACT_TEXT, "%llu:%s:%d", n, fault_name((enum fault_kind)m->fault),
			 m->node);
		break;
	default:
		break;
	}
}

static json_t *limits_json(const struct run *run)
{
	double slowest = 0;
	json_t *o = json_object();

	for (uint32_t i = 0; i < run->record.curves.n_iterations; i++)
		if ((double)run->record.curves.iterations[i].real_s > slowest)
			slowest = (double)run->record.curves.iterations[i].real_s;
	if (run->record.curves.n_iterations > 1)
		json_object_set_new(o, "slowest_s", json_real(slowest * margin));
	if (run->record.curves.n_validations > 0)
		json_object_set_new(
			o, "loss",
			json_real((double)run->record.curves
					  .validations[run->record.curves.n_validations - 1]
					  .loss *
				  1.05));
	return o;
}

/* Returns the sizes of the stages as they were when the run began. The run itself may have changed
 * the sizes between two phases. */
static json_t *stages_json(const struct run *run)
{
	const struct options *o = &run->options;
	json_t *list = json_array();

	for (int s = 0; s < run->cluster->n_stages; s++)
		json_array_append_new(list, json_integer(o->cluster.n_stages > 0
								 ? o->cluster.stages[s]
								 : run->cluster->stages[s]));
	return list;
}

/* Returns the phases of the skip schedule with absolute iterations. In "4@0,2@12" the second phase
 * begins after iteration 12. A drill has fewer iterations than the original run, so phases given as
 * shares of the run would begin at other iterations. */
static json_t *schedule_json(const struct skip_schedule *s)
{
	char text[SKIP_SCHEDULE_MOST * 40];
	size_t n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct skip_phase *p = &s->phases[i];

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", i > 0 ? "," : "");
		if (p->share > 0)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%u%%:", p->share);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%u@%llu", p->skip,
				      (unsigned long long)p->from - 1);
	}
	return json_string(text);
}

/* Adds the options that decide which stages are skipped and when. A recipe is written as the
 * options that it sets. */
static void add_skips(json_t *o, const struct run *run)
{
	char always[STAGE_SET_TEXT];

	stage_set_format(run->cluster->always | 1, always);
	if (run->options.skip_share > 0)
		json_object_set_new(o, "skip_share", json_integer(run->options.skip_share));
	if (run->wanted.schedule.n > 0)
		json_object_set_new(o, "skip_schedule", schedule_json(&run->wanted.schedule));
	if (stage_set_count(run->cluster->always | 1) > 1)
		json_object_set_new(o, "always", json_string(always));
	if (run->options.stack)
		json_object_set_new(o, "stack", json_true());
	if (run->options.planning.no_swaps)
		json_object_set_new(o, "no_swaps", json_true());
	if (run->options.planning.phase_moves)
		json_object_set_new(o, "phase_moves", json_true());
	if (run->options.training.by_visits)
		json_object_set_new(o, "grad_norm", json_string("visits"));
}

/* Returns options for `skippipe demo`. With these options a new run starts as this run started, and
 * has one iteration more than this run has committed. */
static json_t *run_json(const struct run *run)
{
	const struct options *o = &run->options;
	json_t *json = json_pack("{s:i, s:o, s:i, s:I, s:f, s:I, s:s, s:s, s:s}", "agents",
				 run->cluster->n_nodes, "stages", stages_json(run), "skip",
				 (int)o->skip, "iterations", (json_int_t)run->committed + 1,
				 "time_scale", o->cluster.time_scale, "seed",
				 (json_int_t)o->seed, "algorithm",
				 plan_algorithm_name(o->planning.algorithm), "wire",
				 tensor_format_name(o->training.formats.wire), "sum_wire",
				 tensor_format_name(o->training.formats.sum_wire));

	if (json)
		add_skips(json, run);
	return json;
}

void drill_save(struct run *run)
{
	char path[PATH_MAX], *text;
	struct error err;
	json_t *o;

	if (!run->record.drill || !run->options.mode.embedded ||
	    /* a rehearsal does not train, so a drill could not compare its loss */
	    run_is_rehearsal(run))
		return;
	o = json_pack("{s:s, s:s, s:o, s:O, s:o}", "format", "skippipe.drill/1", "name",
		      run->options.name, "run", run_json(run), "acts", run->record.drill, "limits",
		      limits_json(run));
	text = o ? json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
	snprintf(path, sizeof(path), "%s/drill.json", run->options.run_dir);
	if (!text || file_write(path, text, strlen(text), FILE_RESULT, &err) != 0)
		log_line(&run->log, LOG_WARN, "%s", text ? err.text : "out of memory");
	free(text);
	json_decref(o);
}

void drill_add(struct run *run, const struct msg_command *m)
{
	char text[ACT_TEXT];

	act_text(run, m, text);
	if (!text[0])
		return;
	if (!run->record.drill)
		run->record.drill = json_array();
	json_array_append_new(run->record.drill, json_string(text));
	drill_save(run);
}

void drill_fini(struct run *run)
{
	json_decref(run->record.drill);
}
