/* Shows the candidates of a choice, the nodes of the best one, and the nodes that it leaves out. */
#include "schedule/fleet/choice_format.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schedule/execution/simulate.h"
#include "base/json.h"

#define FORMAT "skippipe.choice/1"
#define GIGA 1e9
#define HOUR_S 3600.0
#define MILLION 1e6

/* The figures of a candidate that are shown */
struct figures {
	double tokens_per_s, price_per_million, price_of_run, bound_s;
	int used; /* number of nodes in use */
};

static struct figures figures_of(const struct candidate *c, const struct choose_request *q,
				 double tokens)
{
	const struct candidate_frame *f = &q->frame;
	double rate = f->batch * f->shape->tokens / c->seconds;
	double price = c->price_per_hour / HOUR_S / rate;
	int used = 0;

	for (int i = 0; i < f->fleet->n_nodes; i++)
		used += c->stage_of[i] >= 0;
	return (struct figures){ rate, price * MILLION, price * tokens,
				 c->plan->predicted.lower_bound_s, used };
}

static void list_layers(const struct candidate *c, char *out, size_t room)
{
	size_t used = 0;

	for (int s = 0; s < c->n_stages && used < room; s++)
		used += (size_t)snprintf(out + used, room - used, "%s%d", s ? "," : "",
					 c->layers[s]);
}

static void list_sizes(const struct candidate *c, const struct candidate_frame *f, char *out,
		       size_t room)
{
	size_t used = 0;

	for (int s = 0; s < c->n_stages && used < room; s++)
		used += (size_t)snprintf(out + used, room - used, "%s%d", s ? "," : "",
					 candidate_size(c, s, f));
}

/* Memory of a node and how the plan uses it */
struct memory {
	struct stage_fit fit;
	double used_bytes, free_bytes;
};

static struct memory memory_of(const struct candidate *c, int node, const struct candidate_frame *f)
{
	const struct fleet_machines *e = fleet_machines_of(f->fleet, node);
	int s = c->stage_of[node];
	struct memory m = { .fit = candidate_fit(c, node, f) };

	m.used_bytes = stage_cost_bytes(f->shape, c->layers[s], s == 0, c->sequences, m.fit.level,
					m.fit.slots);
	m.free_bytes = e->memory_bytes - m.used_bytes;
	return m;
}

/* Returns true if two nodes share a line of the table: machines of one entry in the same stage. */
static bool are_shown_together(const struct candidate *c, int a, int b,
			       const struct candidate_frame *f)
{
	return f->fleet->nodes[a].entry == f->fleet->nodes[b].entry &&
	       c->stage_of[a] == c->stage_of[b];
}

/* ---- the table ---- */

static void print_row(FILE *to, const char *label, const struct candidate *c,
		      const struct choose_request *q, double tokens)
{
	struct figures x;
	char layers[200], sizes[200];

	if (!c->plan) {
		fprintf(to, "%-6s no plan\n", label);
		return;
	}
	x = figures_of(c, q, tokens);
	list_layers(c, layers, sizeof(layers));
	list_sizes(c, &q->frame, sizes, sizeof(sizes));
	fprintf(to, "%-6s %10.3f %11.0f %10.3f", label, c->seconds, x.tokens_per_s, x.bound_s);
	if (!isnan(c->price_per_hour))
		fprintf(to, " %9.2f %10.4f", c->price_per_hour, x.price_per_million);
	if (!isnan(c->price_per_hour) && tokens > 0)
		fprintf(to, " %10.2f", x.price_of_run);
	fprintf(to, "  %d of %d nodes, %d x %d sequences, skips %d of %d, %s/%s\n", x.used,
		q->frame.fleet->n_nodes, q->frame.batch / c->sequences, c->sequences,
		candidate_skip(&q->frame, c->n_stages), c->n_stages,
		tensor_format_name(c->formats.wire), tensor_format_name(c->formats.sum_wire));
	fprintf(to, "%-6s   layers %s; nodes %s; %.1f layers a microbatch\n", "", layers, sizes,
		candidate_layers_computed(c, &q->frame));
}

static void print_heading(FILE *to, const struct candidate *best, double tokens)
{
	fprintf(to, "%-6s %10s %11s %10s", "", "s/iterat.", "tokens/s", "bound");
	if (!isnan(best->price_per_hour))
		fprintf(to, " %9s %10s", "price/h", "/M tokens");
	if (!isnan(best->price_per_hour) && tokens > 0)
		fprintf(to, " %10s", "the run");
	fputc('\n', to);
}

static const char *speed_of(const struct fleet_machines *e)
{
	switch (e->speed) {
	case FLEET_SHARE_MEASURED:
		return "share measured";
	case FLEET_SHARE_ASSUMED:
		return "share assumed";
	default:
		return "speed measured";
	}
}

/* Prints a text in a column, whose width is counted in characters and not in bytes of UTF-8. */
static void print_text(FILE *to, const char *text, int width)
{
	int characters = 0;

	for (const char *at = text; *at; at++)
		characters += ((unsigned char)*at & 0xc0) != 0x80;
	fprintf(to, "%s%*s ", text, characters < width ? width - characters : 0, "");
}

static void print_nodes(FILE *to, const struct candidate *c, const struct candidate_frame *f)
{
	fprintf(to, "\n%-5s %5s  %-24s %-14s %-12s %6s %9s %9s  %-8s %s\n", "stage", "nodes",
		"first node", "place", "device", "slots", "used GB", "free GB", "again", "speed");
	for (int s = 0; s < c->n_stages; s++) {
		for (int i = 0; i < f->fleet->n_nodes; i++) {
			const struct fleet_machines *e = fleet_machines_of(f->fleet, i);
			char name[FLEET_NAME];
			struct memory m;
			int n = 0, first = -1;

			if (c->stage_of[i] != s)
				continue;
			for (int k = 0; k < f->fleet->n_nodes; k++) {
				bool same = are_shown_together(c, i, k, f);

				n += same;
				first = same && first < 0 ? k : first;
			}
			if (first != i)
				continue;
			m = memory_of(c, i, f);
			fleet_node_name(f->fleet, i, name);
			fprintf(to, "%-5d %5d  ", s, n);
			print_text(to, name, 24);
			print_text(to, e->place, 14);
			print_text(to, e->device ? e->device : "-", 12);
			fprintf(to, "%6d %9.1f %9.1f  %-8s %s%s\n", m.fit.slots,
				m.used_bytes / GIGA, m.free_bytes / GIGA,
				m.fit.level == SHAPE_BLOCK ? "block" : "norms", speed_of(e),
				e->is_spot ? ", spot" : "");
		}
	}
}

static void explain(FILE *to, const struct choice *c, const struct choice_left_out *l,
		    const struct choose_request *q)
{
	const struct candidate_frame *f = &q->frame;
	char name[FLEET_NAME];
	int n = 0;

	for (int i = 0; i < f->fleet->n_nodes; i++)
		n += c->list[0].stage_of[i] < 0 &&
		     f->fleet->nodes[i].entry == f->fleet->nodes[l->node].entry;
	fleet_node_name(f->fleet, l->node, name);
	fprintf(to, "left out: %s (%d such nodes): ", name, n);
	if (l->missing_bytes > 0)
		fprintf(to, "%.1f GB are missing for a stage of one layer\n",
			l->missing_bytes / GIGA);
	else if (isinf(l->cost_with))
		fputs("no stage of this choice has room: memory, the batch or the price limit\n",
		      to);
	else
		fprintf(to, "with one in stage %d, the %s changes by %+.1f%%\n", l->stage,
			q->aim.by_price ? "price of a token" : "time of an iteration",
			100 * (l->cost_with - 1));
}

char *choice_table(const struct choice *c, const struct choose_request *q, double tokens)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		alloc_failed(1, 1);
	print_heading(to, &c->list[0], tokens);
	for (int i = 0; i < c->n; i++) {
		char label[16];

		snprintf(label, sizeof(label), "%d", i + 1);
		print_row(to, label, &c->list[i], q, tokens);
	}
	if (q->has_baselines) {
		print_row(to, "equal", &c->equal, q, tokens);
		print_row(to, "dtfm", &c->dtfm, q, tokens);
	}
	print_nodes(to, &c->list[0], &q->frame);
	for (int i = 0; i < c->n_left_out; i++)
		explain(to, c, &c->left_out[i], q);
	if (fclose(to) != 0)
		alloc_failed(size, 1);
	return text;
}

/* ---- JSON ---- */

static json_t *number_or_null(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *nodes_to_json(const struct candidate *c, const struct candidate_frame *f)
{
	json_t *list = json_array();

	for (int i = 0; i < f->fleet->n_nodes; i++) {
		char name[FLEET_NAME];
		json_t *o;

		fleet_node_name(f->fleet, i, name);
		o = json_pack("{s:s, s:i}", "name", name, "stage", c->stage_of[i]);
		if (c->stage_of[i] >= 0) {
			struct memory m = memory_of(c, i, f);

			json_object_set_new(o, "slots", json_integer(m.fit.slots));
			json_object_set_new(o, "used_bytes", json_real(m.used_bytes));
			json_object_set_new(o, "free_bytes", json_real(m.free_bytes));
			json_object_set_new(
				o, "recompute",
				json_string(m.fit.level == SHAPE_BLOCK ? "block" : "norms"));
		}
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *candidate_to_json(const struct candidate *c, const struct choose_request *q,
				 double tokens)
{
	const struct candidate_frame *f = &q->frame;
	json_t *layers = json_array(), *o;
	struct figures x;

	if (!c->plan) {
		json_decref(layers);
		return json_null();
	}
	x = figures_of(c, q, tokens);
	for (int s = 0; s < c->n_stages; s++)
		json_array_append_new(layers, json_integer(c->layers[s]));
	o = json_pack("{s:f, s:f, s:f, s:i, s:i, s:i, s:f, s:s, s:s}", "iteration_s", c->seconds,
		      "tokens_per_s", x.tokens_per_s, "lower_bound_s", x.bound_s, "sequences",
		      c->sequences, "microbatches", f->batch / c->sequences, "skip",
		      candidate_skip(f, c->n_stages), "layers_computed",
		      candidate_layers_computed(c, f), "wire", tensor_format_name(c->formats.wire),
		      "sum_wire", tensor_format_name(c->formats.sum_wire));
	json_object_set_new(o, "layers", layers);
	json_object_set_new(o, "price_per_hour", number_or_null(c->price_per_hour));
	json_object_set_new(o, "price_per_million_tokens", number_or_null(x.price_per_million));
	if (tokens > 0)
		json_object_set_new(o, "price_of_run", number_or_null(x.price_of_run));
	json_object_set_new(o, "nodes", nodes_to_json(c, f));
	return o;
}

static json_t *left_out_to_json(const struct choice *c, const struct candidate_frame *f)
{
	json_t *list = json_array();

	for (int i = 0; i < c->n_left_out; i++) {
		const struct choice_left_out *l = &c->left_out[i];
		char name[FLEET_NAME];
		json_t *o;

		fleet_node_name(f->fleet, l->node, name);
		o = json_pack("{s:s, s:f}", "name", name, "missing_bytes", l->missing_bytes);
		json_object_set_new(o, "cost_with", number_or_null(l->cost_with));
		if (isfinite(l->cost_with))
			json_object_set_new(o, "stage", json_integer(l->stage));
		json_array_append_new(list, o);
	}
	return list;
}

char *choice_json(const struct choice *c, const struct choose_request *q, double tokens)
{
	json_t *list = json_array(), *root;
	char *text;

	for (int i = 0; i < c->n; i++)
		json_array_append_new(list, candidate_to_json(&c->list[i], q, tokens));
	root = json_pack("{s:s, s:s, s:I, s:o, s:o}", "format", FORMAT, "fleet",
			 q->frame.fleet->name, "evaluated", (json_int_t)c->evaluated, "candidates",
			 list, "left_out", left_out_to_json(c, &q->frame));
	if (q->has_baselines) {
		json_object_set_new(root, "equal", candidate_to_json(&c->equal, q, tokens));
		json_object_set_new(root, "dtfm", candidate_to_json(&c->dtfm, q, tokens));
	}
	text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
	json_decref(root);
	return text;
}
