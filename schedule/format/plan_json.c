/* Reads and writes skippipe.plan/1. The reader only checks that the text is well-formed; check.h
 * checks the rules. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "schedule/format/always_visited.h"
#include "schedule/format/plan.h"

#define FORMAT "skippipe.plan/1"
#define MOST_BYTES ((size_t)1 << 28)

static const char *const keys[] = { "format",
				    "assignment",
				    "path_length",
				    "skip_share",
				    "always_visited",
				    "overlap_sync",
				    "microbatches",
				    "order",
				    "predicted",
				    "search",
				    NULL };
static const char *const microbatch_keys[] = { "id", "data_node", "path", "release_s", NULL };
static const char *const predicted_keys[] = { "iteration_s", "sync_s", "collisions",
					      "collision_wait_s", "lower_bound_s",
					      "idle_fraction", "exposure", "total_s",
					      NULL };
static const char *const search_keys[] = { "algorithm", "seed", "evaluations", "elapsed_s",
					   "history", NULL };

/* Reads an array of node ids to out, which has room for all of them. */
static int read_ids(const json_t *list, const char *where, int *out, struct error *err)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);
		char at[32];

		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
		    json_integer_value(v) > INT_MAX) {
			snprintf(at, sizeof(at), "[%zu]", i);
			return json_expected(v, where, at, "a node id", err);
		}
		out[i] = (int)json_integer_value(v);
	}
	return 0;
}

static int read_assignment(const json_t *stages, struct plan *p, struct error *err)
{
	int n = 0;

	for (int s = 0; s < p->n_stages; s++) {
		char where[48];
		int rc;

		snprintf(where, sizeof(where), "assignment[%d]", s);
		p->stage_start[s] = n;
		rc = read_ids(json_array_get(stages, (size_t)s), where, p->assigned + n, err);
		if (rc != 0)
			return rc;
		n += (int)json_array_size(json_array_get(stages, (size_t)s));
	}
	return 0;
}

/* Reads a microbatch. Writes its path to `visits`, which points into the plan's list of
 * visits. */
static int read_microbatch(const json_t *v, int i, struct plan_microbatch *m, int *visits,
			   struct error *err)
{
	const double zero = 0;
	const json_t *path;
	char where[48];
	int rc;

	snprintf(where, sizeof(where), "microbatches[%d]", i);
	if (!json_is_object(v))
		return json_expected(v, where, "", "an object", err);
	rc = json_known_keys(v, where, microbatch_keys, err);
	if (rc == 0)
		rc = json_int(v, where, "id", 0, INT_MAX, NULL, &m->id, err);
	if (rc == 0)
		rc = json_int(v, where, "data_node", 0, INT_MAX, NULL, &m->data_node, err);
	if (rc == 0)
		rc = json_number(v, where, "release_s", 0, &zero, &m->release_s, err);
	if (rc == 0)
		rc = json_list(v, where, "path", -1, &path, err);
	if (rc != 0)
		return rc;
	if (json_array_size(path) < 1 || json_array_size(path) > PLAN_MOST_PATH)
		return error_set(err, -EINVAL, "%s.path: expected 1 to %d node ids", where,
				 PLAN_MOST_PATH);
	m->length = (int)json_array_size(path);
	m->path = visits;
	snprintf(where, sizeof(where), "microbatches[%d].path", i);
	return read_ids(path, where, visits, err);
}

static int by_id(const void *a, const void *b)
{
	const struct plan_microbatch *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int read_microbatches(const json_t *list, struct plan *p, struct error *err)
{
	int *visits = p->visits;

	for (int i = 0; i < p->n_microbatches; i++) {
		int rc = read_microbatch(json_array_get(list, (size_t)i), i, &p->microbatches[i],
					 visits, err);

		if (rc != 0)
			return rc;
		visits += p->microbatches[i].length;
	}
	qsort(p->microbatches, (size_t)p->n_microbatches, sizeof(*p->microbatches), by_id);
	for (int i = 1; i < p->n_microbatches; i++) {
		if (p->microbatches[i].id == p->microbatches[i - 1].id)
			return error_set(err, -EINVAL, "microbatches: id %d is there twice",
					 p->microbatches[i].id);
	}
	return 0;
}

static int read_order_task(const json_t *v, const char *where, struct plan_task *task,
			   struct error *err)
{
	const json_t *id = json_array_get(v, 0);
	const char *kind = json_string_value(json_array_get(v, 1));

	if (json_array_size(v) == 2 && json_is_integer(id) && kind &&
	    task_kind_parse(*kind, &task->kind) && !kind[1] && task->kind != TASK_EVALUATE &&
	    json_integer_value(id) >= 0 && json_integer_value(id) <= INT_MAX) {
		task->microbatch = (int)json_integer_value(id);
		return 0;
	}
	return error_set(err, -EINVAL, "%s: expected [microbatch, \"F\", \"L\" or \"B\"]",
			 where);
}

/* Reads the object with a list of tasks for each node id. If an error occurs, the plan owns the
 * lists that have been read. */
static int read_order(const json_t *object, struct plan *p, struct error *err)
{
	const char *key;
	json_t *list;

	if (!object)
		return 0;
	if (!json_is_object(object))
		return json_expected(object, "", "order", "an object", err);
	p->orders = alloc_array(json_object_size(object), sizeof(*p->orders));
	json_object_foreach((json_t *)object, key, list)
	{
		struct plan_order *o = &p->orders[p->n_orders];
		char *end, where[64];
		long node = strtol(key, &end, 10);

		if (*key < '0' || *key > '9' || *end || node < 0 || node > INT_MAX)
			return error_set(err, -EINVAL,
					 "order: expected node ids as keys, found \"%.40s\"", key);
		snprintf(where, sizeof(where), "order.%ld", node);
		if (!json_is_array(list))
			return json_expected(list, where, "", "an array", err);
		o->node = (int)node;
		o->tasks = alloc_array(json_array_size(list), sizeof(*o->tasks));
		p->n_orders++;
		for (size_t i = 0; i < json_array_size(list); i++) {
			int rc;

			snprintf(where, sizeof(where), "order.%ld[%zu]", node, i);
			rc = read_order_task(json_array_get(list, i), where,
					     &o->tasks[o->n_tasks++], err);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

/* All keys are optional, because plans that other programs wrote may lack some. */
static int read_predicted(const json_t *v, struct plan *p, struct error *err)
{
	struct plan_predicted *d = &p->predicted;
	const double zero = 0;
	const int none = 0;
	const json_t *list;
	int rc;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return json_expected(v, "", "predicted", "an object", err);
	rc = json_known_keys(v, "predicted", predicted_keys, err);
	if (rc == 0)
		rc = json_number(v, "predicted", "iteration_s", 0, &zero, &d->iteration_s, err);
	if (rc == 0)
		rc = json_number(v, "predicted", "sync_s", 0, &zero, &d->sync_s, err);
	if (rc == 0)
		rc = json_int(v, "predicted", "collisions", 0, INT_MAX, &none, &d->collisions, err);
	if (rc == 0)
		rc = json_number(v, "predicted", "collision_wait_s", 0, &zero, &d->collision_wait_s,
				 err);
	if (rc == 0)
		rc = json_number(v, "predicted", "lower_bound_s", 0, &zero, &d->lower_bound_s, err);
	if (rc == 0)
		rc = json_number(v, "predicted", "idle_fraction", -1, &zero, &d->idle_fraction,
				 err);
	if (rc == 0)
		rc = json_number(v, "predicted", "total_s", 0, &zero, &d->total_s, err);
	if (rc != 0 || !json_object_get(v, "exposure"))
		return rc;
	rc = json_list(v, "predicted", "exposure", p->n_stages, &list, err);
	if (rc != 0)
		return rc;
	d->exposure = alloc_array((size_t)p->n_stages, sizeof(*d->exposure));
	return read_ids(list, "predicted.exposure", d->exposure, err);
}

static int read_history(const json_t *v, struct plan_record *s, struct error *err)
{
	const json_t *list;
	int rc;

	if (!json_object_get(v, "history"))
		return 0;
	rc = json_list(v, "search", "history", -1, &list, err);
	if (rc != 0)
		return rc;
	s->history = alloc_array(json_array_size(list), sizeof(*s->history));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *at = json_array_get(list, i);

		if (json_array_size(at) != 2 || !json_is_number(json_array_get(at, 0)) ||
		    !json_is_number(json_array_get(at, 1)))
			return error_set(err, -EINVAL,
					 "search.history[%zu]: expected [elapsed_s, iteration_s]",
					 i);
		s->history[i][0] = json_number_value(json_array_get(at, 0));
		s->history[i][1] = json_number_value(json_array_get(at, 1));
		s->n_history++;
	}
	return 0;
}

static int read_search(const json_t *v, struct plan *p, struct error *err)
{
	struct plan_record *s = &p->search;
	const double zero = 0;
	double seed, evaluations;
	int rc;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return json_expected(v, "", "search", "an object", err);
	rc = json_known_keys(v, "search", search_keys, err);
	if (rc == 0)
		rc = json_text(v, "search", "algorithm", false, &s->algorithm, err);
	if (rc == 0)
		rc = json_number(v, "search", "seed", -1e19, &zero, &seed, err);
	if (rc == 0)
		rc = json_number(v, "search", "evaluations", 0, &zero, &evaluations, err);
	if (rc == 0)
		rc = json_number(v, "search", "elapsed_s", 0, &zero, &s->elapsed_s, err);
	if (rc != 0)
		return rc;
	if (json_is_integer(json_object_get(v, "seed")))
		s->seed = (uint64_t)json_integer_value(json_object_get(v, "seed"));
	s->evaluations = evaluations < 9e18 ? (int64_t)evaluations : INT64_MAX;
	return read_history(v, s, err);
}

static size_t count_members(const json_t *list, const char *member)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);

		n += json_array_size(member ? json_object_get(v, member) : v);
	}
	return n;
}

static int read_body(const json_t *root, const json_t *stages, const json_t *list,
		     struct plan *p, struct error *err)
{
	const int all = 0;
	int rc;

	free(p->visits);
	p->visits = alloc_array(count_members(list, "path"), sizeof(*p->visits));
	rc = read_assignment(stages, p, err);
	if (rc == 0)
		rc = json_int(root, "", "path_length", 1, PLAN_MOST_PATH, NULL, &p->path_length,
			      err);
	if (rc == 0)
		rc = json_int(root, "", "skip_share", 1, 99, &all, &p->skip_share, err);
	if (rc == 0)
		rc = always_visited_read(root, p->n_stages, &p->always, err);
	if (rc == 0)
		rc = json_bool(root, "", "overlap_sync", false, &p->overlap_sync, err);
	if (rc == 0)
		rc = read_microbatches(list, p, err);
	if (rc == 0)
		rc = read_order(json_object_get(root, "order"), p, err);
	if (rc == 0)
		rc = read_predicted(json_object_get(root, "predicted"), p, err);
	if (rc == 0)
		rc = read_search(json_object_get(root, "search"), p, err);
	return rc;
}

/* The size of the plan follows from the lists of stages and microbatches. The plan is then
 * allocated and filled in. */
int plan_parse(const char *text, size_t size, struct plan **out, struct error *err)
{
	const json_t *stages, *list;
	struct plan *p = NULL;
	json_t *root;
	int rc = json_parse(text, size, FORMAT, keys, &root, err);

	if (rc != 0)
		return rc;
	rc = json_list(root, "", "assignment", -1, &stages, err);
	if (rc == 0)
		rc = json_list(root, "", "microbatches", -1, &list, err);
	for (size_t s = 0; rc == 0 && s < json_array_size(stages); s++) {
		if (!json_is_array(json_array_get(stages, s)))
			rc = error_set(err, -EINVAL,
				       "assignment[%zu]: expected an array of node ids", s);
	}
	if (rc == 0 && (json_array_size(stages) < 1 || json_array_size(stages) > 4096))
		rc = error_set(err, -EINVAL, "assignment: expected 1 to 4096 stages");
	if (rc != 0)
		goto free_root;
	p = plan_alloc((int)json_array_size(stages), (int)count_members(stages, NULL),
		       (int)json_array_size(list), 0);
	rc = read_body(root, stages, list, p, err);
	if (rc == 0)
		*out = p;
	else
		plan_free(p);
free_root:
	json_decref(root);
	return rc;
}

int plan_read(const char *path, struct plan **out, struct error *err)
{
	char *text;
	size_t size;
	int rc = file_read_text(path, MOST_BYTES, &text, &size, err);

	if (rc != 0)
		return rc;
	rc = plan_parse(text, size, out, err);
	free(text);
	return rc == 0 ? 0 : error_prefix(err, rc, "%s", path);
}

static json_t *ids_to_json(const int *ids, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_integer(ids[i]));
	return list;
}

static json_t *microbatches_to_json(const struct plan *p)
{
	json_t *list = json_array();

	for (int i = 0; i < p->n_microbatches; i++) {
		const struct plan_microbatch *m = &p->microbatches[i];
		json_t *o = json_pack("{s:i, s:i, s:o}", "id", m->id, "data_node", m->data_node,
				      "path", ids_to_json(m->path, m->length));

		if (o && m->release_s > 0)
			json_object_set_new(o, "release_s", json_real(m->release_s));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *orders_to_json(const struct plan *p)
{
	json_t *object = json_object();

	for (int i = 0; i < p->n_orders; i++) {
		const struct plan_order *o = &p->orders[i];
		json_t *list = json_array();
		char key[16];

		for (int t = 0; t < o->n_tasks; t++)
			json_array_append_new(list, json_pack("[i, s]", o->tasks[t].microbatch,
							      task_kind_name(o->tasks[t].kind)));
		snprintf(key, sizeof(key), "%d", o->node);
		json_object_set_new(object, key, list);
	}
	return object;
}

static json_t *predicted_to_json(const struct plan *p)
{
	const struct plan_predicted *d = &p->predicted;

	json_t *o = json_pack("{s:f, s:f, s:i, s:f, s:f, s:f, s:o}", "iteration_s", d->iteration_s,
			 "sync_s", d->sync_s, "collisions", d->collisions, "collision_wait_s",
			 d->collision_wait_s, "lower_bound_s", d->lower_bound_s, "idle_fraction",
			 d->idle_fraction, "exposure", ids_to_json(d->exposure, p->n_stages));

	if (o && d->total_s > 0)
		json_object_set_new(o, "total_s", json_real(d->total_s));
	return o;
}

static json_t *search_to_json(const struct plan_record *s)
{
	json_t *history = json_array();

	for (int i = 0; i < s->n_history; i++)
		json_array_append_new(history, json_pack("[f, f]", s->history[i][0],
							 s->history[i][1]));
	return json_pack("{s:s, s:I, s:I, s:f, s:o}", "algorithm", s->algorithm, "seed",
			 (json_int_t)s->seed, "evaluations", (json_int_t)s->evaluations,
			 "elapsed_s", s->elapsed_s, "history", history);
}

/* Optional parts are written only if they are not empty. */
char *plan_format(const struct plan *p)
{
	json_t *root = json_object(), *stages = json_array();
	char *text = NULL;
	bool ok;

	for (int s = 0; s < p->n_stages; s++)
		json_array_append_new(stages, ids_to_json(p->assigned + p->stage_start[s],
							  p->stage_start[s + 1] -
								  p->stage_start[s]));
	ok = json_object_set_new(root, "format", json_string(FORMAT)) == 0 &&
	     json_object_set_new(root, "assignment", stages) == 0 &&
	     json_object_set_new(root, "path_length", json_integer(p->path_length)) == 0 &&
	     json_object_set_new(root, "microbatches", microbatches_to_json(p)) == 0;
	if (ok && p->skip_share > 0)
		ok = json_object_set_new(root, "skip_share", json_integer(p->skip_share)) == 0;
	always_visited_write(root, p->always);
	if (ok && p->overlap_sync)
		ok = json_object_set_new(root, "overlap_sync", json_true()) == 0;
	if (ok && p->n_orders > 0)
		ok = json_object_set_new(root, "order", orders_to_json(p)) == 0;
	if (ok && p->predicted.exposure)
		ok = json_object_set_new(root, "predicted", predicted_to_json(p)) == 0;
	if (ok && p->search.algorithm)
		ok = json_object_set_new(root, "search", search_to_json(&p->search)) == 0;
	if (ok)
		text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(root);
	return text;
}
