/* map.c - reads the nodes and links of a test bed from a cluster description, or makes them from
 * the measured regions, and adds the controller. It can also write the present state of a test bed
 * as a cluster description. */
#include "tests/wan/map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "schedule/format/regions.h"

#define MAX_BYTES ((size_t)1 << 26)
#define FIRST_ADDRESS 0x0a4d0002u /* 10.77.0.2 */
static const double near_latency_s = 0.0005, near_bytes_per_s = 1.25e9;

struct map {
	uint32_t n;                    /* number of nodes, the controller included */
	json_t *cluster;               /* the cluster description, without delays */
	const char **place;            /* place of each node; borrowed from `cluster` */
	double *latency_s, *bandwidth; /* (n, n), from row to column; negative: no link */
};

static size_t index_of(const struct map *m, uint32_t from, uint32_t to)
{
	return (size_t)from * m->n + to;
}

static void set_link(struct map *m, uint32_t from, uint32_t to, double latency_s, double bandwidth)
{
	m->latency_s[index_of(m, from, to)] = latency_s;
	m->bandwidth[index_of(m, from, to)] = bandwidth;
}

/* Allocates the tables for the nodes and the controller, without any link. Sets the controller's
 * place. */
static int make_room(struct map *m, const struct map_request *q, struct error *err)
{
	const json_t *nodes = json_object_get(m->cluster, "nodes");
	size_t pairs;

	m->n = (uint32_t)json_array_size(nodes) + 1;
	if (m->n > MAP_MAX_NODES + 1)
		return error_set(err, -EINVAL, "nodes: %u, expected at most %d", m->n - 1,
				 MAP_MAX_NODES);
	pairs = (size_t)m->n * m->n;
	m->place = alloc_array(m->n, sizeof(*m->place));
	m->latency_s = alloc_array(pairs, sizeof(double));
	m->bandwidth = alloc_array(pairs, sizeof(double));
	for (size_t i = 0; i < pairs; i++)
		m->latency_s[i] = m->bandwidth[i] = -1;
	for (uint32_t i = 0; i + 1 < m->n; i++)
		m->place[i] = json_string_value(
			json_object_get(json_array_get(nodes, i), "location"));
	m->place[m->n - 1] = q->controller_at ? q->controller_at : m->place[0];
	return 0;
}

/* ---- from a cluster description ---- */

static double matrix_at(const json_t *links, const char *key, uint32_t i, uint32_t j)
{
	const json_t *v = json_array_get(json_array_get(json_object_get(links, key), i), j);

	return json_is_number(v) ? json_number_value(v) : -1;
}

/* Gives the controller the links of the first node in its place. The link between the controller
 * and this node is copied from the link between this node and the second node in the place. If the
 * place has only one node, the link between the controller and this node is that of a local
 * network. */
static int place_controller(struct map *m, struct error *err)
{
	uint32_t c = m->n - 1, like = 0, other;

	while (like < c && strcmp(m->place[like], m->place[c]) != 0)
		like++;
	if (like == c)
		return error_set(err, -ENOENT,
				 "no node is at \"%s\", the place of the controller", m->place[c]);
	for (other = like + 1; other < c && strcmp(m->place[other], m->place[c]) != 0;)
		other++;
	for (uint32_t j = 0; j < c; j++) {
		size_t there = index_of(m, like, j), back = index_of(m, j, like);

		set_link(m, c, j, m->latency_s[there], m->bandwidth[there]);
		set_link(m, j, c, m->latency_s[back], m->bandwidth[back]);
	}
	set_link(m, c, like, near_latency_s, near_bytes_per_s);
	set_link(m, like, c, near_latency_s, near_bytes_per_s);
	if (other < c) {
		size_t there = index_of(m, like, other), back = index_of(m, other, like);

		set_link(m, c, like, m->latency_s[back], m->bandwidth[back]);
		set_link(m, like, c, m->latency_s[there], m->bandwidth[there]);
	}
	return 0;
}

static int read_cluster(struct map *m, const struct map_request *q, struct error *err)
{
	struct cluster *checked;
	const json_t *links;
	char *text;
	size_t size;
	int rc = file_read(q->cluster, MAX_BYTES, &text, &size, err);

	if (rc != 0)
		return rc;
	rc = cluster_parse(text, size, &checked, err);
	if (rc == 0) {
		cluster_free(checked);
		m->cluster = json_loadb(text, size, 0, NULL);
		rc = m->cluster ? make_room(m, q, err) : error_set(err, -EINVAL, "no JSON");
	}
	free(text);
	links = json_object_get(m->cluster, "links");
	if (rc == 0 && !links)
		rc = error_set(err, -EINVAL, "links: expected, because delay_s does not separate "
			       "latency and bandwidth");
	for (uint32_t i = 0; rc == 0 && i + 1 < m->n; i++)
		for (uint32_t j = 0; j + 1 < m->n; j++)
			if (i != j)
				set_link(m, i, j, matrix_at(links, "latency_s", i, j),
					 matrix_at(links, "bandwidth_bytes_per_s", i, j));
	if (rc == 0)
		rc = place_controller(m, err);
	return rc == 0 ? 0 : error_prefix(err, rc, "%s", q->cluster);
}

/* ---- from the measured regions ---- */

static int regions_text(const struct regions *r, const struct map_request *q, char **text,
			struct error *err)
{
	struct regions_request request = { .name = "wan",
					   .setting = q->setting,
					   .n_nodes = q->n_nodes,
					   .n_stages = q->n_stages    ? q->n_stages :
						       q->n_nodes < 6 ? q->n_nodes :
									6,
					   .stages = q->n_stages ? q->stages : NULL,
					   .forward_s = q->forward_s,
					   .backward_s = q->backward_s,
					   .loss_s = q->loss_s,
					   .memory = 3,
					   .microbatches_per_data_node = 6 };
	struct cluster *c;
	int rc = regions_cluster(r, &request, &c, err);

	if (rc != 0)
		return rc;
	*text = cluster_format(c);
	cluster_free(c);
	return *text ? 0 : error_set(err, -EINVAL, "the cluster cannot be printed");
}

static int read_regions(struct map *m, const struct map_request *q, struct error *err)
{
	struct regions *r;
	char *text = NULL;
	int rc = regions_read(q->regions, &r, err);

	if (rc != 0)
		return rc;
	rc = regions_text(r, q, &text, err);
	if (rc == 0) {
		m->cluster = json_loads(text, 0, NULL);
		rc = m->cluster ? make_room(m, q, err) : error_set(err, -EINVAL, "no JSON");
	}
	for (uint32_t i = 0; rc == 0 && i < m->n; i++) {
		for (uint32_t j = 0; rc == 0 && j < m->n; j++) {
			double latency_s = 0, bandwidth = 0;

			rc = regions_link(r, m->place[i], m->place[j], &latency_s, &bandwidth, err);
			if (i != j)
				set_link(m, i, j, latency_s, bandwidth);
		}
	}
	if (rc == 0) {
		json_object_del(m->cluster, "delay_s");
		json_object_del(m->cluster, "bytes_s");
		json_object_del(m->cluster, "sync_pair_s");
		json_object_set_new(m->cluster, "activation_bytes",
				    json_real(q->activation_bytes));
		if (q->weights_bytes_per_stage > 0)
			json_object_set_new(m->cluster, "weights_bytes_per_stage",
					    json_real(q->weights_bytes_per_stage));
	}
	free(text);
	regions_free(r);
	return rc == 0 ? 0 : error_prefix(err, rc, "%s", q->regions);
}

/* ---- the map ---- */

int map_new(const struct map_request *q, struct map **out, struct error *err)
{
	struct map *m = alloc_new(sizeof(*m));
	int rc;

	rc = q->cluster ? read_cluster(m, q, err) : read_regions(m, q, err);
	if (rc != 0) {
		map_free(m);
		return rc;
	}
	for (size_t i = 0; i < (size_t)m->n * m->n; i++) {
		if (m->bandwidth[i] > 0 && m->bandwidth[i] < q->least_bytes_per_s)
			m->bandwidth[i] = q->least_bytes_per_s;
		if (m->bandwidth[i] > 0 && q->divisor > 1)
			m->bandwidth[i] /= q->divisor;
	}
	*out = m;
	return 0;
}

void map_free(struct map *m)
{
	if (!m)
		return;
	json_decref(m->cluster);
	free(m->place);
	free(m->latency_s);
	free(m->bandwidth);
	free(m);
}

uint32_t map_nodes(const struct map *m)
{
	return m->n;
}

const char *map_place(const struct map *m, uint32_t node)
{
	return m->place[node];
}

struct traffic_link map_link(const struct map *m, uint32_t from, uint32_t to)
{
	size_t i = index_of(m, from, to);

	return (struct traffic_link){ .latency_s = m->latency_s[i],
				      .bandwidth_bytes_per_s = m->bandwidth[i] };
}

uint32_t map_address(uint32_t node)
{
	return FIRST_ADDRESS + (node << 8);
}

uint32_t map_node_at(const struct map *m, uint32_t address)
{
	uint32_t node = (address - FIRST_ADDRESS) >> 8;

	return (address & 0xff) == (FIRST_ADDRESS & 0xff) && node < m->n ? node : m->n;
}

int map_find(const struct map *m, const char *word, bool *in, struct error *err)
{
	char *end;
	unsigned long number = strtoul(word, &end, 10);
	bool numbered = *word >= '0' && *word <= '9' && *end == '\0';
	bool all = strcmp(word, "all") == 0, found = false;

	if (strcmp(word, "controller") == 0) {
		numbered = true;
		number = m->n - 1;
	}
	for (uint32_t i = 0; i < m->n; i++)
		found = found || (numbered ? i == number : all || strcmp(word, m->place[i]) == 0);
	if (!found)
		return error_set(err, -EINVAL,
				 "\"%s\": expected a node from 0 to %u, controller, all, or a "
				 "place such as %s", word, m->n - 2, m->place[0]);
	for (uint32_t i = 0; i < m->n; i++)
		in[i] = numbered ? i == number : all || strcmp(word, m->place[i]) == 0;
	return 0;
}

static void put_number(json_t *row, bool exists, double v)
{
	json_array_append_new(row, exists ? json_real(v) : json_null());
}

char *map_format(const struct map *m, struct traffic *t)
{
	json_t *root = json_copy(m->cluster), *links = json_object();
	json_t *latency = json_array(), *bandwidth = json_array();
	char *text = NULL;

	for (uint32_t i = 0; i + 1 < m->n; i++) {
		json_t *latencies = json_array(), *bandwidths = json_array();

		for (uint32_t j = 0; j + 1 < m->n; j++) {
			const struct traffic_link *l = traffic_link(t, i, j);
			bool exists = i != j && l->latency_s >= 0 &&
				      l->bandwidth_bytes_per_s > 0 && !l->cut &&
				      !traffic_node(t, i)->away && !traffic_node(t, j)->away;

			put_number(latencies, exists, l->latency_s);
			put_number(bandwidths, exists, l->bandwidth_bytes_per_s);
		}
		json_array_append_new(latency, latencies);
		json_array_append_new(bandwidth, bandwidths);
	}
	if (json_object_set_new(links, "latency_s", latency) == 0 &&
	    json_object_set_new(links, "bandwidth_bytes_per_s", bandwidth) == 0 &&
	    json_object_set_new(root, "links", links) == 0)
		text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12));
	json_decref(root);
	return text;
}
