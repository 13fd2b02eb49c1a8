/* recorded_run.c - reads a recorded run from its store and sorts it by time.
 *
 * A replay moves a cursor over a list of happenings in the order of time. The store keeps its rows
 * separately for each kind, with times of several clocks. This module checks the stored description
 * of the run and its nodes, lets recorded_run_rows.c read the rows, and sorts the happenings. */
#include "controller/replay/recorded_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "controller/network/link_table.h"
#include "controller/replay/recorded_run_rows.h"
#include "controller/operator/console_messages.h"
#include "model/files/run_parts.h"

/* ---- the run ---- */

static int load_numbers(int *to, uint32_t n, const json_t *from, int most)
{
	if (json_array_size(from) != n)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		to[i] = (int)json_integer_value(json_array_get(from, i));
		if (to[i] < -1 || to[i] >= most)
			return -EINVAL;
	}
	return 0;
}

/* Reads settings from the state that a controller saves for its restart (resume.c). The run has the
 * settings of its newest part. */
static int load_saved(struct recorded_run *r, struct recorded_part *p, const char *text,
		      struct error *err)
{
	int stages[MSG_NODES], path_length = 0, every, batches, rc;
	json_t *o = json_loads(text, 0, NULL), *st, *sh;
	json_int_t iterations = 0;

	rc = o && json_unpack(o, "{s:F, s:i, s:I, s:i, s:i, s:o, s:o}", "time_scale",
			      &r->time_scale,
			      "path_length", &path_length, "iterations", &iterations, "eval_every",
			      &every, "eval_batches", &batches, "stages", &st, "shards", &sh) == 0 ?
		     0 : -EINVAL;
	if (rc == 0)
		rc = load_numbers(stages, r->n_nodes, st, p->cluster->n_stages);
	if (rc == 0)
		rc = load_numbers(p->shard_of, r->n_nodes, sh, (int)p->n_shards);
	json_decref(o);
	if (rc != 0 || !isfinite(r->time_scale) || path_length < 1 ||
	    path_length > p->cluster->n_stages)
		return error_set(err, -EINVAL, "the controller's own record is damaged");
	for (uint32_t i = 0; i < r->n_nodes; i++)
		p->cluster->nodes[i].stage = stages[i];
	p->path_length = (uint32_t)path_length;
	r->iterations_wanted = (uint64_t)iterations;
	r->unit_s = r->time_scale > 0 ? r->time_scale : 1;
	return 0;
}

/* Sets bytes_s, the time in which each link sends the bytes of an activation, to the time for fp32.
 * If links were measured, the record has these times for the run's first format. */
static void restore_bytes(struct cluster *c, const char *recorded)
{
	struct link_table *links = link_table_parse(recorded);

	for (int i = 0; links && c->bytes_s && i < c->n_nodes * c->n_nodes; i++)
		c->bytes_s[i] /= tensor_format_activation_share(c->formats.wire);
	link_table_free(links);
}

static int load_cluster(struct recorded_run *r, struct recorded_part *p, const char *text,
			struct error *err)
{
	uint32_t n_microbatches = p->n_shards * p->per_shard, n_nodes;
	int rc = cluster_parse(text, strlen(text), &p->cluster, err);

	if (rc != 0)
		return rc;
	p->cluster->formats = r->run->formats;
	restore_bytes(p->cluster, text);
	n_nodes = (uint32_t)p->cluster->n_nodes;
	if (n_nodes > MSG_NODES || p->cluster->n_stages > MSG_STAGES ||
	    (uint64_t)p->n_shards * p->per_shard > MSG_MICROBATCHES || n_microbatches == 0)
		return error_set(err, -EINVAL, "the run is larger than any run can be");
	if (r->parts.n > 1 && (n_nodes != r->n_nodes || n_microbatches != r->n_microbatches))
		return error_set(err, -EINVAL, "the parts of the run contradict each other");
	r->n_nodes = n_nodes;
	r->n_microbatches = n_microbatches;
	p->shard_of = alloc_array(n_nodes, sizeof(*p->shard_of));
	return 0;
}

static int load_model(struct recorded_run *r, struct recorded_part *p, const char *text,
		      struct error *err)
{
	struct model_config model;
	struct hyperparameters hyper;
	int rc = model_preset("tiny", &model, &hyper, err);

	if (rc == 0)
		rc = model_config_parse(&model, &hyper, text, strlen(text), "model", err);
	if (rc != 0)
		return rc;
	r->parameters = count_parameters(&model);
	snprintf(p->model, sizeof(p->model), "llama %.3gM", (double)r->parameters * 1e-6);
	model_cut_append(&model, p->model, sizeof(p->model));
	for (uint32_t s = 0; s < model.n_stages && s < MSG_STAGES; s++)
		p->layers[s] = (uint16_t)model_layer_count(&model, s);
	r->rehearsal = model.rehearsal;
	return 0;
}

static int load_part(struct recorded_run *r, const struct run_part *from, struct error *err)
{
	struct recorded_part *p = LIST_ADD(&r->parts);
	int rc;

	*p = (struct recorded_part){ .after = from->after,
				     .first_writer = from->writer,
				     .n_shards = from->n_shards,
				     .per_shard = from->per_shard };
	rc = load_cluster(r, p, from->cluster, err);
	if (rc == 0)
		rc = load_model(r, p, from->model, err);
	return rc ? rc : load_saved(r, p, from->state, err);
}

/* Reads the list of parts. A run whose stages never changed has one part and no list. */
static int read_parts(const struct recorded_run *r, struct run_parts *out, struct error *err)
{
	const struct store_run *run = r->run;
	struct run_part whole = { .n_shards = run->n_shards,
				  .per_shard = run->per_shard,
				  .model = (char *)run->model };
	struct run_part *last;
	char *text;
	int rc = store_get(r->store, RUN_PARTS_KEY, &text, err);

	if (rc == 0) {
		rc = run_parts_parse(out, text, err);
		free(text);
	} else if (rc == -ENOENT) {
		run_parts_add(out, &whole);
		rc = 0;
	}
	if (rc != 0)
		return rc;
	last = &out->list[out->n - 1];
	last->cluster = alloc_string(run->cluster);
	rc = store_get(r->store, "controller", &last->state, err);
	return rc == -ENOENT ? error_set(err, -ENODATA, "the run never got under way: there is "
							"nothing to replay")
			     : rc;
}

static int load_run(struct recorded_run *r, struct error *err)
{
	struct run_parts parts = { NULL, 0 };
	int rc = read_parts(r, &parts, err);
	size_t first = parts.n;

	while (first > 0 && parts.list[first - 1].cluster && parts.list[first - 1].state)
		first--;
	for (size_t i = first; rc == 0 && i < parts.n; i++)
		rc = load_part(r, &parts.list[i], err);
	run_parts_free(&parts);
	return rc;
}

/* ---- reading ---- */

static int by_time(const void *a, const void *b)
{
	const struct happening *x = a, *y = b;

	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Sorts the happenings by time. Rows of one kind keep their order. If clocks disagree, a row may
 * have an earlier time than the row before it. In that case the later row gets the time of the
 * row before it. */
static void keep_order(struct recorded_run *r)
{
	int64_t latest[HAPPENED_HEAL + 1];
	uint32_t last[HAPPENED_HEAL + 1] = { 0 };

	for (int k = 0; k <= HAPPENED_HEAL; k++)
		latest[k] = INT64_MIN;
	/* The happenings are in the order in which they were read, so each kind is sorted by its
	 * index. */
	for (size_t i = 0; i < r->happenings.n; i++) {
		struct happening *h = &r->happenings.list[i];

		if (h->kind == HAPPENED_HEAL || h->kind == HAPPENED_PLAN)
			continue;
		if (h->index >= last[h->kind] && h->at_us < latest[h->kind])
			h->at_us = latest[h->kind];
		latest[h->kind] = h->at_us;
		last[h->kind] = h->index;
	}
	qsort(r->happenings.list, r->happenings.n, sizeof(*r->happenings.list), by_time);
}

int recorded_run_read(struct recorded_run **out, struct store *store, struct error *err)
{
	struct recorded_run *r = alloc_new(sizeof(*r));
	struct error none = { "" };
	int rc;

	err = err ? err : &none;
	r->store = store;
	r->run = store_run_of(store);
	rc = load_run(r, err);
	if (rc == 0)
		rc = recorded_run_rows(r, err);
	if (rc == 0) {
		keep_order(r);
		r->first_us = r->happenings.list[0].at_us;
		r->last_us = r->happenings.list[r->happenings.n - 1].at_us;
		*out = r;
	} else {
		recorded_run_free(r);
	}
	return rc;
}

void recorded_run_free(struct recorded_run *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->plans.n; i++) {
		free(r->plans.list[i].reason);
		free(r->plans.list[i].text);
	}
	for (size_t i = 0; i < r->parts.n; i++) {
		cluster_free(r->parts.list[i].cluster);
		free(r->parts.list[i].shard_of);
	}
	free(r->parts.list);
	free(r->iterations.list);
	free(r->validations.list);
	free(r->notes.list);
	free(r->faults.list);
	free(r->plans.list);
	free(r->nodes.list);
	free(r->gpus.list);
	free(r->devices.list);
	free(r->phases.list);
	free(r->checkpoints.list);
	free(r->beliefs.list);
	free(r->shifts);
	free(r->happenings.list);
	free(r);
}

static int see_any(void *context, const struct store_moment *m)
{
	(void)context;
	(void)m;
	return 1;
}

int recorded_run_grew(const struct recorded_run *r, struct error *err)
{
	uint64_t last = 0;
	int rc = store_each_moment(r->store, r->last_moment, see_any, NULL, err);

	if (rc == 0)
		rc = store_last_commit(r->store, &last, err);
	return rc != 0 ? rc : last > r->iterations.n;
}
