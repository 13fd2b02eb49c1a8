/* Reads and writes skippipe.cluster/1. The reader is strict, because a wrong number that it accepts
 * would go unnoticed and lead to bad plans. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "schedule/format/cluster.h"
#include "base/json.h"
#include "schedule/format/always_visited.h"

#define FORMAT "skippipe.cluster/1"
#define MOST_BYTES ((size_t)1 << 30)

static const char *const keys[] = { "format",
				    "name",
				    "stages",
				    "nodes",
				    "delay_s",
				    "links",
				    "activation_bytes",
				    "transfer_overhead_s",
				    "microbatches_per_data_node",
				    "dispatch_overhead_s",
				    "sync_pair_s",
				    "weights_bytes_per_stage",
				    "bytes_s",
				    "wire",
				    "always_visited",
				    "stage_work",
				    NULL };
static const char *const node_keys[] = { "id",     "location", "forward_s", "backward_s",
					 "loss_s", "memory",   "stage",     "address",
					 "device", "name",     NULL };
static const struct cluster_share all_bytes = { .activations = 1, .sums = 1 };
static const char *const link_keys[] = { "latency_s", "bandwidth_bytes_per_s", NULL };

/* Reads an N x N matrix. null and negative numbers become -1, which stands for no link, or for
 * unknown. */
static int read_matrix(const json_t *object, const char *where, const char *key, int n,
		       double *out, struct error *err)
{
	const json_t *rows, *row, *v;
	int rc = json_list(object, where, key, n, &rows, err);

	for (int i = 0; rc == 0 && i < n; i++) {
		char at[64];

		snprintf(at, sizeof(at), "%s[%d]", key, i);
		row = json_array_get(rows, (size_t)i);
		if (!json_is_array(row) || json_array_size(row) != (size_t)n)
			return error_set(err, -EINVAL, "%s%s%s: expected a row of %d numbers",
					 where, *where ? "." : "", at, n);
		for (int j = 0; j < n; j++) {
			v = json_array_get(row, (size_t)j);
			if (!json_is_null(v) && !json_is_number(v)) {
				snprintf(at, sizeof(at), "%s[%d][%d]", key, i, j);
				return json_expected(v, where, at, "a number or null", err);
			}
			out[(size_t)i * (size_t)n + (size_t)j] =
				json_is_null(v) || json_number_value(v) < 0 ? -1
									    : json_number_value(v);
		}
	}
	return rc;
}

struct links {
	/* Arrays of (n, n); latency < 0 or bandwidth <= 0: no link */
	double *latency_s, *bandwidth;
};

static int read_links(const json_t *root, int n, struct links *links, struct error *err)
{
	size_t pairs = (size_t)n * (size_t)n;
	const json_t *object = json_object_get(root, "links");
	int rc;

	if (!json_is_object(object))
		return json_expected(object, "", "links", "an object", err);
	links->latency_s = malloc(pairs * sizeof(double));
	links->bandwidth = malloc(pairs * sizeof(double));
	if (!links->latency_s || !links->bandwidth)
		return error_set(err, -ENOMEM, "out of memory");
	rc = json_known_keys(object, "links", link_keys, err);
	if (rc == 0)
		rc = read_matrix(object, "links", "latency_s", n, links->latency_s, err);
	if (rc == 0)
		rc = read_matrix(object, "links", "bandwidth_bytes_per_s", n, links->bandwidth,
				 err);
	return rc;
}

static void fill_from_links(const struct links *links, int n, double bytes, double overhead_s,
			    double *out)
{
	for (size_t i = 0; i < (size_t)n * (size_t)n; i++) {
		bool absent = links->latency_s[i] < 0 || links->bandwidth[i] <= 0;

		out[i] = absent ? -1
				: links->latency_s[i] + bytes / links->bandwidth[i] + overhead_s;
	}
}

/* Sets how long the bytes of an fp32 activation take on each link. */
static void fill_bytes(const struct links *links, double bytes, struct cluster *c)
{
	size_t pairs = (size_t)c->n_nodes * (size_t)c->n_nodes;

	c->bytes_s = alloc_array(pairs, sizeof(*c->bytes_s));
	for (size_t i = 0; i < pairs; i++)
		c->bytes_s[i] = links->bandwidth[i] > 0 ? bytes / links->bandwidth[i] : 0;
}

/* Reads the keys that belong to delay_s: its format and bytes_s. */
static int read_bytes(const json_t *root, struct cluster *c, struct error *err)
{
	size_t pairs = (size_t)c->n_nodes * (size_t)c->n_nodes;
	const json_t *wire = json_object_get(root, "wire");
	enum tensor_format *format = &c->formats.wire;

	if (wire && (!json_is_string(wire) ||
		     tensor_format_parse(json_string_value(wire), format) != 0 ||
		     !tensor_format_suits_activations(*format)))
		return json_expected(wire, "", "wire", "fp32, bf16, q8 or q6", err);
	if (!json_object_get(root, "bytes_s"))
		return 0;
	c->bytes_s = alloc_array(pairs, sizeof(*c->bytes_s));
	for (size_t i = 0; i < pairs; i++)
		c->bytes_s[i] = 0;
	return read_matrix(root, "", "bytes_s", c->n_nodes, c->bytes_s, err);
}

static int read_delays(const json_t *root, const struct cluster_share *share, struct cluster *c,
		       struct error *err)
{
	struct links links = { NULL, NULL };
	double activation, overhead, weights, zero = 0;
	bool by_links = json_object_get(root, "links") != NULL;
	bool by_delay = json_object_get(root, "delay_s") != NULL;
	int rc;

	if (by_links == by_delay)
		return error_set(err, -EINVAL, "delay_s: expected either delay_s or links%s",
				 by_links ? ", found both" : "");
	if (by_delay) {
		static const char *const only_links[] = { "activation_bytes", "transfer_overhead_s",
							  "weights_bytes_per_stage" };

		for (int i = 0; i < 3; i++) {
			if (json_object_get(root, only_links[i]))
				return error_set(err, -EINVAL, "%s: goes with links, not delay_s",
						 only_links[i]);
		}
		if (share->refuse_delays && share->activations != 1)
			return error_set(err, -EINVAL,
					 "delay_s: only fp32 activations have these delays; other "
					 "formats need links and activation_bytes");
		rc = read_matrix(root, "", "delay_s", c->n_nodes, c->delay_s, err);
		return rc == 0 ? read_bytes(root, c, err) : rc;
	}
	if (json_object_get(root, "bytes_s") || json_object_get(root, "wire"))
		return error_set(err, -EINVAL, "%s: goes with delay_s, not links",
				 json_object_get(root, "wire") ? "wire" : "bytes_s");
	rc = read_links(root, c->n_nodes, &links, err);
	if (rc == 0)
		rc = json_number(root, "", "activation_bytes", 0, NULL, &activation, err);
	if (rc == 0)
		rc = json_number(root, "", "transfer_overhead_s", 0, &zero, &overhead, err);
	if (rc == 0)
		fill_from_links(&links, c->n_nodes, share->activations * activation, overhead,
				c->delay_s);
	if (rc == 0)
		fill_bytes(&links, activation, c);
	if (rc == 0 && json_object_get(root, "weights_bytes_per_stage")) {
		rc = json_number(root, "", "weights_bytes_per_stage", 0, NULL, &weights, err);
		if (rc == 0)
			fill_from_links(&links, c->n_nodes, share->sums * weights, 0,
					c->sync_pair_s);
	}
	free(links.latency_s);
	free(links.bandwidth);
	return rc;
}

static int read_sums(const json_t *root, double share, struct cluster *c, struct error *err)
{
	int rc = read_matrix(root, "", "sync_pair_s", c->n_nodes, c->sync_pair_s, err);

	for (size_t i = 0; rc == 0 && i < (size_t)c->n_nodes * (size_t)c->n_nodes; i++) {
		if (c->sync_pair_s[i] > 0)
			c->sync_pair_s[i] *= share;
	}
	return rc;
}

static int read_node(const json_t *list, int i, struct cluster *c, struct error *err)
{
	const json_t *v = json_array_get(list, (size_t)i);
	struct cluster_node *node = &c->nodes[i];
	const int anywhere = -1;
	char where[32];
	int id, rc;

	snprintf(where, sizeof(where), "nodes[%d]", i);
	if (!json_is_object(v))
		return json_expected(v, where, "", "an object", err);
	rc = json_known_keys(v, where, node_keys, err);
	if (rc == 0)
		rc = json_int(v, where, "id", i, i, NULL, &id, err);
	if (rc == 0) {
		free(node->location);
		node->location = NULL;
		rc = json_text(v, where, "location", true, &node->location, err);
	}
	if (rc == 0)
		rc = json_number(v, where, "forward_s", 0, NULL, &node->forward_s, err);
	if (rc == 0)
		rc = json_number(v, where, "backward_s", 0, NULL, &node->backward_s, err);
	if (rc == 0)
		rc = json_number(v, where, "loss_s", 0, NULL, &node->loss_s, err);
	if (rc == 0)
		rc = json_int(v, where, "memory", 0, 1 << 20, NULL, &node->memory, err);
	if (rc == 0)
		rc = json_int(v, where, "stage", 0, c->n_stages - 1, &anywhere, &node->stage, err);
	if (rc == 0)
		rc = json_text(v, where, "address", false, &node->address, err);
	if (rc == 0)
		rc = json_text(v, where, "device", false, &node->device, err);
	if (rc == 0)
		rc = json_text(v, where, "name", false, &node->name, err);
	return rc;
}

static int read_stages(const json_t *stages, struct cluster *c, struct error *err)
{
	for (int s = 0; s < c->n_stages; s++) {
		const json_t *v = json_array_get(stages, (size_t)s);
		char at[32];

		if (!json_is_integer(v) || json_integer_value(v) < 1 ||
		    json_integer_value(v) > c->n_nodes) {
			snprintf(at, sizeof(at), "stages[%d]", s);
			return json_expected(v, at, "", "how many nodes it has, 1 or more", err);
		}
		c->stages[s] = (int)json_integer_value(v);
	}
	return 0;
}

static int read_work(const json_t *root, struct cluster *c, struct error *err)
{
	const json_t *list;
	int rc = json_list(root, "", "stage_work", c->n_stages, &list, err);

	for (int s = 0; rc == 0 && s < c->n_stages; s++) {
		const json_t *v = json_array_get(list, (size_t)s);
		char at[32];

		if (json_is_number(v) && json_number_value(v) > 0) {
			c->work[s] = json_number_value(v);
			continue;
		}
		snprintf(at, sizeof(at), "stage_work[%d]", s);
		rc = json_expected(v, at, "", "a number, more than 0", err);
	}
	return rc;
}

static int read_body(const json_t *root, const json_t *stages, const json_t *nodes,
		     const struct cluster_share *share, struct cluster *c, struct error *err)
{
	const double zero = 0;
	int rc;

	free(c->name);
	c->name = NULL;
	rc = json_text(root, "", "name", true, &c->name, err);
	if (rc == 0)
		rc = read_stages(stages, c, err);
	if (rc == 0 && json_object_get(root, "stage_work"))
		rc = read_work(root, c, err);
	if (rc == 0)
		rc = always_visited_read(root, c->n_stages, &c->always, err);
	for (int i = 0; rc == 0 && i < c->n_nodes; i++)
		rc = read_node(nodes, i, c, err);
	if (rc == 0)
		rc = read_delays(root, share, c, err);
	if (rc == 0 && json_object_get(root, "sync_pair_s"))
		rc = read_sums(root, share->sums, c, err);
	if (rc == 0)
		rc = json_int(root, "", "microbatches_per_data_node", 1,
			      CLUSTER_MOST_MICROBATCHES, NULL,
			      &c->microbatches_per_data_node, err);
	if (rc == 0)
		rc = json_number(root, "", "dispatch_overhead_s", 0, &zero,
				 &c->dispatch_overhead_s, err);
	return rc == 0 ? cluster_validate(c, err) : rc;
}

/* The size of the cluster follows from the lists of stages and nodes. The cluster is then allocated
 * and filled in. */
static int parse_share(const char *text, size_t size, const struct cluster_share *share,
		       struct cluster **out, struct error *err)
{
	const json_t *stages, *nodes;
	struct cluster *c = NULL;
	json_t *root;
	int rc = json_parse(text, size, FORMAT, keys, &root, err);

	if (rc != 0)
		return rc;
	rc = json_list(root, "", "stages", -1, &stages, err);
	if (rc == 0)
		rc = json_list(root, "", "nodes", -1, &nodes, err);
	if (rc != 0)
		goto free_root;
	if (json_array_size(stages) < 1 || json_array_size(stages) > CLUSTER_MOST_STAGES) {
		rc = error_set(err, -EINVAL, "expected 1 to %d stages",
			       CLUSTER_MOST_STAGES);
		goto free_root;
	}
	if (json_array_size(nodes) < 1 || json_array_size(nodes) > CLUSTER_MOST_NODES) {
		rc = error_set(err, -EINVAL, "expected 1 to %d nodes",
			       CLUSTER_MOST_NODES);
		goto free_root;
	}
	c = cluster_alloc((int)json_array_size(nodes), (int)json_array_size(stages), true);
	rc = c ? read_body(root, stages, nodes, share, c, err)
	       : error_set(err, -ENOMEM, "out of memory");
	if (rc != 0)
		goto free_cluster;
	*out = c;
	json_decref(root);
	return 0;

free_cluster:
	cluster_free(c);
free_root:
	json_decref(root);
	return rc;
}

int cluster_parse(const char *text, size_t size, struct cluster **out, struct error *err)
{
	return parse_share(text, size, &all_bytes, out, err);
}

int cluster_read(const char *path, struct cluster **out, struct error *err)
{
	return cluster_read_share(path, &all_bytes, out, err);
}

int cluster_read_share(const char *path, const struct cluster_share *share, struct cluster **out,
		       struct error *err)
{
	char *text;
	size_t size;
	int rc = file_read_text(path, MOST_BYTES, &text, &size, err);

	if (rc != 0)
		return rc;
	rc = parse_share(text, size, share, out, err);
	free(text);
	return rc == 0 ? 0 : error_prefix(err, rc, "%s", path);
}

/* Negative numbers, which stand for no link or for unknown, are written as null. */
static json_t *matrix_to_json(const double *m, int n)
{
	json_t *rows = json_array();

	for (int i = 0; i < n; i++) {
		json_t *row = json_array();

		for (int j = 0; j < n; j++) {
			double x = i == j ? 0 : m[(size_t)i * (size_t)n + (size_t)j];

			json_array_append_new(row, x < 0 ? json_null() : json_real(x));
		}
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *node_to_json(const struct cluster_node *node, int id)
{
	json_t *o = json_pack("{s:i, s:s, s:f, s:f, s:f, s:i}", "id", id, "location",
			      node->location, "forward_s", node->forward_s, "backward_s",
			      node->backward_s, "loss_s", node->loss_s, "memory", node->memory);

	if (o && node->name)
		json_object_set_new(o, "name", json_string(node->name));
	if (o && node->stage >= 0)
		json_object_set_new(o, "stage", json_integer(node->stage));
	if (o && node->address)
		json_object_set_new(o, "address", json_string(node->address));
	if (o && node->device)
		json_object_set_new(o, "device", json_string(node->device));
	return o;
}

static bool any_known(const double *m, int n)
{
	for (size_t i = 0; m && i < (size_t)n * (size_t)n; i++) {
		if (m[i] >= 0)
			return true;
	}
	return false;
}

/* The key is omitted if all stages have equal work. */
static void set_work(json_t *root, const struct cluster *c)
{
	json_t *list = json_array();
	bool any = false;

	for (int s = 0; s < c->n_stages; s++) {
		any = any || c->work[s] != 1;
		json_array_append_new(list, json_real(c->work[s]));
	}
	if (any)
		json_object_set(root, "stage_work", list);
	json_decref(list);
}

char *cluster_format(const struct cluster *c)
{
	json_t *root = json_pack("{s:s, s:s, s:i, s:f}", "format", FORMAT, "name", c->name,
				 "microbatches_per_data_node", c->microbatches_per_data_node,
				 "dispatch_overhead_s", c->dispatch_overhead_s);
	json_t *stages = json_array(), *nodes = json_array();
	char *text = NULL;

	for (int s = 0; s < c->n_stages; s++)
		json_array_append_new(stages, json_integer(c->stages[s]));
	always_visited_write(root, c->always);
	set_work(root, c);
	if (c->formats.wire != FORMAT_FP32)
		json_object_set_new(root, "wire", json_string(tensor_format_name(c->formats.wire)));
	for (int i = 0; i < c->n_nodes; i++)
		json_array_append_new(nodes, node_to_json(&c->nodes[i], i));
	if (json_object_set_new(root, "stages", stages) == 0 &&
	    json_object_set_new(root, "nodes", nodes) == 0 &&
	    json_object_set_new(root, "delay_s", matrix_to_json(c->delay_s, c->n_nodes)) == 0 &&
	    (!c->bytes_s ||
	     json_object_set_new(root, "bytes_s", matrix_to_json(c->bytes_s, c->n_nodes)) == 0) &&
	    (!any_known(c->sync_pair_s, c->n_nodes) ||
	     json_object_set_new(root, "sync_pair_s", matrix_to_json(c->sync_pair_s, c->n_nodes)) ==
		     0))
		text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(root);
	return text;
}
