/* Turns a candidate into a cluster, and plans it with the search that runs use. */
#include "schedule/fleet/candidate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "schedule/search/search.h"

/* Work of a stage 0 without layers, which only looks up embeddings, as a number of layers. It is
 * above 0, because a cluster allows no stage without work. */
#define NO_LAYERS 0.001

static size_t node_bytes(const struct candidate_frame *f)
{
	return (size_t)f->fleet->n_nodes * sizeof(int);
}

void candidate_init(struct candidate *c, const struct candidate_frame *f)
{
	*c = (struct candidate){ .n_stages = 1,
				 .sequences = 1,
				 .wanted_slots = 1,
				 .formats = f->formats,
				 .seconds = INFINITY,
				 .price_per_hour = NAN };
	c->stage_of = alloc_array((size_t)f->fleet->n_nodes, sizeof(int));
}

void candidate_fini(struct candidate *c)
{
	free(c->stage_of);
	plan_free(c->plan);
}

void candidate_copy_choice(struct candidate *to, const struct candidate *from,
			   const struct candidate_frame *f)
{
	int *stage_of = to->stage_of;

	plan_free(to->plan);
	*to = *from;
	to->stage_of = stage_of;
	memcpy(stage_of, from->stage_of, node_bytes(f));
	to->plan = NULL;
	to->seconds = INFINITY;
	to->price_per_hour = NAN;
}

void candidate_move(struct candidate *to, struct candidate *from, const struct candidate_frame *f)
{
	candidate_copy_choice(to, from, f);
	to->seconds = from->seconds;
	to->price_per_hour = from->price_per_hour;
	to->plan = from->plan;
	from->plan = NULL;
	from->seconds = INFINITY;
}

bool candidate_same_choice(const struct candidate *a, const struct candidate *b,
			   const struct candidate_frame *f)
{
	return a->n_stages == b->n_stages && a->sequences == b->sequences &&
	       a->wanted_slots == b->wanted_slots && a->formats.wire == b->formats.wire &&
	       a->formats.sum_wire == b->formats.sum_wire &&
	       memcmp(a->layers, b->layers, (size_t)a->n_stages * sizeof(int)) == 0 &&
	       memcmp(a->stage_of, b->stage_of, node_bytes(f)) == 0;
}

int candidate_size(const struct candidate *c, int stage, const struct candidate_frame *f)
{
	int n = 0;

	for (int i = 0; i < f->fleet->n_nodes; i++)
		n += c->stage_of[i] == stage;
	return n;
}

int candidate_skip(const struct candidate_frame *f, int n_stages)
{
	return n_stages * f->skip / f->of_stages;
}

bool candidate_visits_all(const struct candidate_frame *f, int n_stages, int n_microbatches)
{
	return (long)n_microbatches * (n_stages - 1 - candidate_skip(f, n_stages)) >= n_stages - 1;
}

double candidate_layers_computed(const struct candidate *c, const struct candidate_frame *f)
{
	int others = c->n_stages - 1, visited = others - candidate_skip(f, c->n_stages);

	if (others == 0)
		return f->shape->n_layers;
	return c->layers[0] + (double)(f->shape->n_layers - c->layers[0]) * visited / others;
}

struct stage_fit candidate_fit(const struct candidate *c, int node, const struct candidate_frame *f)
{
	int s = c->stage_of[node];

	return stage_cost_fit(f->shape, fleet_machines_of(f->fleet, node), c->layers[s], s == 0,
			      c->sequences, c->wanted_slots);
}

double candidate_price(const struct candidate *c, const struct candidate_frame *f)
{
	int last = -1;
	double sum = 0;

	for (int i = 0; i < f->fleet->n_nodes; i++) {
		int machine = f->fleet->nodes[i].machine;

		if (c->stage_of[i] < 0 || machine == last)
			continue;
		sum += fleet_machines_of(f->fleet, i)->price_per_hour;
		last = machine;
	}
	return sum;
}

bool candidate_fits(const struct candidate *c, const struct candidate_frame *f)
{
	int sizes[CLUSTER_MOST_STAGES] = { 0 };

	for (int i = 0; i < f->fleet->n_nodes; i++) {
		if (c->stage_of[i] < 0)
			continue;
		sizes[c->stage_of[i]]++;
		if (candidate_fit(c, i, f).slots < 1)
			return false;
	}
	for (int s = 0; s < c->n_stages; s++)
		if (sizes[s] == 0 || c->layers[s] < (s > 0))
			return false;
	return f->batch % (c->sequences * sizes[0]) == 0;
}

bool candidate_is_possible(const struct candidate *c, const struct candidate_frame *f)
{
	return candidate_fits(c, f) &&
	       candidate_visits_all(f, c->n_stages, f->batch / c->sequences);
}

/* ---- the cluster ---- */

/* Returns true if the stages are those of a model that is cut equally (model/config.h). */
static bool is_cut_equally(const struct candidate *c, const struct candidate_frame *f)
{
	int n = f->shape->n_layers;

	for (int s = 0; s < c->n_stages; s++)
		if (c->layers[s] != n * (s + 1) / c->n_stages - n * s / c->n_stages)
			return false;
	return true;
}

/* Sets the work of each stage: its layers relative to the average number of layers. In an equal cut
 * the work of all stages stays 1, because a controller treats such stages as equal. Stages of an
 * equal cut may still differ by one layer; fill_node puts this difference into the task times. */
static void fill_work(const struct candidate *c, const struct candidate_frame *f,
		      struct cluster *to)
{
	double average = (double)f->shape->n_layers / c->n_stages;

	for (int s = 0; s < c->n_stages && !is_cut_equally(c, f); s++)
		to->work[s] = fmax(c->layers[s], NO_LAYERS) / average;
}

static void fill_node(const struct candidate *c, int node, const struct candidate_frame *f,
		      struct cluster_node *to)
{
	const struct fleet_machines *e = fleet_machines_of(f->fleet, node);
	struct stage_fit fit = candidate_fit(c, node, f);
	double layers = is_cut_equally(c, f) ? c->layers[c->stage_of[node]]
					     : (double)f->shape->n_layers / c->n_stages;
	struct stage_times t = stage_cost_times(f->shape, e, layers, c->sequences, fit.level);

	free(to->location);
	to->location = alloc_string(e->place);
	to->device = e->device ? alloc_string(e->device) : NULL;
	to->stage = c->stage_of[node];
	to->memory = fit.slots;
	to->forward_s = t.forward_s;
	to->backward_s = t.backward_s;
	to->loss_s = t.loss_s;
}

/* Returns the bytes of the gradient that two nodes sum. For nodes in different stages, returns the
 * larger gradient of the two stages, because the search may move either node. */
static double gradient_bytes(const struct candidate *c, int a, int b,
			     const struct candidate_frame *f)
{
	int s = c->stage_of[a], t = c->stage_of[b];

	return sizeof(float) * fmax(stage_cost_weights(f->shape, c->layers[s], s == 0),
				    stage_cost_weights(f->shape, c->layers[t], t == 0));
}

static void fill_links(const struct candidate *c, const struct candidate_frame *f, const int *nodes,
		       struct cluster *to)
{
	const struct fleet *fleet = f->fleet;
	size_t n = (size_t)to->n_nodes;
	double activation = f->shape->activation_bytes * c->sequences;

	to->bytes_s = alloc_array(n * n, sizeof(*to->bytes_s));
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++) {
			size_t link = (size_t)nodes[i] * (size_t)fleet->n_nodes + (size_t)nodes[j];
			double latency = fleet->latency_s[link], speed = fleet->bandwidth[link];

			if (i == j || latency < 0)
				continue;
			to->bytes_s[i * n + j] = activation / speed;
			to->delay_s[i * n + j] =
				latency + activation / speed + fleet->transfer_overhead_s;
			to->sync_pair_s[i * n + j] =
				latency + gradient_bytes(c, nodes[i], nodes[j], f) / speed;
		}
	}
}

struct cluster *candidate_cluster(const struct candidate *c, const struct candidate_frame *f)
{
	int *nodes = alloc_array((size_t)f->fleet->n_nodes, sizeof(int)), n = 0;
	struct cluster *to;

	for (int i = 0; i < f->fleet->n_nodes; i++)
		if (c->stage_of[i] >= 0)
			nodes[n++] = i;
	to = cluster_alloc(n, c->n_stages, true);
	if (to) {
		free(to->name);
		to->name = alloc_string(f->fleet->name);
		to->dispatch_overhead_s = f->fleet->dispatch_overhead_s;
		fill_work(c, f, to);
		for (int i = 0; i < n; i++) {
			fill_node(c, nodes[i], f, &to->nodes[i]);
			to->stages[to->nodes[i].stage]++;
		}
		to->microbatches_per_data_node = f->batch / (c->sequences * to->stages[0]);
		fill_links(c, f, nodes, to);
	}
	free(nodes);
	return to;
}

static json_t *links_to_json(const struct candidate *c, const struct candidate_frame *f,
			     const double *matrix)
{
	json_t *rows = json_array();
	int n = f->fleet->n_nodes;

	for (int i = 0; i < n; i++) {
		json_t *row = c->stage_of[i] < 0 ? NULL : json_array();

		for (int j = 0; row && j < n; j++) {
			size_t at = (size_t)i * (size_t)n + (size_t)j;
			bool is_link = i != j && f->fleet->latency_s[at] >= 0;

			if (c->stage_of[j] >= 0)
				json_array_append_new(row, is_link  ? json_real(matrix[at])
							   : i == j ? json_real(0)
								    : json_null());
		}
		if (row)
			json_array_append_new(rows, row);
	}
	return rows;
}

/* The text has `links` instead of delays: delays depend on the format of tensors, and links do
 * not. */
char *candidate_cluster_text(const struct candidate *c, const struct candidate_frame *f)
{
	struct cluster *cluster = candidate_cluster(c, f);
	char *delays = cluster ? cluster_format(cluster) : NULL, *text = NULL;
	json_t *root = delays ? json_loads(delays, 0, NULL) : NULL;
	json_t *links =
		json_pack("{s:o, s:o}", "latency_s", links_to_json(c, f, f->fleet->latency_s),
			  "bandwidth_bytes_per_s", links_to_json(c, f, f->fleet->bandwidth));

	if (root && links && json_object_del(root, "delay_s") == 0 &&
	    json_object_del(root, "bytes_s") == 0 && json_object_set(root, "links", links) == 0 &&
	    json_object_set_new(root, "activation_bytes",
				json_real(f->shape->activation_bytes * c->sequences)) == 0 &&
	    json_object_set_new(root, "transfer_overhead_s",
				json_real(f->fleet->transfer_overhead_s)) == 0)
		text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(links);
	json_decref(root);
	free(delays);
	cluster_free(cluster);
	return text;
}

/* ---- the evaluation ---- */

void candidate_evaluate(struct candidate *c, int64_t evaluations, const struct candidate_frame *f)
{
	struct cluster *cluster = candidate_cluster(c, f);
	struct plan_request q;

	plan_free(c->plan);
	c->plan = NULL;
	c->seconds = INFINITY;
	c->price_per_hour = candidate_price(c, f);
	if (!cluster)
		return;
	cluster_reformat(cluster, &c->formats);
	plan_request_init(&q);
	q.path_length = c->n_stages - candidate_skip(f, c->n_stages);
	q.overlap_sync = true;
	q.evaluations = evaluations;
	q.seed = f->seed;
	q.cancel = f->cancel;
	if (plan_search(cluster, &q, &c->plan, NULL) == 0)
		c->seconds = c->plan->predicted.iteration_s + plan_visible_sync_s(c->plan);
	cluster_free(cluster);
}
