/* report.c - packs the status of a run as JSON, and prints such a status on a screen. */
#include "controller/monitor/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "controller/members/device_record.h"
#include "controller/run/gpu_record.h"
#include "controller/run/journal.h"

static const char report_format[] = "skippipe.status/1";

enum { NODES_SHOWN = 8, LINE = 320 };

/* ---- JSON ---- */

static void add_reason(void *list, const char *reason)
{
	json_array_append_new(list, json_string(reason));
}

static json_t *pack_run(const struct view *v)
{
	return json_pack("{s:s, s:s, s:I, s:i, s:i, s:I, s:b, s:f}", "name", v->run.name, "model",
			 v->run.model, "parameters", (json_int_t)v->run.parameters, "nodes",
			 (int)v->run.n_nodes, "stages", (int)v->run.n_stages, "iterations_wanted",
			 (json_int_t)v->run.iterations, "rehearsal", v->run.rehearsal > 0,
			 "started_s", (double)v->run.started_wall_us * 1e-6);
}

/* Plan seconds are converted to real seconds. */
static json_t *pack_last(const struct view *v)
{
	const struct msg_see_iteration *i = &v->last;
	double unit_s = v->run.time_scale > 0 ? v->run.time_scale : 1;
	json_t *o;

	if (!v->has_last)
		return json_null();
	o = json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:i, s:i}", "number",
		      (json_int_t)i->iteration, "committed_s", (double)i->wall_us * 1e-6,
		      "iteration_s", (double)i->iteration_s * unit_s, "predicted_s",
		      (double)i->predicted_s * unit_s, "interval_s", (double)i->real_s,
		      "tokens_per_s", (double)i->tokens_per_s, "collisions", (int)i->collisions,
		      "rerun", (int)i->rerun);
	if (o && !v->run.rehearsal)
		json_object_set_new(o, "loss", json_real((double)i->loss));
	return o;
}

static json_t *pack_node(const struct view *v, const struct msg_see_node *n)
{
	json_t *o = json_pack("{s:i, s:i, s:s, s:s, s:s, s:s, s:f, s:I}", "node", (int)n->node,
			      "stage", (int)n->stage, "state", node_state_name(n->state), "device",
			      n->device, "host", n->host, "place", n->location, "since_s",
			      (double)(v->status.now_us - n->since_us) * 1e-6, "resident_bytes",
			      (json_int_t)n->rss_bytes);

	if (o && n->why[0])
		json_object_set_new(o, "why", json_string(n->why));
	if (o && n->gpu.known)
		json_object_set_new(o, "gpu", gpu_record_pack(&n->gpu));
	if (o && device_time_total_us(&n->spent) > 0)
		json_object_set_new(o, "device_time", device_record_pack(&n->spent));
	return o;
}

static json_t *pack_nodes(const struct view *v)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < v->n_nodes; i++)
		json_array_append_new(list, pack_node(v, &v->nodes[i]));
	return list;
}

static json_t *pack_states(const struct view *v)
{
	uint32_t counts[NODE_LAST + 1];
	json_t *o = json_object();

	view_count_states(v, counts);
	for (unsigned s = 0; s <= NODE_LAST; s++)
		json_object_set_new(o, node_state_name(s), json_integer(counts[s]));
	return o;
}

static json_t *pack_checkpoint(const struct msg_see_status *s)
{
	const struct checkpoint_failure *f = &s->checkpoint_failure;
	json_t *o = json_pack("{s:I}", "iteration", (json_int_t)s->checkpoint);

	if (o && f->iteration > 0)
		json_object_set_new(o, "failure",
				    json_pack("{s:I, s:i, s:s}", "iteration",
					      (json_int_t)f->iteration, "node", (int)f->node,
					      "why", f->why));
	return o;
}

static json_t *pack_alert(const struct view *v)
{
	const struct msg_see_note *a = &v->alert;

	if (v->alert.id == 0)
		return json_null();
	return json_pack("{s:s, s:i, s:I, s:f}", "text", a->text, "node", (int)a->node, "iteration",
			 (json_int_t)a->iteration, "at_s", (double)a->wall_us * 1e-6);
}

json_t *report_pack(const struct view *v)
{
	json_t *reasons = json_array(), *o;
	enum view_health health = view_health(v, add_reason, reasons);

	o = json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:I, s:i, s:i, s:f, s:I, s:I, s:f, s:o, s:o, "
		      "s:o, s:o, s:o}",
		      "format", report_format, "health", view_health_name(health), "reasons",
		      reasons, "run", pack_run(v), "phase", phase_name(v->status.phase), "doing",
		      v->status.doing, "committed", (json_int_t)v->status.committed, "path_length",
		      (int)v->status.path_length, "faults", (int)v->status.faults, "goodput",
		      v->goodput, "resent", (json_int_t)v->status.resent, "refused",
		      (json_int_t)v->status.refused, "at_s", (double)v->wall_us * 1e-6, "iteration",
		      pack_last(v), "states", pack_states(v), "nodes", pack_nodes(v), "alert",
		      pack_alert(v), "checkpoint", pack_checkpoint(&v->status));
	if (o && v->has_validation)
		json_object_set_new(o, "validation_loss", json_real((double)v->validation.loss));
	return o;
}

/* If the status cannot be packed, returns an empty object. */
char *report_text(const struct view *v, size_t *size)
{
	json_t *o = report_pack(v);
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	if (!text)
		text = alloc_string("{}");
	*size = strlen(text);
	return text;
}

int report_read(json_t **out, const char *text, size_t size, struct error *err)
{
	json_t *o = NULL;
	const char *format;
	int rc = json_parse_object(text, size, &o, err);

	if (rc != 0)
		return rc;
	format = json_string_value(json_object_get(o, "format"));
	if (!format || strcmp(format, report_format) != 0) {
		json_decref(o);
		return error_set(err, -EINVAL, "the answer is not a %s", report_format);
	}
	*out = o;
	return 0;
}

enum view_health report_health(const json_t *status)
{
	const char *word = json_string_value(json_object_get(status, "health"));

	for (enum view_health h = VIEW_HEALTHY; word && h < VIEW_STOPPED; h++)
		if (strcmp(word, view_health_name(h)) == 0)
			return h;
	return VIEW_STOPPED;
}

/* ---- the screen ---- */

/* Copies a text of the status. Replaces characters that could control the terminal, because the
 * status may come from another machine. */
static const char *text_at(const json_t *o, const char *key, char text[LINE])
{
	const char *value = json_string_value(json_object_get(o, key));

	snprintf(text, LINE, "%s", value ? value : "");
	journal_make_plain(text);
	return text;
}

static double number_at(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void print_age(FILE *to, double s)
{
	if (s < 120)
		fprintf(to, "%.0f s", s < 0 ? 0 : s);
	else if (s < 7200)
		fprintf(to, "%.0f min", s / 60);
	else if (s < 172800)
		fprintf(to, "%.0f h", s / 3600);
	else
		fprintf(to, "%.0f days", s / 86400);
}

static void print_head(FILE *to, const json_t *o)
{
	const json_t *run = json_object_get(o, "run"), *reason;
	char name[LINE], text[LINE];
	size_t i;

	fprintf(to, "%s: %s", text_at(run, "name", name), text_at(o, "health", text));
	fprintf(to, "   %s, %.0f nodes, %.0f stages\n", text_at(run, "model", text),
		number_at(run, "nodes"), number_at(run, "stages"));
	json_array_foreach(json_object_get(o, "reasons"), i, reason)
	{
		snprintf(text, sizeof(text), "%s",
			 json_string_value(reason) ? json_string_value(reason) : "");
		journal_make_plain(text);
		fprintf(to, "  %s\n", text);
	}
	fprintf(to, "now         %s\n", text_at(o, "doing", text));
}

static void print_iteration(FILE *to, const json_t *o)
{
	const json_t *i = json_object_get(o, "iteration"), *run = json_object_get(o, "run");
	double wanted = number_at(run, "iterations_wanted");

	fprintf(to, "iteration   %.0f", number_at(o, "committed"));
	if (wanted > 0)
		fprintf(to, " of %.0f", wanted);
	if (!json_is_object(i)) {
		fputs(", none is committed\n", to);
		return;
	}
	fputs(", committed ", to);
	print_age(to, number_at(o, "at_s") - number_at(i, "committed_s"));
	fputs(" ago\n", to);
	if (json_is_number(json_object_get(i, "loss")))
		fprintf(to, "loss        %.4f", number_at(i, "loss"));
	if (json_is_number(json_object_get(o, "validation_loss")))
		fprintf(to, ", validation %.4f", number_at(o, "validation_loss"));
	if (json_is_number(json_object_get(i, "loss")))
		fputc('\n', to);
	fprintf(to, "speed       %.0f tokens/s, goodput %.0f%%\n", number_at(i, "tokens_per_s"),
		number_at(o, "goodput") * 100);
	fprintf(to, "time        %.3g s, predicted %.3g s, %.3g s from commit to commit\n",
		number_at(i, "iteration_s"), number_at(i, "predicted_s"),
		number_at(i, "interval_s"));
	fprintf(to, "collisions  %.0f, and %.0f microbatches ran again; resent messages %.0f\n",
		number_at(i, "collisions"), number_at(i, "rerun"), number_at(o, "resent"));
}

static void print_checkpoint(FILE *to, const json_t *o)
{
	double iteration = number_at(json_object_get(o, "checkpoint"), "iteration");

	if (iteration > 0)
		fprintf(to, "checkpoint  of iteration %.0f\n", iteration);
}

static void print_states(FILE *to, const json_t *o)
{
	const char *state, *before = "nodes       ";
	json_t *n;

	json_object_foreach((json_t *)json_object_get(o, "states"), state, n)
	{
		char word[LINE];

		if (json_integer_value(n) <= 0)
			continue;
		snprintf(word, sizeof(word), "%s", state);
		journal_make_plain(word);
		fprintf(to, "%s%" JSON_INTEGER_FORMAT " %s", before, json_integer_value(n), word);
		before = ", ";
	}
	fputc('\n', to);
}

/* Prints the nodes that do not take part, with the reasons. */
static void print_missing(FILE *to, const json_t *o)
{
	const json_t *n;
	size_t i, shown = 0;
	char state[LINE], text[LINE];

	json_array_foreach(json_object_get(o, "nodes"), i, n)
	{
		int known = node_state_named(text_at(n, "state", state));

		if (known < 0 || node_presence((unsigned)known) == NODE_TAKES_PART ||
		    shown++ >= NODES_SHOWN)
			continue;
		fprintf(to, "  n%02.0f  S%-3.0f %-8s", number_at(n, "node"), number_at(n, "stage"),
			state);
		fputs(" for ", to);
		print_age(to, number_at(n, "since_s"));
		fprintf(to, "  %s", text_at(n, "host", text));
		fprintf(to, "  %s\n", text_at(n, "why", text));
	}
	if (shown > NODES_SHOWN)
		fprintf(to, "  and %zu more\n", shown - NODES_SHOWN);
}

void report_print(FILE *to, const json_t *o)
{
	const json_t *alert = json_object_get(o, "alert");
	char text[LINE];

	print_head(to, o);
	print_iteration(to, o);
	print_checkpoint(to, o);
	print_states(to, o);
	print_missing(to, o);
	if (!json_is_object(alert))
		return;
	fputs("alert       ", to);
	print_age(to, number_at(o, "at_s") - number_at(alert, "at_s"));
	fprintf(to, " ago: %s\n", text_at(alert, "text", text));
}
