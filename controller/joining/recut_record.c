/* recut_record.c - makes the record of a run with other stages (recut_record.h).
 *
 * Entries that do not depend on the stages stay as they are: keys, marks, rates, formats. */
#include "controller/joining/recut_record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "controller/joining/recut_nodes.h"
#include "controller/joining/recut_order.h"
#include "controller/members/capacity.h"
#include "controller/network/link_table.h"
#include "model/cut.h"
#include "model/files/origin.h"
#include "model/files/run_parts.h"
#include "model/tensor.h"
#include "schedule/format/cluster.h"
#include "store/store.h"

enum { LOOK_BACK = 8 }; /* number of newest commits whose nodes can have a stage */

/* The record before the change, and the stages of the nodes after the change. */
struct recutting {
	struct store *store;
	const struct store_run *run;
	const struct recut_order *order;
	struct model_config before;
	struct hyperparameters hyper;
	struct cluster *cluster;
	json_t *state, *options; /* the entries "controller" and "options" */
	uint64_t skipped;
	int was[MSG_NODES], stage_of[MSG_NODES];
	bool here[MSG_NODES]; /* array of the nodes: true if the node can have a stage */
};

/* ---- reading ---- */

static json_t *read_entry(struct store *s, const char *key, struct error *err)
{
	char *text = NULL;
	json_t *o = NULL;

	if (store_get(s, key, &text, err) != 0)
		return NULL;
	o = json_loads(text, 0, NULL);
	free(text);
	if (!json_is_object(o))
		error_set(err, -EINVAL, "the record's entry \"%s\" is damaged", key);
	return o;
}

static void see_nodes(struct recutting *x, const struct store_commit *c)
{
	for (size_t r = 0; r < c->n_reductions; r++)
		for (size_t i = 0; i < c->reductions[r].n_nodes; i++)
			if (c->reductions[r].nodes[i] < MSG_NODES)
				x->here[c->reductions[r].nodes[i]] = true;
}

/* Finds the nodes that can have a stage: the nodes in the order's list or, without a list, the
 * nodes that took part in one of the last commits. Several commits are read, because a node that
 * was loading its weights is missing from some commits. */
static int read_last_commits(struct recutting *x, uint64_t last, struct error *err)
{
	int rc = 0;

	for (uint64_t i = last; rc == 0 && i > 0 && i + LOOK_BACK > last; i--) {
		struct store_commit c;

		rc = store_read_commit(x->store, i, &c, err);
		if (rc != 0)
			break;
		if (i == last)
			x->skipped = c.repeats.skipped;
		see_nodes(x, &c);
		store_commit_clear(&c);
	}
	for (uint32_t i = 0; i < x->order->n_here; i++)
		x->here[i] = x->order->here[i] != 0;
	return rc;
}

static int read_stages(struct recutting *x, struct error *err)
{
	const json_t *stages = json_object_get(x->state, "stages");

	if (json_array_size(stages) != (size_t)x->cluster->n_nodes ||
	    x->cluster->n_nodes > MSG_NODES)
		return error_set(err, -EINVAL, "the controller's saved state is damaged");
	for (int i = 0; i < x->cluster->n_nodes; i++)
		x->was[i] = (int)json_integer_value(json_array_get(stages, (size_t)i));
	return 0;
}

static int read_record(struct recutting *x, struct recut_record *out, struct error *err)
{
	const struct store_run *run = x->run;
	int rc = store_last_commit(x->store, &out->after, err);

	if (rc == 0)
		rc = model_preset("tiny", &x->before, &x->hyper, err);
	if (rc == 0)
		rc = model_config_parse(&x->before, &x->hyper, run->model, strlen(run->model),
					"the run's model", err);
	if (rc == 0)
		rc = cluster_parse(run->cluster, strlen(run->cluster), &x->cluster, err);
	if (rc != 0)
		return rc;
	x->state = read_entry(x->store, "controller", err);
	x->options = x->state ? read_entry(x->store, "options", err) : NULL;
	if (!x->state || !x->options)
		return -EINVAL;
	rc = read_stages(x, err);
	if (rc == 0 && out->after > 0)
		rc = read_last_commits(x, out->after, err);
	return rc;
}

/* ---- checks ---- */

/* Divides the model into the ordered stages. Returns 1 if the layers and the nodes of the stages do
 * not change. */
static int cut(struct recutting *x, struct model_config *model, const char *option,
	       struct error *err)
{
	const struct recut_order *o = x->order;
	char before[STAGE_LAYERS_TEXT], after[STAGE_LAYERS_TEXT];
	bool same = x->order->n_places == 0;
	int rc = 0;

	*model = x->before;
	if (o->layers.n == 0) {
		model->stage_layers.n = 0;
		model->n_stages = o->n_nodes;
	} else {
		rc = model_cut(model, &o->layers, option, err);
	}
	if (rc == 0 && model->n_stages > model->n_layers + 1)
		rc = error_set(err, -EINVAL,
			       "the model has %u layers: it can be cut into at most %u stages",
			       model->n_layers, model->n_layers + 1);
	if (rc == 0)
		rc = model_config_check(model, err);
	if (rc != 0)
		return rc;
	model_cut_format(&x->before, before);
	model_cut_format(model, after);
	for (uint32_t s = 0; s < o->n_nodes && (int)s < x->cluster->n_stages; s++)
		same = same && o->nodes[s] == x->cluster->stages[s];
	return same && strcmp(before, after) == 0;
}

/* Refuses a change if an option of the run depends on the present stages. Such an option names
 * stages by number, or assigns nodes to stages for each phase. With --stack, a change is refused
 * until the skipped stages have been visited, because they start from copies of present stages. */
static int check_named_stages(const struct recutting *x, uint32_t n_stages, struct error *err)
{
	const char *schedule = json_string_value(json_object_get(x->options, "skip_schedule"));
	bool visited = true;
	int least = x->cluster->n_stages - cluster_most_skipped(x->cluster), rc = 0;

	if (json_is_true(json_object_get(x->options, "phase_moves")))
		return error_set(err, -EINVAL,
				 "--phase-moves has nodes for each phase of the present stages");
	if (json_is_true(json_object_get(x->options, "stack")))
		rc = store_visited(x->store, (uint32_t)least, &visited, err);
	if (rc == 0 && !visited)
		rc = error_set(err, -EINVAL,
			       "the skipped stages have not been trained: change the stages after "
			       "the phase that visits them has begun");
	if (rc != 0 || n_stages == x->before.n_stages)
		return rc;
	if (schedule && *schedule)
		return error_set(err, -EINVAL,
				 "the skip schedule is for %u stages, not %u: keep their number",
				 x->before.n_stages, n_stages);
	if (x->cluster->always != 1)
		return error_set(err, -EINVAL,
				 "--always names some of %u stages: keep their number",
				 x->before.n_stages);
	return 0;
}

/* Computes the number of stages that microbatches skip. The change keeps this number. Refuses the
 * change if microbatches may not skip so many of the new stages. */
static int check_skip(const struct recutting *x, uint32_t n_stages, int *skip, struct error *err)
{
	const json_t *length = json_object_get(x->state, "path_length");
	int most = (int)n_stages - stage_set_count(x->cluster->always);

	*skip = (int)x->before.n_stages - (int)json_integer_value(length);
	if (*skip >= 0 && *skip <= most)
		return 0;
	return error_set(err, -EINVAL,
			 "microbatches skip %d stages, and of %u stages only %d may be skipped: "
			 "change the skip ratio first", *skip, n_stages, most);
}

/* Checks that the order still fits the run, because nodes may have left or changed since the order.
 * Each stage needs a node, and the number of nodes of stage 0 must divide the number of
 * microbatches. */
static int check_places(const struct recutting *x, uint32_t n_stages, struct error *err)
{
	int sizes[MSG_STAGES] = { 0 }, n = (int)(x->run->n_shards * x->run->per_shard);

	for (uint32_t i = 0; i < x->order->n_places; i++)
		if (x->stage_of[i] >= 0 && x->stage_of[i] < (int)n_stages)
			sizes[x->stage_of[i]]++;
	for (uint32_t s = 0; s < n_stages; s++)
		if (sizes[s] == 0 || n % sizes[0] != 0)
			return error_set(err, -EINVAL, "the ordered places are not those of "
						       "this run");
	return (int)x->order->n_places == x->cluster->n_nodes
		       ? 0
		       : error_set(err, -EINVAL, "the ordered places are for %u nodes",
				   x->order->n_places);
}

/* ---- the new entries ---- */

static int place(struct recutting *x, const struct model_config *model, struct error *err)
{
	const struct recut_nodes nodes = { model, (uint32_t)x->cluster->n_nodes, x->was, x->here,
					   (int)(x->run->n_shards * x->run->per_shard) };

	if (x->order->n_places == 0)
		return recut_deal(&nodes, x->order, x->stage_of, err);
	memcpy(x->stage_of, x->order->stage_of, sizeof(x->stage_of));
	return check_places(x, model->n_stages, err);
}

static int largest_stage(const struct model_config *model, double *out, struct error *err)
{
	struct tensor_table table;
	int rc = tensor_table_new(&table, model, err);

	*out = 0;
	for (uint32_t s = 0; rc == 0 && s < model->n_stages; s++)
		*out = fmax(*out, (double)tensor_table_parameters(&table, s));
	if (rc == 0)
		tensor_table_free(&table);
	return rc;
}

static uint32_t most_layers(const struct model_config *model)
{
	uint32_t most = 1;

	for (uint32_t s = 0; s < model->n_stages; s++)
		most = model_layer_count(model, s) > most ? model_layer_count(model, s) : most;
	return most;
}

/* Converts each node's times and slots to the new stages. Times are valid for a stage with the
 * mean number of layers. The activations of a larger stage take more memory, so its nodes hold
 * fewer activations at once. measured: true if the numbers of slots come from the memory of the
 * machines, not from a description. bytes: factor by which the size of the largest stage changes.
 * The times of sums change by the same factor. */
static void scale_nodes(const struct recutting *x, const struct model_config *model,
			bool measured, double bytes)
{
	double ratio = capacity_unit_layers(model) / capacity_unit_layers(&x->before);
	double slots = (double)most_layers(&x->before) / most_layers(model);
	struct cluster *c = x->cluster;

	for (int i = 0; i < c->n_nodes; i++) {
		c->nodes[i].forward_s *= ratio;
		c->nodes[i].backward_s *= ratio;
		if (x->order->n_places > 0)
			c->nodes[i].memory = x->order->slots[i];
		else if (measured && slots < 1)
			c->nodes[i].memory = (int)fmax(1, floor(slots * c->nodes[i].memory));
	}
	for (int i = 0; c->sync_pair_s && i < c->n_nodes * c->n_nodes; i++)
		if (c->sync_pair_s[i] > 0)
			c->sync_pair_s[i] *= bytes;
}

static void shape_cluster(const struct recutting *x, const struct model_config *model)
{
	struct cluster *c = x->cluster;
	int batch = c->microbatches_per_data_node * c->stages[0];

	c->n_stages = (int)model->n_stages;
	c->stages = alloc_resize(c->stages, (size_t)c->n_stages, sizeof(*c->stages));
	c->stages[0] = 1;
	c->microbatches_per_data_node = batch;
	for (int s = 0; s < c->n_stages; s++)
		c->work[s] = model_stage_work(model, (uint32_t)s);
	cluster_set_stages(c, x->stage_of);
}

/* Returns the cluster in the form that the record has: with measured links, if the record has such
 * links. */
static char *print_cluster(const struct recutting *x, double bytes)
{
	struct link_table *links = link_table_parse(x->run->cluster);
	char *text;

	if (links)
		links->sum_bytes *= bytes;
	text = links ? link_table_json(links, x->cluster) : cluster_format(x->cluster);
	link_table_free(links);
	return text;
}

static int make_cluster(struct recutting *x, struct recut_record *out, struct error *err)
{
	struct link_table *links = link_table_parse(x->run->cluster);
	double before, after;
	int rc = largest_stage(&x->before, &before, err);

	if (rc == 0)
		rc = largest_stage(&out->model, &after, err);
	if (rc == 0) {
		scale_nodes(x, &out->model, links != NULL, after / before);
		shape_cluster(x, &out->model);
		rc = cluster_validate(x->cluster, err);
	}
	link_table_free(links);
	if (rc != 0)
		return rc;
	out->n_shards = (uint32_t)x->cluster->stages[0];
	out->per_shard = (uint32_t)x->cluster->microbatches_per_data_node;
	out->cluster_text = print_cluster(x, after / before);
	out->model_text = model_config_print(&out->model, &x->hyper);
	return 0;
}

/* Replaces the stage of each node, and marks the nodes that the choice of stages leaves out. A node
 * that an earlier choice has left out is used again if this choice has a stage for it. */
static void make_state(struct recutting *x, struct recut_record *out, int skip)
{
	json_t *stages = json_array(), *shards = json_array(), *homes = json_array();
	json_t *marked = json_object_get(x->state, "marked");
	json_t *left_out = json_object_get(x->state, "left_out");
	int shard = 0;

	for (int i = 0; i < x->cluster->n_nodes; i++) {
		bool is_left_out = x->stage_of[i] == RECUT_LEFT_OUT;
		int stage = is_left_out ? RECUT_AWAY : x->stage_of[i];
		size_t at = (size_t)i;
		bool was_left_out = json_integer_value(json_array_get(left_out, at)) != 0;

		json_array_append_new(stages, json_integer(stage));
		json_array_append_new(homes, json_integer(stage));
		json_array_append_new(shards, json_integer(stage == 0 ? shard++ : -1));
		if (is_left_out == was_left_out || (was_left_out && stage < 0))
			continue;
		json_array_set_new(marked, at, json_integer(is_left_out));
		json_array_set_new(left_out, at, json_integer(is_left_out));
	}
	json_object_set_new(x->state, "stages", stages);
	json_object_set_new(x->state, "shards", shards);
	json_object_set_new(x->state, "homes", homes);
	json_object_del(x->state, "spares"); /* plans may use all nodes in the new stages */
	json_object_set_new(x->state, "path_length",
			    json_integer((json_int_t)out->model.n_stages - skip));
	json_object_set_new(x->options, "skip", json_integer(skip));
	out->state_text = json_dumps(x->state, JSON_COMPACT | JSON_REAL_PRECISION(17));
	out->options_text = json_dumps(x->options, JSON_COMPACT | JSON_REAL_PRECISION(17));
}

static int count_restore(void *context, const struct store_restore *r)
{
	(void)r;
	++*(uint32_t *)context;
	return 0;
}

/* Reads the parts of the run. A run whose stages never changed has one part, which begins with the
 * run's origin. */
static int read_parts(const struct recutting *x, struct run_parts *out, struct error *err)
{
	struct error ignored;
	struct origin origin = { .position = 0 };
	char *text = NULL;
	int rc;

	*out = (struct run_parts){ NULL, 0 };
	if (store_get(x->store, RUN_PARTS_KEY, &text, &ignored) == 0) {
		rc = run_parts_parse(out, text, err);
		free(text);
		return rc;
	}
	rc = store_get(x->store, "origin", &text, &ignored);
	if (rc == 0)
		rc = origin_parse(&origin, text, err);
	free(text);
	if (rc != 0 && rc != -ENOENT)
		return rc;
	run_parts_add(out, &(struct run_part){ .position = origin.position,
					       .n_shards = x->run->n_shards,
					       .per_shard = x->run->per_shard,
					       .model = (char *)x->run->model });
	return 0;
}

/* Keeps the cluster and the state of the part that ends here, because a replay shows them. */
static int keep_former(const struct recutting *x, struct run_part *last, struct error *err)
{
	last->cluster = alloc_string(x->run->cluster);
	return store_get(x->store, "controller", &last->state, err);
}

static int make_parts(const struct recutting *x, struct recut_record *out, struct error *err)
{
	struct run_parts parts;
	struct run_part next = { .after = out->after,
				 .skipped = x->skipped,
				 .writer = store_writer_epoch(x->store),
				 .n_shards = out->n_shards,
				 .per_shard = out->per_shard,
				 .model = out->model_text };
	int rc = read_parts(x, &parts, err);
	struct run_part *last = rc == 0 ? &parts.list[parts.n - 1] : NULL;

	if (rc == 0)
		rc = keep_former(x, last, err);
	if (rc == 0)
		rc = store_each_restore(x->store, count_restore, &next.n_restores, err);
	if (rc == 0) {
		next.position = last->n_shards * run_part_position(last, out->after, x->skipped);
		run_parts_add(&parts, &next);
		out->parts_text = run_parts_print(&parts);
		out->n_parts = (uint32_t)parts.n;
	}
	run_parts_free(&parts);
	return rc;
}

static int make(struct recutting *x, struct recut_record *out, const char *option,
		struct error *err)
{
	int skip, rc = read_record(x, out, err);

	if (rc == 0)
		rc = cut(x, &out->model, option, err);
	if (rc != 0)
		return rc;
	out->n_stages_before = x->before.n_stages;
	rc = check_named_stages(x, out->model.n_stages, err);
	if (rc == 0)
		rc = check_skip(x, out->model.n_stages, &skip, err);
	if (rc != 0 || out->after == 0)
		return rc;
	rc = place(x, &out->model, err);
	if (rc == 0)
		rc = make_cluster(x, out, err);
	if (rc != 0)
		return rc;
	memcpy(out->stage_of, x->stage_of, sizeof(out->stage_of));
	make_state(x, out, skip);
	rc = make_parts(x, out, err);
	if (rc == 0 && !(out->model_text && out->cluster_text && out->state_text &&
			 out->options_text && out->parts_text))
		rc = error_set(err, -ENOMEM, "out of memory");
	return rc;
}

int recut_record_make(struct recut_record *out, struct store *s, const struct recut_order *o,
		      const char *option, struct error *err)
{
	struct recutting x = { .store = s, .run = store_run_of(s), .order = o };
	struct recut_record made = { .after = 0 };
	int rc = make(&x, &made, option, err);

	cluster_free(x.cluster);
	json_decref(x.state);
	json_decref(x.options);
	if (rc == 0)
		*out = made;
	else
		recut_record_free(&made);
	return rc;
}

void recut_record_free(struct recut_record *r)
{
	free(r->model_text);
	free(r->cluster_text);
	free(r->state_text);
	free(r->options_text);
	free(r->parts_text);
	*r = (struct recut_record){ .after = 0 };
}
