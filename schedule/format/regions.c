/* Clusters of measured cloud regions.
 *
 * regions_read reads the facts and indexes them by location. fill_nodes deals the nodes to
 * locations and sets their task times and memory. fill_links turns latency and bandwidth into the
 * delays and sums of a cluster. */
#include "schedule/format/regions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/json.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

struct region_link {
	const char *a, *b; /* names of the two locations, borrowed from root */
	double latency_s, bandwidth;
};

struct region_setting {
	const char *name;
	const char **locations;
	int n;
};

struct regions {
	json_t *root; /* the parsed file, which owns the texts */
	double same_latency_s, same_bandwidth;
	struct region_link *links;
	int n_links;
	struct region_setting *settings;
	int n_settings;
};

static const char *const keys[] = { "format", "about", "same_region", "settings",
				    "compute_s_per_sample_per_layer", "transfer_overhead_s",
				    "links", NULL };

static int read_speed(const json_t *v, const char *where, double *latency_s, double *bandwidth,
		      struct error *err)
{
	double ms, gib;
	int rc = json_number(v, where, "latency_ms", 0, NULL, &ms, err);

	if (rc == 0)
		rc = json_number(v, where, "bandwidth_gib_per_s", 1e-12, NULL, &gib, err);
	if (rc != 0)
		return rc;
	*latency_s = ms / 1000;
	*bandwidth = gib * GIB;
	return 0;
}

static int read_links(struct regions *r, struct error *err)
{
	const json_t *list;
	int rc = json_list(r->root, "", "links", -1, &list, err);

	if (rc != 0)
		return rc;
	r->n_links = (int)json_array_size(list);
	r->links = alloc_array((size_t)r->n_links, sizeof(*r->links));
	for (int i = 0; rc == 0 && i < r->n_links; i++) {
		const json_t *v = json_array_get(list, (size_t)i);
		struct region_link *l = &r->links[i];
		char where[32];

		snprintf(where, sizeof(where), "links[%d]", i);
		l->a = json_string_value(json_object_get(v, "a"));
		l->b = json_string_value(json_object_get(v, "b"));
		if (!l->a || !l->b)
			return json_expected(v, where, "", "two locations, a and b", err);
		rc = read_speed(v, where, &l->latency_s, &l->bandwidth, err);
	}
	return rc;
}

/* Reads the settings. Names and locations are borrowed from root. */
static int read_settings(struct regions *r, struct error *err)
{
	json_t *object = json_object_get(r->root, "settings"), *list;
	struct region_setting *s;
	const char *name;

	if (!json_is_object(object))
		return json_expected(object, "", "settings", "an object", err);
	r->settings = alloc_array(json_object_size(object), sizeof(*r->settings));
	json_object_foreach(object, name, list)
	{
		if (json_array_size(list) < 1)
			return json_expected(list, "settings", name, "an array of locations", err);
		s = &r->settings[r->n_settings++];
		s->name = name;
		s->n = (int)json_array_size(list);
		s->locations = alloc_array((size_t)s->n, sizeof(*s->locations));
		for (int i = 0; i < s->n; i++) {
			s->locations[i] = json_string_value(json_array_get(list, (size_t)i));
			if (!s->locations[i])
				return json_expected(list, "settings", name,
						     "names of locations", err);
		}
	}
	return 0;
}

int regions_read(const char *path, struct regions **out, struct error *err)
{
	struct regions *r;
	char *text;
	size_t size;
	int rc = file_read_text(path, (size_t)1 << 24, &text, &size, err);

	if (rc != 0)
		return rc;
	r = alloc_new(sizeof(*r));
	rc = json_parse(text, size, "facts", keys, &r->root, err);
	free(text);
	if (rc == 0)
		rc = read_speed(json_object_get(r->root, "same_region"), "same_region",
				&r->same_latency_s, &r->same_bandwidth, err);
	if (rc == 0)
		rc = read_links(r, err);
	if (rc == 0)
		rc = read_settings(r, err);
	if (rc != 0) {
		regions_free(r);
		return error_prefix(err, rc, "%s", path);
	}
	*out = r;
	return 0;
}

void regions_free(struct regions *r)
{
	if (!r)
		return;
	for (int i = 0; i < r->n_settings; i++)
		free(r->settings[i].locations);
	free(r->settings);
	free(r->links);
	json_decref(r->root);
	free(r);
}

/* Finds the locations of a setting, which are borrowed. -ENOENT: there is no such setting; the
 * message names all settings. */
static int find_setting(const struct regions *r, const char *setting,
			const char *const **locations, int *n, struct error *err)
{
	char known[200] = "";

	for (int i = 0; i < r->n_settings; i++) {
		size_t used = strlen(known);

		if (strcmp(r->settings[i].name, setting) == 0) {
			*locations = r->settings[i].locations;
			*n = r->settings[i].n;
			return 0;
		}
		snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
			 r->settings[i].name);
	}
	return error_set(err, -ENOENT, "setting \"%s\": expected one of %s", setting, known);
}

int regions_link(const struct regions *r, const char *a, const char *b, double *latency_s,
		 double *bandwidth, struct error *err)
{
	if (strcmp(a, b) == 0) {
		*latency_s = r->same_latency_s;
		*bandwidth = r->same_bandwidth;
		return 0;
	}
	for (int i = 0; i < r->n_links; i++) {
		const struct region_link *l = &r->links[i];

		if ((strcmp(l->a, a) == 0 && strcmp(l->b, b) == 0) ||
		    (strcmp(l->a, b) == 0 && strcmp(l->b, a) == 0)) {
			*latency_s = l->latency_s;
			*bandwidth = l->bandwidth;
			return 0;
		}
	}
	return error_set(err, -ENOENT, "links: no link between %s and %s", a, b);
}

void regions_request_init(struct regions_request *q, double layers_per_stage,
			  double samples_per_microbatch)
{
	double forward_s = 0.055 * layers_per_stage * samples_per_microbatch;

	*q = (struct regions_request){
		.forward_s = forward_s,
		.backward_s = 1.5 * forward_s,
		.loss_s = 0.25 * forward_s,
		.memory = 3,
		.activation_bytes = 4194304.0 * samples_per_microbatch,
		.weights_bytes_per_stage = 67108864.0 * layers_per_stage,
		.transfer_overhead_s = 0.35,
		.dispatch_overhead_s = 0.13,
		.microbatches_per_data_node = 6,
	};
}

static int balance_stages(int n_nodes, int n_stages, int path_length, int *sizes,
			  struct error *err)
{
	double others = n_stages > 1 ? n_stages - 1 : 1;
	double share = ((path_length ? path_length : n_stages) - 1) / others;
	int left = n_nodes, next = 1;

	if (n_stages < 1 || n_nodes < n_stages)
		return error_set(err, -EINVAL, "%d nodes are too few for %d stages", n_nodes,
				 n_stages);
	for (int s = 0; s < n_stages; s++)
		sizes[s] = n_nodes / n_stages;
	for (left -= n_stages * sizes[0]; left > 0; left--) {
		/* Stage 0 serves all microbatches, and each other stage only a share of them.
		 * Stage 0 therefore gets the next node if, with this node, each of its nodes has
		 * at least as much work as a node of the last stage. */
		if (n_stages == 1 || (sizes[0] + 1) * share <= sizes[n_stages - 1] + 1e-9 ||
		    next == n_stages) {
			sizes[0]++;
		} else {
			sizes[next++]++;
		}
	}
	return 0;
}

static int fill_row(const struct regions *r, const struct regions_request *q, struct cluster *c,
		    size_t i, struct error *err)
{
	size_t n = (size_t)c->n_nodes;

	for (size_t j = 0; j < n; j++) {
		double latency, speed;
		int rc = regions_link(r, c->nodes[i].location, c->nodes[j].location, &latency,
				      &speed, err);

		if (rc != 0)
			return rc;
		c->delay_s[i * n + j] =
			i == j ? 0 : latency + q->activation_bytes / speed + q->transfer_overhead_s;
		c->bytes_s[i * n + j] = i == j ? 0 : q->activation_bytes / speed;
		c->sync_pair_s[i * n + j] =
			i == j ? 0 : latency + q->weights_bytes_per_stage / speed;
	}
	return 0;
}

/* Gives node `to` the links of node `from`, which is in the same location. The link between the two
 * nodes gets the same values in both directions. */
static void copy_row(double *links, size_t n, size_t from, size_t to)
{
	memcpy(links + to * n, links + from * n, n * sizeof(*links));
	links[to * n + from] = links[from * n + to];
	links[to * n + to] = 0;
}

static int fill_links(const struct regions *r, const struct regions_request *q,
		      struct cluster *c, struct error *err)
{
	size_t n = (size_t)c->n_nodes;

	c->bytes_s = alloc_array(n * n, sizeof(*c->bytes_s));
	for (size_t i = 0; i < n; i++) {
		size_t like = 0;
		int rc = 0;

		while (strcmp(c->nodes[like].location, c->nodes[i].location) != 0)
			like++;
		if (like == i) {
			rc = fill_row(r, q, c, i, err);
		} else {
			copy_row(c->delay_s, n, like, i);
			copy_row(c->bytes_s, n, like, i);
			copy_row(c->sync_pair_s, n, like, i);
		}
		if (rc != 0)
			return rc;
	}
	return 0;
}

static void fill_nodes(const struct regions_request *q, const char *const *locations,
		       int n_locations, struct cluster *c)
{
	struct rng rng;

	rng_init(&rng, q->seed);
	for (int i = 0; i < c->n_nodes; i++) {
		struct cluster_node *node = &c->nodes[i];
		int at = q->shuffle ? (int)rng_below(&rng, (uint32_t)n_locations)
				    : i % n_locations;

		free(node->location);
		node->location = alloc_string(locations[at]);
		node->forward_s = q->forward_s;
		node->backward_s = q->backward_s;
		node->loss_s = q->loss_s;
		node->memory = q->memory;
	}
}

/* The result is validated like a cluster that was read from a file. */
int regions_cluster(const struct regions *r, const struct regions_request *q,
		    struct cluster **out, struct error *err)
{
	const char *setting = q->setting ? q->setting : "geo-distributed";
	const char *const *locations = NULL;
	struct cluster *c;
	int n_locations = 0, rc = find_setting(r, setting, &locations, &n_locations, err);

	if (rc != 0)
		return rc;
	if (q->n_nodes < 1 || q->n_nodes > CLUSTER_MOST_NODES || q->n_stages < 1 ||
	    q->n_stages > CLUSTER_MOST_STAGES)
		return error_set(err, -EINVAL, "%d nodes in %d stages: out of range", q->n_nodes,
				 q->n_stages);
	c = cluster_alloc(q->n_nodes, q->n_stages, true);
	if (!c)
		return error_set(err, -ENOMEM, "out of memory");
	free(c->name);
	c->name = alloc_string(q->name ? q->name : setting);
	c->microbatches_per_data_node = q->microbatches_per_data_node;
	c->dispatch_overhead_s = q->dispatch_overhead_s;
	fill_nodes(q, locations, n_locations, c);
	rc = fill_links(r, q, c, err);
	if (rc == 0 && q->stages)
		memcpy(c->stages, q->stages, (size_t)c->n_stages * sizeof(*c->stages));
	else if (rc == 0)
		rc = balance_stages(c->n_nodes, c->n_stages, q->path_length, c->stages, err);
	if (rc == 0)
		rc = cluster_validate(c, err);
	if (rc != 0) {
		cluster_free(c);
		return rc;
	}
	*out = c;
	return 0;
}
